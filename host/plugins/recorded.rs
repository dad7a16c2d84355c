//! Recorded calls of `dyno gputrace`, one JSON object a line: what `interpret --calls` and `plugin check --cases` read.

use std::io::BufRead;

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use super::{Answer, Call, Verdict};

impl Verdict {
    /// The verdict's name in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Waiting => "waiting",
            Verdict::Busy => "busy",
            Verdict::Unreachable => "unreachable",
            Verdict::Rejected => "rejected",
        }
    }

    fn of_name(name: &str) -> Option<Verdict> {
        use Verdict::{Accepted, Busy, Rejected, Unreachable, Waiting};
        [Accepted, Waiting, Busy, Unreachable, Rejected]
            .into_iter()
            .find(|verdict| verdict.as_str() == name)
    }
}

/// One recorded call.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// What the recording calls it.
    pub name: String,
    /// The call as an interpreter gets it.
    pub call: Call,
    /// What the interpreter should say, if the recording knows.
    pub expected: Option<ExpectedAnswer>,
}

/// What an interpreter should answer; the reason is for people and not compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// Process ids that the daemon matched.
    pub matched: Vec<i64>,
    /// Process ids that will be traced.
    pub triggered: Vec<i64>,
    /// How many matched processes had a request pending.
    pub busy: u32,
}

impl From<&Answer> for ExpectedAnswer {
    fn from(answer: &Answer) -> Self {
        ExpectedAnswer {
            verdict: answer.verdict,
            matched: answer.matched.clone(),
            triggered: answer.triggered.clone(),
            busy: answer.busy,
        }
    }
}

#[derive(Deserialize)]
struct Line {
    name: String,
    exit: Exit,
    stdout: Output,
    stderr: Output,
    #[serde(default = "first_attempt")]
    attempt: u32,
    expected: Option<ExpectedLine>,
}

fn first_attempt() -> u32 {
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

#[derive(Deserialize)]
struct ExpectedLine {
    verdict: String,
    #[serde(default)]
    matched: Vec<i64>,
    #[serde(default)]
    triggered: Vec<i64>,
    #[serde(default)]
    busy: u32,
}

impl Output {
    fn bytes(self) -> Result<Vec<u8>> {
        match self {
            Output::Text(text) => Ok(text.into_bytes()),
            Output::Bytes { base64 } => BASE64_STANDARD.decode(base64).context("not base64"),
        }
    }
}

impl RecordedCall {
    /// The calls recorded in `input`, each with its line number, from 1; empty lines are skipped. An error names its line.
    pub fn read(input: impl BufRead) -> impl Iterator<Item = Result<(usize, RecordedCall)>> {
        input
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.as_ref().is_ok_and(|line| line.trim().is_empty()))
            .map(|(index, line)| {
                let number = index + 1;
                let recorded = line.map_err(Into::into).and_then(|line| RecordedCall::parse(&line));
                Ok((number, recorded.with_context(|| format!("line {number}"))?))
            })
    }

    fn parse(line: &str) -> Result<Self> {
        let line: Line = serde_json::from_str(line)?;
        let (mut exit_code, mut signal, mut timed_out) = (None, None, false);
        match line.exit {
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
        let expected = line.expected.map(|expected| {
            let verdict = Verdict::of_name(&expected.verdict).ok_or_else(|| {
                anyhow!(
                    "there is no verdict {:?}: accepted, waiting, busy, unreachable or rejected is wanted",
                    expected.verdict
                )
            })?;
            Ok::<_, anyhow::Error>(ExpectedAnswer {
                verdict,
                matched: expected.matched,
                triggered: expected.triggered,
                busy: expected.busy,
            })
        });
        Ok(RecordedCall {
            name: line.name,
            call: Call {
                exit_code,
                signal,
                timed_out,
                stdout: line.stdout.bytes().context("stdout")?,
                stderr: line.stderr.bytes().context("stderr")?,
                attempt: line.attempt,
            },
            expected: expected.transpose()?,
        })
    }
}
