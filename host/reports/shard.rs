//! A part of a run's jobs, for a job array or an indexed job: every part is worked out from the whole run alone, so that nobody has
//! to hand them out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::job::Job;
use super::plan::Plan;
use super::record::ShardUse;
use crate::traces::Run;

/// The jobs of `plan` that shard `shard.index` of `shard.of` has to do. Jobs that share a trace or a group of ranks stay together.
/// The shares are even by the bytes of the traces as stored, and depend on nothing else but paths and groups: all shards come to
/// the same division.
pub fn share(plan: Plan, run: &Run, shard: ShardUse) -> Plan {
    let bundles = bundles(&plan.jobs);
    let weighed = bundles.iter().map(|bundle| {
        let mut traces: Vec<usize> = bundle.iter().flat_map(|&job| &plan.jobs[job].traces).copied().collect();
        traces.sort_unstable();
        traces.dedup();
        traces.iter().map(|&index| run.traces[index].stored_size).sum()
    });
    let chosen = divide(&weighed.collect::<Vec<u64>>(), shard.of as usize);
    let ours: Vec<bool> = {
        let mut ours = vec![false; plan.jobs.len()];
        for (bundle, part) in bundles.iter().zip(chosen) {
            bundle.iter().for_each(|&job| ours[job] = part == shard.index as usize);
        }
        ours
    };
    Plan {
        jobs: plan
            .jobs
            .into_iter()
            .zip(ours)
            .filter_map(|(job, ours)| ours.then_some(job))
            .collect(),
        discovered: plan.discovered,
    }
}

/// Which jobs go together, by their place in the plan; bundles in the order of their first jobs.
fn bundles(jobs: &[Job]) -> Vec<Vec<usize>> {
    let mut bundle_of: Vec<usize> = (0..jobs.len()).collect();
    fn first(bundle_of: &mut [usize], job: usize) -> usize {
        let mut job = job;
        while bundle_of[job] != job {
            bundle_of[job] = bundle_of[bundle_of[job]];
            job = bundle_of[job];
        }
        job
    }
    let mut join = |known: Option<usize>, job: usize| {
        if let Some(known) = known {
            let (a, b) = (first(&mut bundle_of, known), first(&mut bundle_of, job));
            bundle_of[a.max(b)] = a.min(b);
        }
    };
    let (mut by_trace, mut by_group) = (HashMap::new(), HashMap::new());
    for (place, job) in jobs.iter().enumerate() {
        for &trace in &job.traces {
            join(by_trace.insert(trace, place), place);
        }
        if !job.group.is_empty() {
            join(by_group.insert(job.group.as_str(), place), place);
        }
    }
    let mut bundles: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for job in 0..jobs.len() {
        bundles.entry(first(&mut bundle_of, job)).or_default().push(job);
    }
    bundles.into_values().collect()
}

/// The part, of `parts`, that each bundle of these sizes goes to: the largest first, each to the part that has least so far
/// (Graham's LPT rule, at most 4/3 of the best division).
fn divide(sizes: &[u64], parts: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&bundle| (Reverse(sizes[bundle]), bundle));
    let mut loads = vec![(0u64, 0usize); parts];
    let mut chosen = vec![0; sizes.len()];
    for bundle in order {
        // By number of bundles where sizes do not tell them apart.
        if let Some((part, load)) = loads.iter_mut().enumerate().min_by_key(|(_, load)| **load) {
            chosen[bundle] = part;
            *load = (load.0 + sizes[bundle], load.1 + 1);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::job::Work;
    use super::*;

    fn job(traces: &[usize], group: &str) -> Job {
        Job {
            label: String::new(),
            kind: "pytorch",
            generator: None,
            work: Work::BuiltIn,
            traces: traces.to_vec(),
            group: group.to_owned(),
            rank: None,
            gpus_per_node: None,
            stem: String::new(),
        }
    }

    #[test]
    fn jobs_that_share_a_trace_or_a_group_stay_together() {
        let jobs = [
            job(&[0], "a"),
            job(&[1], ""),
            job(&[2], "b"),
            job(&[3], "a"),
            job(&[1], ""),
            job(&[], "b"),
            job(&[0, 3], "a"),
            job(&[], ""),
        ];
        assert_eq!(bundles(&jobs), [vec![0, 3, 6], vec![1, 4], vec![2, 5], vec![7]]);
    }

    proptest! {
        #[test]
        fn parts_are_even(sizes in prop::collection::vec(0u64..1000, 1..60), parts in 1usize..9) {
            let chosen = divide(&sizes, parts);
            let mut loads = vec![0; parts];
            for (size, part) in sizes.iter().zip(&chosen) {
                loads[*part] += size;
            }
            let (mean, largest) = (sizes.iter().sum::<u64>() / parts as u64, sizes.iter().max().unwrap());
            // Nobody has more than the mean and one bundle.
            prop_assert!(*loads.iter().max().unwrap() <= mean + largest + 1);
            prop_assert_eq!(divide(&sizes, parts), chosen);
        }
    }

    #[test]
    fn bundles_without_size_are_spread_as_well() {
        assert_eq!(divide(&[0, 0, 0, 0], 2), [0, 1, 0, 1]);
    }
}
