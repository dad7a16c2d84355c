//! `tracemend interpret`

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use super::text::printable;
use super::{Global, Outcome};
use crate::plugins::{Answer, RecordedCall};

#[derive(Debug, Args)]
pub struct Interpret {
    /// Recorded calls, one JSON object a line; `-` reads standard input
    #[arg(long, value_name = "FILE.jsonl")]
    calls: PathBuf,
    /// The interpreter plugin to ask instead of the cluster's, or the built-in dyno-cli
    #[arg(long, value_name = "FILE.wasm")]
    plugin: Option<PathBuf>,
    /// Print one JSON object a call and line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Interpreted<'a> {
    name: &'a str,
    verdict: &'static str,
    matched: &'a [i64],
    triggered: &'a [i64],
    busy: u32,
    reason: &'a str,
}

impl Interpret {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let site = global.site()?;
        let plugin = site.interpreter(self.plugin.as_deref())?;
        let input: Box<dyn BufRead> = if self.calls.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            let file = File::open(&self.calls).with_context(|| format!("cannot read {}", self.calls.display()))?;
            Box::new(BufReader::new(file))
        };
        let mut out = BufWriter::new(io::stdout().lock());
        let mut failed = false;
        for recorded in RecordedCall::read(input) {
            let (_, RecordedCall { name, call, .. }) = recorded.with_context(|| self.calls.display().to_string())?;
            match site.host.interpret(&plugin, &call, &[]) {
                Ok(answer) => self.show(&mut out, &name, &answer)?,
                Err(error) => {
                    failed = true;
                    eprintln!(
                        "tracemend: {}: {}",
                        printable(&name),
                        super::one_line(&error.to_string())
                    );
                }
            }
        }
        out.flush()?;
        Ok(Outcome::bad_news_if(failed))
    }

    fn show(&self, out: &mut dyn Write, name: &str, answer: &Answer) -> Result<()> {
        let verdict = answer.verdict.as_str();
        let Answer {
            matched,
            triggered,
            busy,
            reason,
            ..
        } = answer;
        if self.json {
            let line = Interpreted {
                name,
                verdict,
                matched,
                triggered,
                busy: *busy,
                reason,
            };
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        } else {
            let pids = if triggered.is_empty() {
                String::new()
            } else {
                format!(" triggered {triggered:?}")
            };
            writeln!(out, "{}: {verdict}{pids}: {}", printable(name), super::one_line(reason))?;
        }
        Ok(())
    }
}
