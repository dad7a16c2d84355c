//! What an earlier run has already made.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::job::{Job, Work};
use super::outcome::check;
use super::record::{JobRecord, Record};
use super::summary::Status;

/// The jobs whose reports need not be made again, by their place in the plan: TraceLens made them, or found that there is none to
/// make, for the same traces in the same state with the same options, and all of it is still there. `earlier` is the record of the
/// reports in `output`, `record` that of this run, without jobs; its traces get the logs of edits that are there already.
pub fn kept(earlier: &Record, record: &mut Record, jobs: &[Job], output: &Path) -> BTreeMap<usize, JobRecord> {
    if earlier.reporter.options_sha256 != record.reporter.options_sha256 {
        return BTreeMap::new();
    }
    let traces = &record.traces;
    let known: HashMap<_, _> = earlier
        .traces
        .iter()
        .map(|trace| (&trace.identity.path, trace))
        .collect();
    let done: HashMap<_, _> = earlier
        .jobs
        .iter()
        .map(|job| ((job.row.tracelens_tool.as_str(), job.stem.as_str()), job))
        .collect();
    let unchanged = |index: &usize| {
        let now = &traces[*index];
        known
            .get(&now.identity.path)
            .is_some_and(|then| then.identity == now.identity)
    };
    let made_before = |job: &Job| {
        let Work::TraceLens(_) = job.work else { return None };
        let before = *done.get(&(job.tool(), job.stem.as_str()))?;
        let row = &before.row;
        let same_traces = before
            .traces
            .iter()
            .eq(job.traces.iter().map(|&index| &traces[index].identity.path));
        let same_place = (&row.trace_file, &row.group, row.rank) == (&job.label, &job.group, job.rank);
        let still_there = match row.status {
            Status::Success => {
                !before.outputs.is_empty() && before.outputs.iter().all(|name| check(&output.join(name)).is_ok())
            }
            Status::Skipped => true,
            Status::Failure => false,
        };
        (same_traces && same_place && still_there && job.traces.iter().all(unchanged)).then(|| JobRecord {
            kept: true,
            ..before.clone()
        })
    };
    let kept: BTreeMap<usize, JobRecord> = jobs
        .iter()
        .enumerate()
        .filter_map(|(place, job)| Some((place, made_before(job)?)))
        .collect();
    for &index in kept.keys().flat_map(|&place| &jobs[place].traces) {
        let trace = &mut record.traces[index];
        trace.edits = known.get(&trace.identity.path).and_then(|known| known.edits.clone());
    }
    kept
}
