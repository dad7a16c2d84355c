//! `tracemend scan`

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use clap::Args;

use super::checks::Checks;
use super::findings::{FileFindings, describe};
use super::text::{count, printable, progress_bar};
use super::{Global, Outcome};
use crate::bytes::{self, Findings, Options, Verdict};
use crate::traces::{Kind, KindObserver, Run, discover};

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
        let mut runs = self.discover_all(&options, global.quiet).into_iter();
        for path in &self.paths {
            if path == Path::new("-") {
                let mut observer = KindObserver::default();
                let findings = bytes::scan(io::stdin(), &options, &mut observer)?;
                self.show(&mut out, &mut tally, path, observer.kind(), findings.size, &findings)?;
                continue;
            }
            // One path that is not there does not cost the others their scan.
            let run = match runs.next() {
                Some(Ok(run)) => run,
                Some(Err(error)) => {
                    if let Some(earlier) = missing.replace(error) {
                        eprintln!("tracemend: {}", super::one_line(&format!("{earlier:#}")));
                    }
                    continue;
                }
                None => break,
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

    /// The runs of all paths but standard input, in their order, several at a time.
    fn discover_all(&self, options: &Options, quiet: bool) -> Vec<Result<Run>> {
        let paths: Vec<&PathBuf> = self
            .paths
            .iter()
            .filter(|path| path.as_path() != Path::new("-"))
            .collect();
        let bar = progress_bar(quiet, "scanning");
        let progress = |done: usize, all: usize| {
            // Each path tells its own total once it is known, with its first trace.
            if done == 1 {
                bar.inc_length(all as u64);
            }
            bar.inc(1);
        };
        let next = AtomicUsize::new(0);
        let found: Vec<OnceLock<Result<Run>>> = paths.iter().map(|_| OnceLock::new()).collect();
        let workers = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(paths.len());
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(index) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < paths.len())
                    {
                        // Nobody else has this index.
                        let _ = found[index].set(discover(paths[index], None, options, &progress));
                    }
                });
            }
        });
        bar.finish_and_clear();
        found.into_iter().filter_map(OnceLock::into_inner).collect()
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
