//! GPU figures where TraceLens makes the reports: the page of a run shows them whoever made those.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::builtin::{self, RunReport, RunTally, Source, TraceReport};
use super::generator::Generator;
use super::job::{Job, Work};
use crate::scratch::Scratch;
use crate::traces::Run;

/// What the GPUs did in the traces of those `jobs` that are TraceLens's reports on one trace. One pass over each trace, a small part
/// of the time that TraceLens takes for it; a trace that cannot be read so is in no figure.
pub fn figures(run: &Run, jobs: &[Job], scratch: &Scratch) -> RunReport {
    let is_one = |job: &&Job| matches!(job.work, Work::TraceLens(Generator::Pytorch | Generator::Rocprof));
    let jobs: Vec<&Job> = jobs.iter().filter(is_one).collect();
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<(usize, TraceReport)>> = Mutex::default();
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(jobs.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((number, job)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    jobs.get(number).map(|job| (number, job))
                } {
                    let report = job
                        .traces
                        .first()
                        .and_then(|&index| builtin::report(run, index, scratch.path()).ok());
                    if let Some(report) = report {
                        made.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((number, report));
                    }
                }
            });
        }
    });
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(number, _)| *number);
    let mut tally = RunTally::default();
    for (number, report) in &made {
        let Job { label, group, rank, .. } = jobs[*number];
        tally.add(
            Source {
                trace: label.clone(),
                group: group.clone(),
                rank: *rank,
            },
            report,
        );
    }
    tally.report()
}
