//! `tracemend plugin build`

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;

use super::super::text::{one_line, printable};
use super::super::{Global, Outcome};
use crate::plugins::authoring::build::{self, BuildError, Built};

#[derive(Debug, Args)]
pub struct Build {
    /// The plugin's folder, as `plugin new` makes it, or a Rust crate
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Write the component here instead of DIR/NAME.wasm
    #[arg(short, long, value_name = "FILE.wasm")]
    output: Option<PathBuf>,
    /// What a Rust plugin is built for
    #[arg(long, value_name = "TARGET", default_value = toolchain::TARGET, value_parser = [toolchain::TARGET, "wasm32-wasip2"])]
    target: String,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    version: &'a str,
    world: &'static str,
    file: String,
    size: usize,
    sha256: &'a str,
    imports: &'a [String],
    build_seconds: f64,
    load_seconds: f64,
}

impl Build {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let host = global.plugin_host()?;
        let quiet = global.quiet;
        let said = std::sync::Mutex::new(Vec::new());
        let say = |line: &str| match quiet {
            // Told after all if it fails.
            true => said.lock().unwrap_or_else(|e| e.into_inner()).push(line.to_owned()),
            false => eprintln!("{}", printable(line)),
        };
        let built = match build::run(&host, &self.folder, self.output.as_deref(), &self.target, &say) {
            Ok(built) => built,
            Err(BuildError::Missing(missing)) => {
                for missing in missing {
                    eprintln!("tracemend: {missing}");
                }
                return Ok(Outcome::Code(2));
            }
            Err(error @ BuildError::Folder(_)) => return Err(anyhow!(error)),
            Err(error) => {
                for line in said.into_inner().unwrap_or_default() {
                    eprintln!("{}", printable(&line));
                }
                eprintln!("tracemend: {}", one_line(&error.to_string()));
                return Ok(Outcome::BadNews);
            }
        };
        self.show(&built)?;
        Ok(Outcome::Done)
    }

    fn show(&self, built: &Built) -> Result<()> {
        let plugin = &built.plugin;
        let file = built.file.to_string_lossy().into_owned();
        let mut out = io::stdout().lock();
        if self.json {
            let report = Report {
                name: plugin.name(),
                version: &plugin.description.version,
                world: plugin.world.as_str(),
                file,
                size: plugin.size,
                sha256: &plugin.sha256,
                imports: &plugin.imports,
                build_seconds: built.tool_time.as_secs_f64(),
                load_seconds: built.load_time.as_secs_f64(),
            };
            serde_json::to_writer_pretty(&mut out, &report)?;
            writeln!(out)?;
            return Ok(());
        }
        writeln!(
            out,
            "{} {} ({}): {}, {} bytes",
            plugin.name(),
            printable(&plugin.description.version),
            plugin.world,
            printable(&file),
            plugin.size
        )?;
        writeln!(out, "imports {}", printable(&super::imports(plugin)))?;
        writeln!(
            out,
            "built in {:.1} s, loaded in {:.0} ms ({})",
            built.tool_time.as_secs_f64(),
            built.load_time.as_secs_f64() * 1e3,
            super::cached(plugin.from_cache)
        )?;
        Ok(())
    }
}
