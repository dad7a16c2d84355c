//! Which traces belong together, where folders alone do not say it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::assignment::Assigned;
use crate::traces::Run;

/// Puts folders together that hold parts of one job, as a run writes them that keeps a folder for each node or rank: siblings
/// whose ranks do not overlap, which name one world size, and none of which holds it whole. Only content can prove that, so a
/// folder with a rank of unknown world size is left alone.
pub(super) fn merge_split_folders(traces: &mut [Assigned]) {
    struct Folder {
        world_size: u32,
        ranks: BTreeSet<u32>,
        is_part: bool,
    }
    let mut folders: BTreeMap<String, Folder> = BTreeMap::new();
    for trace in traces.iter() {
        let Some(rank) = trace.rank else { continue };
        let world_size = trace.world_size.unwrap_or(0);
        let folder = folders.entry(trace.group.clone()).or_insert(Folder {
            world_size,
            ranks: BTreeSet::new(),
            is_part: true,
        });
        folder.is_part &= world_size == folder.world_size && rank < world_size && folder.ranks.insert(rank);
    }
    let mut siblings: BTreeMap<(String, u32), Vec<&String>> = BTreeMap::new();
    for (name, folder) in &folders {
        if folder.is_part && (folder.ranks.len() as u64) < u64::from(folder.world_size) && name != "." {
            let parent = name.rsplit_once('/').map_or(".", |(parent, _)| parent);
            siblings
                .entry((parent.to_owned(), folder.world_size))
                .or_default()
                .push(name);
        }
    }
    let mut merged: BTreeMap<String, String> = BTreeMap::new();
    for ((parent, _), names) in siblings.iter().filter(|(_, names)| names.len() > 1) {
        let mut seen = BTreeSet::new();
        if names
            .iter()
            .flat_map(|name| &folders[*name].ranks)
            .all(|rank| seen.insert(*rank))
        {
            merged.extend(names.iter().map(|name| ((*name).clone(), parent.clone())));
        }
    }
    for trace in traces {
        if let Some(parent) = merged.get(&trace.group) {
            trace.group.clone_from(parent);
        }
    }
}

/// A job that is profiled several times leaves several traces of each rank in one folder, told apart by a time in the name
/// (facts/traces.md B20). They are separate captures where each rank has equally many, and every trace of one capture is older
/// than every trace of the next; anything else stays a rank claimed twice.
pub(super) fn split_captures(run: &Run, traces: &mut [Assigned]) {
    let mut groups: BTreeMap<String, BTreeMap<u32, Vec<(u128, usize)>>> = BTreeMap::new();
    let mut without_time = BTreeSet::new();
    for (index, trace) in traces.iter().enumerate() {
        let Some(rank) = trace.rank else { continue };
        match time_in_name(&run.traces[index].path) {
            Some(time) => groups
                .entry(trace.group.clone())
                .or_default()
                .entry(rank)
                .or_default()
                .push((time, index)),
            None => {
                without_time.insert(trace.group.clone());
            }
        }
    }
    for (group, mut ranks) in groups.into_iter().filter(|(group, _)| !without_time.contains(group)) {
        let captures = ranks.values().map(Vec::len).max().unwrap_or(0);
        if captures < 2 || ranks.values().any(|of_rank| of_rank.len() != captures) {
            continue;
        }
        ranks.values_mut().for_each(|of_rank| of_rank.sort_unstable());
        let times = |capture: usize| ranks.values().map(move |of_rank| of_rank[capture].0);
        if (1..captures).all(|capture| times(capture - 1).max() < times(capture).min()) {
            for of_rank in ranks.values() {
                for (capture, (_, index)) in of_rank.iter().enumerate() {
                    traces[*index].group = format!("{group} capture {}", capture + 1);
                }
            }
        }
    }
}

/// The last number of a file's name that is long enough to be a time since 1970 in milliseconds or finer.
fn time_in_name(path: &Path) -> Option<u128> {
    let name = path.file_name()?.to_string_lossy();
    let mut numbers = name.split(|c: char| !c.is_ascii_digit());
    numbers.rfind(|digits| (13..=20).contains(&digits.len()))?.parse().ok()
}

/// A sort key for names: stretches of text, and numbers by their value, so that `iteration_5` comes before `iteration_10`.
pub fn in_natural_order(name: &str) -> Vec<(String, u128)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[text..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |end| text + end);
        // A number beyond 128 bits sorts last among its like; the name itself still tells it from others.
        let number = rest[text..digits]
            .parse()
            .unwrap_or(if text == digits { 0 } else { u128::MAX });
        parts.push((rest[..text].to_owned(), number));
        rest = &rest[digits..];
    }
    parts.push((name.to_owned(), 0));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(group: &str, rank: u32, world_size: Option<u32>) -> Assigned {
        Assigned {
            role: None,
            rank: Some(rank),
            world_size,
            group: group.into(),
            node: None,
            by: None,
            evidence: String::new(),
        }
    }

    fn groups(mut traces: Vec<Assigned>) -> Vec<String> {
        merge_split_folders(&mut traces);
        traces.into_iter().map(|trace| trace.group).collect()
    }

    #[test]
    fn node_folders_of_one_job_come_together() {
        let traces = (0..4)
            .map(|rank| trace(&format!("job/node{}", rank / 2), rank, Some(4)))
            .collect();
        assert_eq!(groups(traces), ["job"; 4]);
    }

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = ["iteration_10", "iteration_5", "iteration_05", "b", "a2c10", "a2c9"];
        names.sort_by_cached_key(|name| in_natural_order(name));
        assert_eq!(
            names,
            ["a2c9", "a2c10", "b", "iteration_05", "iteration_5", "iteration_10"]
        );
    }

    #[test]
    fn folders_that_may_be_other_jobs_stay_apart() {
        let same_rank_twice = vec![trace("a", 0, Some(2)), trace("b", 0, Some(2))];
        assert_eq!(groups(same_rank_twice), ["a", "b"]);
        let whole = vec![trace("a", 0, Some(1)), trace("b", 0, Some(1))];
        assert_eq!(groups(whole), ["a", "b"]);
        let unproved = vec![trace("a", 0, None), trace("b", 1, None)];
        assert_eq!(groups(unproved), ["a", "b"]);
        let other_world_size = vec![trace("a", 0, Some(2)), trace("b", 1, Some(4))];
        assert_eq!(groups(other_world_size), ["a", "b"]);
    }
}
