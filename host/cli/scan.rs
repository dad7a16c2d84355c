//! `tracemend scan`

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::findings::{FileFindings, describe};
use super::text::{count, printable, progress_bar};
use super::{Global, Outcome};
use crate::bytes::{self, Check, Findings, Options, Verdict};
use crate::traces::{Kind, KindObserver, discover};

#[derive(Debug, Args)]
pub struct Scan {
    /// Traces, or folders to look for traces in; `-` reads standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    checks: Checks,
    /// Print one JSON document a file and line
    #[arg(long)]
    json: bool,
}

/// What is looked for, and how much of it is shown.
#[derive(Debug, Args)]
pub(super) struct Checks {
    /// Look for one class of damage only
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// List at most this many flaws of a file one by one; all are counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) list: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Only {
    /// Ill-formed UTF-8
    Utf8,
}

impl Checks {
    pub(super) fn options(&self) -> Options {
        let check = if self.only.is_some() { Check::Utf8 } else { Check::Json };
        Options {
            check,
            listed: self.list,
        }
    }
}

#[derive(Default)]
struct Tally {
    clean: usize,
    damaged: usize,
    refused: usize,
    skipped: usize,
}

impl Scan {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let options = self.checks.options();
        let mut out = BufWriter::new(io::stdout().lock());
        let mut tally = Tally::default();
        let mut missing = None;
        for path in &self.paths {
            if path == Path::new("-") {
                let mut observer = KindObserver::default();
                let findings = bytes::scan(io::stdin().lock(), &options, &mut observer)?;
                self.show(&mut out, &mut tally, path, observer.kind(), findings.size, &findings)?;
                continue;
            }
            let bar = progress_bar(global.quiet, "scanning");
            let found = discover(path, None, &options, &|done, all| {
                bar.set_length(all as u64);
                bar.set_position(done as u64);
            });
            bar.finish_and_clear();
            // One path that is not there does not cost the others their scan.
            let run = match found {
                Ok(run) => run,
                Err(error) => {
                    if let Some(earlier) = missing.replace(error) {
                        eprintln!("tracemend: {}", super::one_line(&format!("{earlier:#}")));
                    }
                    continue;
                }
            };
            let shown = |relative: &Path| {
                if path.is_file() {
                    path.clone()
                } else {
                    path.join(relative)
                }
            };
            for trace in &run.traces {
                let path = shown(&trace.path);
                self.show(
                    &mut out,
                    &mut tally,
                    &path,
                    trace.kind,
                    trace.stored_size,
                    &trace.findings,
                )?;
            }
            for skipped in &run.skipped {
                tally.skipped += 1;
                eprintln!(
                    "tracemend: {}: {}",
                    printable(&shown(&skipped.path).to_string_lossy()),
                    skipped.reason
                );
            }
            if run.traces.is_empty() && !global.quiet {
                eprintln!(
                    "tracemend: no traces found under {}",
                    printable(&path.to_string_lossy())
                );
            }
        }
        let all = tally.clean + tally.damaged + tally.refused;
        if !self.json && !global.quiet && all > 1 {
            writeln!(
                out,
                "{}: {} clean, {} damaged, {} refused",
                count(all, "trace"),
                tally.clean,
                tally.damaged,
                tally.refused
            )?;
        }
        out.flush()?;
        match missing {
            Some(error) => Err(error),
            None => Ok(Outcome::bad_news_if(tally.damaged + tally.refused + tally.skipped > 0)),
        }
    }

    fn show(
        &self,
        out: &mut dyn Write,
        tally: &mut Tally,
        path: &Path,
        kind: Kind,
        size: u64,
        findings: &Findings,
    ) -> Result<()> {
        match findings.verdict {
            Verdict::Clean => tally.clean += 1,
            Verdict::Damaged => tally.damaged += 1,
            Verdict::Refused => tally.refused += 1,
        }
        if self.json {
            serde_json::to_writer(&mut *out, &FileFindings::new(path, kind, size, findings))?;
            writeln!(out)?;
        } else {
            describe(out, path, kind, findings, self.checks.list)?;
        }
        Ok(())
    }
}
