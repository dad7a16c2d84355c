//! `tracemend plugin check`

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use super::super::text::{count, one_line, printable};
use super::super::{Global, Outcome};
use super::{Found, find};
use crate::plugins::Plugin;
use crate::plugins::authoring::cases::{self, Difference};
use crate::plugins::authoring::conformance::{self, Check as Conformance};

/// More differences than this are counted, not shown; JSON has all.
const SHOWN: usize = 20;

#[derive(Debug, Args)]
pub struct Check {
    /// A plugin's file, or the name of a built-in plugin
    #[arg(value_name = "FILE.wasm|NAME")]
    plugin: PathBuf,
    /// What the plugin should answer: a table of names for a trace-naming plugin, recorded calls for a dyno-interpreter plugin
    #[arg(long, value_name = "CASES")]
    cases: Option<PathBuf>,
    /// A setting of the plugin; may be given several times
    #[arg(long = "set", value_name = "SETTING=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("SETTING=VALUE is wanted, for example gpus-per-node=8".to_owned()),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    plugin: &'a str,
    version: &'a str,
    world: &'static str,
    passed: bool,
    cases: Option<CasesReport<'a>>,
    conformance: Vec<ConformanceReport<'a>>,
}

#[derive(Serialize)]
struct CasesReport<'a> {
    file: String,
    total: usize,
    differences: Vec<DifferenceReport<'a>>,
}

#[derive(Serialize)]
struct DifferenceReport<'a> {
    line: usize,
    name: &'a str,
    expected: &'a str,
    got: &'a str,
}

#[derive(Serialize)]
struct ConformanceReport<'a> {
    check: &'static str,
    passed: bool,
    reason: Option<&'a str>,
    seconds: f64,
}

impl Check {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let host = global.plugin_host()?;
        let plugin = match find(&host, &self.plugin)? {
            Found::Plugin(plugin) => *plugin,
            Found::Refused => return Ok(Outcome::BadNews),
        };
        self.check_settings(&plugin)?;
        let cases = match &self.cases {
            Some(file) => Some(cases::run(&host, &plugin, &self.settings, file)?),
            None => None,
        };
        let conformance = conformance::run(&host, &plugin, &self.settings);
        let differences = cases.as_ref().map_or(&[][..], |cases| &cases.differences);
        let failed = conformance.iter().any(|check| check.failure.is_some());
        let passed = differences.is_empty() && !failed;

        let mut out = io::stdout().lock();
        if self.json {
            let report = self.report(&plugin, cases.as_ref(), &conformance, passed);
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)?;
        } else {
            let described = &plugin.description;
            if !global.quiet {
                writeln!(
                    out,
                    "{} {} ({})",
                    described.name,
                    printable(&described.version),
                    plugin.world
                )?;
                writeln!(out, "imports {}", printable(&super::imports(&plugin)))?;
            }
            if let (Some(cases), Some(file)) = (&cases, &self.cases) {
                show_cases(&mut out, cases, &file.to_string_lossy())?;
            }
            show_conformance(&mut out, &conformance, global.quiet)?;
        }
        Ok(Outcome::bad_news_if(!passed))
    }

    fn check_settings(&self, plugin: &Plugin) -> Result<()> {
        let declared = &plugin.description.settings;
        for (name, _) in &self.settings {
            if !declared.iter().any(|declared| declared.name == *name) {
                let names: Vec<&str> = declared.iter().map(|declared| declared.name.as_str()).collect();
                match names.is_empty() {
                    true => bail!("--set {name}: {} has no settings", plugin.name()),
                    false => bail!("--set {name}: {} has only {}", plugin.name(), names.join(", ")),
                }
            }
        }
        Ok(())
    }

    fn report<'a>(
        &self,
        plugin: &'a Plugin,
        cases: Option<&'a cases::Outcome>,
        conformance: &'a [Conformance],
        passed: bool,
    ) -> Report<'a> {
        let difference = |difference: &'a Difference| DifferenceReport {
            line: difference.line,
            name: &difference.name,
            expected: &difference.expected,
            got: &difference.got,
        };
        Report {
            plugin: plugin.name(),
            version: &plugin.description.version,
            world: plugin.world.as_str(),
            passed,
            cases: cases.zip(self.cases.as_ref()).map(|(cases, file)| CasesReport {
                file: file.to_string_lossy().into_owned(),
                total: cases.total,
                differences: cases.differences.iter().map(difference).collect(),
            }),
            conformance: conformance
                .iter()
                .map(|check| ConformanceReport {
                    check: check.name,
                    passed: check.failure.is_none(),
                    reason: check.failure.as_deref(),
                    seconds: check.time.as_secs_f64(),
                })
                .collect(),
        }
    }
}

fn show_cases(out: &mut impl Write, cases: &cases::Outcome, file: &str) -> io::Result<()> {
    let right = cases.total - cases.differences.len();
    let file = printable(file);
    writeln!(out, "{right} of {} as expected in {file}", count(cases.total, "case"))?;
    for difference in cases.differences.iter().take(SHOWN) {
        writeln!(out, "  line {}: {}", difference.line, printable(&difference.name))?;
        writeln!(out, "    expected  {}", one_line(&difference.expected))?;
        writeln!(out, "    got       {}", one_line(&difference.got))?;
    }
    match cases.differences.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn show_conformance(out: &mut impl Write, conformance: &[Conformance], quiet: bool) -> io::Result<()> {
    for Conformance { name, failure, time } in conformance {
        match failure {
            Some(failure) => writeln!(out, "FAILED  {name}: {}", one_line(failure))?,
            None if !quiet => writeln!(out, "passed  {name} ({:.1} ms)", time.as_secs_f64() * 1e3)?,
            None => {}
        }
    }
    Ok(())
}
