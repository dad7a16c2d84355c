//! From an assignment to jobs.

use std::collections::BTreeMap;

use super::generator::Generator;
use super::job::{Job, Work};
use super::stem::Stems;
use crate::bytes::{Root, Verdict};
use crate::ranks::{Assignment, Conflict, Group};
use crate::traces::{Kind, Run, TraceFile};

/// Which reports are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All.
    Auto,
    /// Those on Kineto traces, the collective one included.
    Pytorch,
    /// Those on rocprofv3 traces.
    Rocprof,
    /// The collective ones only.
    Collective,
}

impl Mode {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::Pytorch => "pytorch",
            Mode::Rocprof => "rocprof",
            Mode::Collective => "collective",
        }
    }
}

/// The jobs of a run, in the order of their rows.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// Makes the jobs for a run. With `tracelens` they are TraceLens's, else the embedded reporter's, which makes no collective report.
pub fn plan(run: &Run, assignment: &Assignment, mode: Mode, tracelens: bool) -> Plan {
    let mut stems = Stems::default();
    let mut jobs = Vec::new();
    let wanted = |kind: Kind| match mode {
        Mode::Auto => true,
        Mode::Pytorch => kind == Kind::Kineto,
        Mode::Rocprof => kind == Kind::Rocprof,
        Mode::Collective => false,
    };
    for (index, trace) in run.traces.iter().enumerate().filter(|(_, trace)| wanted(trace.kind)) {
        let assigned = &assignment.traces[index];
        if trace.kind == Kind::Other && assigned.by.is_some() {
            // A policy knows it, for example a capture manifest: nothing to report on, and nothing to complain about.
            continue;
        }
        jobs.push(Job {
            label: trace.display_path(),
            kind: row_kind(trace),
            work: work(trace, assigned.role.as_deref(), tracelens),
            traces: vec![index],
            group: if assigned.rank.is_some() {
                assigned.group.clone()
            } else {
                String::new()
            },
            rank: assigned.rank,
            stem: stems.of_trace(&trace.path),
        });
    }
    jobs.sort_by_key(|job| job.kind);
    if tracelens && matches!(mode, Mode::Auto | Mode::Pytorch | Mode::Collective) {
        let of_kineto: Vec<(&Group, usize)> = assignment
            .groups
            .iter()
            .map(|group| {
                (
                    group,
                    members(group)
                        .filter(|&index| run.traces[index].kind == Kind::Kineto)
                        .count(),
                )
            })
            .filter(|&(_, count)| count >= 2)
            .collect();
        let only = of_kineto.len() == 1;
        for (group, count) in of_kineto {
            jobs.push(collective(run, group, count, only, &mut stems));
        }
    }
    Plan { jobs }
}

fn members(group: &Group) -> impl Iterator<Item = usize> {
    group.ranks.values().flatten().chain(&group.unranked).copied()
}

fn row_kind(trace: &TraceFile) -> &'static str {
    match trace.kind {
        Kind::Kineto => "pytorch",
        Kind::Rocprof => "rocprof_json",
        Kind::Pftrace => "pftrace",
        Kind::ExecutionTrace | Kind::Other => "unsupported",
    }
}

fn work(trace: &TraceFile, role: Option<&str>, tracelens: bool) -> Work {
    let findings = &trace.findings;
    if findings.verdict == Verdict::Refused {
        let reason = findings.reason.as_deref().unwrap_or("it cannot be mended");
        return Work::Fail(format!("refused: {reason}"));
    }
    match trace.kind {
        Kind::Pftrace => Work::Skip("reports on Perfetto protobufs are not made yet; open the file in ui.perfetto.dev".into()),
        Kind::ExecutionTrace => Work::Skip("an execution trace holds no timings to report on".into()),
        Kind::Other if findings.root == Some(Root::Array) => Work::Skip(
            "a bare array of events, as PyTorch builds without Kineto write it; it can hold no GPU events, and TraceLens cannot read it".into(),
        ),
        Kind::Other => Work::Skip("it is no trace".into()),
        Kind::Kineto | Kind::Rocprof if trace.gpu_events == Some(false) => Work::Skip(match role {
            Some("launcher") => "no GPU activity: the torchrun launcher registers with dynolog as well and gets a trace of its own".into(),
            _ => "no GPU activity in the trace (a launcher, a CPU-only process, or a capture window without kernels)".into(),
        }),
        _ if !tracelens => Work::BuiltIn,
        Kind::Kineto => Work::TraceLens(Generator::Pytorch),
        Kind::Rocprof => Work::TraceLens(Generator::Rocprof),
    }
}

/// A collective report needs exactly one trace of each rank 0..N-1, N >= 2: TraceLens takes what it finds, in whatever order, and
/// reports swapped ranks without a word (facts/tracelens.md section 4).
fn collective(run: &Run, group: &Group, count: usize, only: bool, stems: &mut Stems) -> Job {
    let stem = if only {
        "multi_rank_collective".to_owned()
    } else {
        format!("multi_rank_collective_{}", group.name)
    };
    let mut job = |label: String, work: Work, traces: Vec<usize>| Job {
        label,
        kind: "pytorch",
        work,
        traces,
        group: group.name.clone(),
        rank: None,
        stem: stems.unique(&stem),
    };
    let why = match group.complete_set().filter(|set| set.len() >= 2) {
        None => why_incomplete(run, group, count),
        Some(set) => {
            let of_other_kind = set.iter().position(|&index| run.traces[index].kind != Kind::Kineto);
            let refused = set
                .iter()
                .position(|&index| run.traces[index].findings.verdict == Verdict::Refused);
            match (of_other_kind, refused) {
                (None, None) => {
                    return job(
                        format!("{} per-rank traces", set.len()),
                        Work::TraceLens(Generator::Collective),
                        set,
                    );
                }
                (Some(rank), _) => {
                    format!(
                        "rank {rank} is {}, no Kineto trace",
                        run.traces[set[rank]].display_path()
                    )
                }
                (_, Some(rank)) => {
                    format!("rank {rank} cannot be mended: {}", run.traces[set[rank]].display_path())
                }
            }
        }
    };
    job(
        format!("{count} PyTorch traces"),
        Work::Skip(format!("no collective report: {why}")),
        Vec::new(),
    )
}

fn why_incomplete(run: &Run, group: &Group, count: usize) -> String {
    let ranked: usize = group.ranks.values().map(Vec::len).sum();
    if ranked == 0 {
        return format!(
            "no trace in {} says whose it is, neither in its content nor in its name (dynolog names traces after process ids)",
            group.name
        );
    }
    let mut reasons = Vec::new();
    if !group.missing.is_empty() {
        reasons.push(format!("{} missing of {}", ranks(&group.missing), group.world_size));
    }
    for conflict in &group.conflicts {
        match conflict {
            Conflict::Duplicate { rank, traces } => {
                let paths: Vec<String> = traces.iter().map(|&index| run.traces[index].display_path()).collect();
                reasons.push(format!("rank {rank} is claimed by {}", paths.join(" and ")));
            }
            Conflict::OutsideWorld { rank, world_size } => {
                reasons.push(format!("rank {rank} lies outside a world of {world_size}"));
            }
            Conflict::Disagreement { .. } | Conflict::WorldSizes(_) => {}
        }
    }
    if !group.unranked.is_empty() {
        reasons.push(format!("only {ranked} of {count} say whose they are"));
    }
    if reasons.is_empty() {
        reasons.push(format!("it holds {ranked} rank, and there is nothing to compare"));
    }
    reasons.join("; ")
}

/// `ranks 0-3, 7`, folded, at most ten stretches.
pub fn ranks(ranks: &[u32]) -> String {
    let mut stretches: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match stretches.last_mut() {
            Some((_, last)) if rank == *last + 1 => *last = rank,
            _ => stretches.push((rank, rank)),
        }
    }
    let more = stretches.len().saturating_sub(10);
    let shown = stretches.iter().take(10).map(|&(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    });
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    let tail = if more > 0 {
        format!(" and {more} more stretches")
    } else {
        String::new()
    };
    format!("{word} {}{tail}", shown.collect::<Vec<_>>().join(", "))
}

/// How many traces of each row kind a run holds.
pub fn discovered(run: &Run) -> BTreeMap<&'static str, usize> {
    run.traces.iter().fold(BTreeMap::new(), |mut counts, trace| {
        *counts.entry(row_kind(trace)).or_default() += 1;
        counts
    })
}

#[cfg(test)]
mod tests {
    use super::ranks;

    #[test]
    fn ranks_are_folded() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&[0, 1, 2, 5, 6, 9]), "ranks 0-2, 5, 6, 9");
    }
}
