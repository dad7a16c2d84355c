//! `tracemend interpret`

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::text::printable;
use super::{Global, Outcome};
use crate::plugins::{Answer, Call, Verdict};

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

/// One line of the recording.
#[derive(Deserialize)]
struct Recorded {
    name: String,
    exit: Exit,
    stdout: Output,
    stderr: Output,
    #[serde(default = "first")]
    attempt: u32,
}

fn first() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Exit {
    Number(i32),
    Text(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Output {
    Text(String),
    Bytes { base64: String },
}

impl Output {
    fn bytes(self) -> Result<Vec<u8>> {
        match self {
            Output::Text(text) => Ok(text.into_bytes()),
            Output::Bytes { base64 } => STANDARD.decode(base64).context("not base64"),
        }
    }
}

impl Recorded {
    fn call(self) -> Result<(String, Call)> {
        let (mut exit_code, mut signal, mut timed_out) = (None, None, false);
        match self.exit {
            Exit::Number(code) => exit_code = Some(code),
            Exit::Text(text) => match text.parse::<i32>() {
                Ok(code) => exit_code = Some(code),
                Err(_) if text.starts_with("timeout") => timed_out = true,
                Err(_) => match text.strip_prefix("signal-").and_then(|number| number.parse().ok()) {
                    Some(number) => signal = Some(number),
                    None => bail!("exit {text:?} is neither a number, nor signal-N, nor timeout-..."),
                },
            },
        }
        let (stdout, stderr) = (
            self.stdout.bytes().context("stdout")?,
            self.stderr.bytes().context("stderr")?,
        );
        Ok((
            self.name,
            Call {
                exit_code,
                signal,
                timed_out,
                stdout,
                stderr,
                attempt: self.attempt,
            },
        ))
    }
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
        for (number, line) in input.lines().enumerate() {
            let place = || format!("{}, line {}", self.calls.display(), number + 1);
            let line = line.with_context(place)?;
            if line.trim().is_empty() {
                continue;
            }
            let recorded: Recorded = serde_json::from_str(&line).with_context(place)?;
            let (name, call) = recorded.call().with_context(place)?;
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
        let verdict = match answer.verdict {
            Verdict::Accepted => "accepted",
            Verdict::Waiting => "waiting",
            Verdict::Busy => "busy",
            Verdict::Unreachable => "unreachable",
            Verdict::Rejected => "rejected",
        };
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
