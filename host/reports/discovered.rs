//! What a run holds, by the kinds of the summary.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::bytes::{Root, Verdict};
use crate::ranks::{Assigned, Assignment, in_natural_order};
use crate::traces::{Kind, Run, TraceFile};

/// What a run holds (facts/seed.md section 2.7).
#[derive(Debug, Clone, Default)]
pub struct Discovered {
    /// Positions in the run of the traces of a kind that reports are made of, by kind and then by path.
    pub traces: Vec<usize>,
    /// Traces by kind.
    pub counts: BTreeMap<&'static str, usize>,
    /// Files of which no report can be made.
    pub unsupported: Vec<Unreported>,
    /// Traces left out because there are too many of their kind.
    pub left_out: usize,
}

/// A file of which no report can be made.
#[derive(Debug, Clone)]
pub struct Unreported {
    /// Path relative to the run.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
    /// Whether it must have been a trace: then a report is lost.
    pub is_lost: bool,
    /// Its position in the run, if it stands among the traces.
    pub index: Option<usize>,
}

/// Sorts a run's files by what can be made of them. Of each kind the first `max` are taken, in natural order of their paths.
pub fn discovered(run: &Run, assignment: &Assignment, max: Option<usize>) -> Discovered {
    let mut found = Discovered::default();
    let mut order: Vec<usize> = (0..run.traces.len()).collect();
    order.sort_by_cached_key(|&index| in_natural_order(&run.traces[index].display_path()));
    for index in order {
        let trace = &run.traces[index];
        if let Some(reason) = why_unsupported(trace, &assignment.traces[index]) {
            found.unsupported.extend(reason.map(|(reason, is_lost)| Unreported {
                path: trace.path.clone(),
                reason,
                is_lost,
                index: Some(index),
            }));
            continue;
        }
        let count = found.counts.entry(row_kind(trace.kind)).or_default();
        if max.is_some_and(|max| *count >= max) {
            found.left_out += 1;
        } else {
            *count += 1;
            found.traces.push(index);
        }
    }
    found.unsupported.extend(run.unsupported.iter().map(|file| Unreported {
        path: file.path.clone(),
        reason: file.reason.to_owned(),
        is_lost: false,
        index: None,
    }));
    found
        .traces
        .sort_by(|&a, &b| by_kind_and_path(run, a).cmp(&by_kind_and_path(run, b)));
    found.unsupported.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn by_kind_and_path(run: &Run, index: usize) -> (&'static str, &Path) {
    (row_kind(run.traces[index].kind), &run.traces[index].path)
}

/// The name that the summary has for files of which no report can be made.
pub(super) const UNSUPPORTED: &str = "unsupported";

/// The name of a kind in the summary.
pub fn row_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Kineto => "pytorch",
        Kind::Rocprof => "rocprof_json",
        Kind::Pftrace => "pftrace",
        Kind::XPlane => "jax",
        Kind::ExecutionTrace | Kind::Other => UNSUPPORTED,
    }
}

/// None: it is of a kind that reports are made of. Else why not, and whether it must have been such a trace; nothing where there
/// is nothing to complain about, since a policy knows the file, for example a capture manifest.
fn why_unsupported(trace: &TraceFile, assigned: &Assigned) -> Option<Option<(String, bool)>> {
    let findings = &trace.findings;
    let reason = match trace.kind {
        Kind::Kineto | Kind::Rocprof | Kind::Pftrace | Kind::XPlane => return None,
        Kind::Other if assigned.by.is_some() => return Some(None),
        _ if findings.verdict == Verdict::Refused => {
            let reason = findings.reason.as_deref().unwrap_or("it cannot be mended");
            return Some(Some(match is_named_like_a_trace(&trace.path) {
                true => (format!("refused: {reason}"), true),
                false => (format!("it is no trace: {reason}"), false),
            }));
        }
        Kind::ExecutionTrace => "an execution trace holds no timings to report on",
        Kind::Other if findings.root == Some(Root::Array) => {
            "a bare array of events, as PyTorch builds without Kineto write it; it can hold no GPU events, and TraceLens cannot read it"
        }
        Kind::Other => "it is no trace",
    };
    Some(Some((reason.to_owned(), false)))
}

/// Whether a file of which nothing can be made out was a trace, by what profilers call theirs. Others, such as a log in lines of
/// JSON, are no report lost.
fn is_named_like_a_trace(path: &Path) -> bool {
    let path = path.to_string_lossy().to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    ["trace", "rank", "kineto", "profile", "_results."]
        .iter()
        .any(|part| name.contains(part))
        || path.contains("torch_profiler_output/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_traces_are_known() {
        let named = |path: &str| is_named_like_a_trace(Path::new(path));
        for path in [
            "a/libkineto_trace_1.json",
            "x.pt.trace.json.gz",
            "RANK0.json",
            "torch_profiler_output/a.json",
            "9_results.json",
        ] {
            assert!(named(path), "{path}");
        }
        assert!(!named("rank0/metrics.json") && !named("config.json"));
    }
}
