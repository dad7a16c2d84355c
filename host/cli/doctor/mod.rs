//! `tracemend doctor`

mod places;
mod programs;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::text::printable;
use super::tracelens::TraceLensOptions;
use super::{Global, Outcome, Policies};

#[derive(Debug, Args)]
pub struct Doctor {
    #[command(flatten)]
    tracelens: TraceLensOptions,
    /// Perfetto's converter, if not beside the interpreter or on PATH
    #[arg(long, value_name = "PROGRAM")]
    traceconv: Option<PathBuf>,
    /// The port of this machine's dynolog [DYNOLOG_PORT, else 1778]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    #[command(flatten)]
    policies: Policies,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// How one thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    /// As it should be.
    Ok,
    /// Not there, or not all that it could be; something is done without.
    Note,
    /// Wrong: what was asked for, or is always needed, will fail.
    Bad,
}

/// One thing looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: String,
    status: Status,
    /// What was found.
    found: String,
    /// What to do about it, if anything.
    advice: Option<String>,
}

impl Check {
    fn ok(name: &str, found: impl Into<String>) -> Self {
        Check {
            name: name.to_owned(),
            status: Status::Ok,
            found: found.into(),
            advice: None,
        }
    }

    fn note(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Check {
            status: Status::Note,
            advice: Some(advice.into()),
            ..Check::ok(name, found)
        }
    }

    fn bad(name: &str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Check {
            status: Status::Bad,
            ..Check::note(name, found, advice)
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    checks: &'a [Check],
    bad: usize,
}

impl Doctor {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let mut checks = Vec::new();
        let scratch = places::scratch(&mut checks);
        match &scratch {
            Some(scratch) => {
                programs::tracelens(&mut checks, &self.tracelens, self.traceconv.as_deref(), scratch.path())
            }
            None => checks.push(Check::note(
                "tracelens",
                "not looked at",
                "it needs scratch space to run in; mend that first",
            )),
        }
        programs::dynolog(&mut checks, self.port);
        places::plugins(&mut checks, &self.policies, global);
        places::cache(&mut checks);

        let bad = checks.iter().filter(|check| check.status == Status::Bad).count();
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &Document { checks: &checks, bad })?;
            writeln!(out)?;
        } else {
            for check in checks
                .iter()
                .filter(|check| !global.quiet || check.status != Status::Ok)
            {
                write(&mut out, check)?;
            }
        }
        Ok(Outcome::bad_news_if(bad > 0))
    }
}

fn write(out: &mut dyn Write, check: &Check) -> io::Result<()> {
    let status = match check.status {
        Status::Ok => "ok",
        Status::Note => "note",
        Status::Bad => "BAD",
    };
    writeln!(out, "{status:4}  {:11}  {}", check.name, printable(&check.found))?;
    match &check.advice {
        Some(advice) => writeln!(out, "{:19}{}", "", printable(advice)),
        None => Ok(()),
    }
}
