//! Runs whose ranks lie in several folders.

use std::collections::{BTreeMap, BTreeSet};

use super::assignment::Assigned;

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
