//! Which groups of ranks get a collective report, and why others do not.

use super::generator::Generator;
use super::job::{Job, Work};
use super::stem::Stems;
use crate::bytes::Verdict;
use crate::ranks::{Assignment, Conflict, Group};
use crate::traces::{Kind, Run};

/// One job for each group that holds two Kineto traces or more.
pub(super) fn collective_jobs(run: &Run, assignment: &Assignment, stems: &mut Stems) -> Vec<Job> {
    let is_kineto = |index: &usize| run.traces[*index].kind == Kind::Kineto;
    let count = |group: &Group| members(group).filter(is_kineto).count();
    let groups = assignment.groups.iter().map(|group| (group, count(group)));
    let groups: Vec<(&Group, usize)> = groups.filter(|&(_, count)| count >= 2).collect();
    let only = groups.len() == 1;
    groups
        .into_iter()
        .map(|(group, count)| collective(run, assignment, group, count, only, stems))
        .collect()
}

fn members(group: &Group) -> impl Iterator<Item = usize> {
    group.ranks.values().flatten().chain(&group.unranked).copied()
}

/// A collective report needs exactly one trace of each rank 0..N-1, N >= 2: TraceLens takes what it finds, in whatever order, and
/// reports swapped ranks without a word (facts/tracelens.md section 4).
fn collective(run: &Run, assignment: &Assignment, group: &Group, count: usize, only: bool, stems: &mut Stems) -> Job {
    let stem = if only {
        "multi_rank_collective".to_owned()
    } else {
        format!("multi_rank_collective_{}", group.name)
    };
    let mut job = |label: String, work: Work, traces: Vec<usize>| Job {
        label,
        kind: "pytorch",
        work,
        gpus_per_node: gpus_per_node(assignment, &traces),
        traces,
        group: group.name.clone(),
        rank: None,
        generator: Some(Generator::Collective),
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

/// How many ranks each node holds, if the nodes of all are known, each holds as many, and one node's ranks follow each other: that
/// is what TraceLens takes a number of GPUs a node for (rank / number = node).
fn gpus_per_node(assignment: &Assignment, set: &[usize]) -> Option<usize> {
    let nodes: Option<Vec<&str>> = set
        .iter()
        .map(|&index| assignment.traces[index].node.as_deref())
        .collect();
    even_nodes(&nodes?)
}

/// `nodes` by rank.
fn even_nodes(nodes: &[&str]) -> Option<usize> {
    let of_first = nodes
        .iter()
        .take_while(|node| *node == nodes.first().unwrap_or(node))
        .count();
    let blocks: Vec<&[&str]> = nodes.chunks(of_first.max(1)).collect();
    let of_one_node = |block: &&[&str]| block.len() == of_first && block.iter().all(|node| *node == block[0]);
    let mut names: Vec<&str> = blocks.iter().map(|block| block[0]).collect();
    names.sort_unstable();
    let distinct = names.windows(2).all(|pair| pair[0] != pair[1]);
    (!blocks.is_empty() && distinct && blocks.iter().all(of_one_node)).then_some(of_first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_folded() {
        assert_eq!(ranks(&[3]), "rank 3");
        assert_eq!(ranks(&[0, 1, 2, 5, 6, 9]), "ranks 0-2, 5, 6, 9");
    }

    #[test]
    fn nodes_count_where_they_are_even_and_in_order() {
        assert_eq!(even_nodes(&["a", "a", "b", "b"]), Some(2));
        assert_eq!(even_nodes(&["a", "a", "a"]), Some(3));
        assert_eq!(even_nodes(&["a", "b", "c"]), Some(1));
        assert_eq!(even_nodes(&["a", "b", "a", "b"]), None);
        assert_eq!(even_nodes(&["a", "a", "b"]), None);
        assert_eq!(even_nodes(&["a", "b", "b"]), None);
        assert_eq!(even_nodes(&[]), None);
    }
}
