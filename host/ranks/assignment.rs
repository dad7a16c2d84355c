//! From claims to one assignment.
//!
//! The rules (facts/traces.md, "Rules that follow"; DESIGN.md, "Ranks"): a trace that any policy knows to be no rank's leaves the
//! rank sets; else the first certain claim wins, otherwise the first; claims that disagree are shown. Ranks are compared within
//! a group only.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::{in_natural_order, merge_split_folders, split_captures};
use super::map::MAP;
use super::policies::PolicyLabels;
use crate::plugins::{Claim, Label};
use crate::traces::{Kind, Run};

/// Missing ranks are listed up to this many a group; a world size is a plugin's word and may be absurd.
const MAX_MISSING: usize = 10_000;

/// What is known of one trace of the run; it stands at the trace's position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// What it is, if it belongs to no rank: `launcher`, `merged`, ...
    pub role: Option<String>,
    /// The global rank.
    pub rank: Option<u32>,
    /// How many ranks the job has, by the same claim.
    pub world_size: Option<u32>,
    /// Which traces it is compared with.
    pub group: String,
    /// The node it ran on, if known.
    pub node: Option<String>,
    /// The policy whose word this is.
    pub by: Option<String>,
    /// What that rests on; for a trace without rank or role, why none is known.
    pub evidence: String,
}

/// Something that two sources, or two traces, do not agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conflict {
    /// Several traces claim one rank. Positions in the run.
    Duplicate {
        /// The rank.
        rank: u32,
        /// Who claims it.
        traces: Vec<usize>,
    },
    /// Policies give one trace different ranks; the first of `claims` won.
    Disagreement {
        /// The trace.
        trace: usize,
        /// Each policy with its rank and evidence.
        claims: Vec<(String, u32, String)>,
    },
    /// Traces of one group name different world sizes.
    WorldSizes(Vec<u32>),
    /// A rank lies outside the world size.
    OutsideWorld {
        /// The rank.
        rank: u32,
        /// The world size of the group.
        world_size: u32,
    },
}

/// Traces that are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name: a folder, or what a policy calls it.
    pub name: String,
    /// How many ranks it should have, and whether a trace said so (else it is the smallest that fits).
    pub world_size: u32,
    /// Whether the world size is somebody's word rather than a count.
    pub world_size_is_known: bool,
    /// Rank to the traces that claim it (positions in the run).
    pub ranks: BTreeMap<u32, Vec<usize>>,
    /// Traces of no known rank that might belong to one.
    pub unranked: Vec<usize>,
    /// Ranks that no trace claims, at most 10,000.
    pub missing: Vec<u32>,
    /// What does not agree.
    pub conflicts: Vec<Conflict>,
}

impl Group {
    /// The one trace of each rank 0..N-1, in order, if that is what the group holds; N is the world size.
    pub fn complete_set(&self) -> Option<Vec<usize>> {
        let whole = self.missing.is_empty() && self.ranks.len() as u64 == u64::from(self.world_size);
        let mut set = Vec::with_capacity(self.ranks.len());
        for traces in self.ranks.values() {
            let [only] = traces.as_slice() else { return None };
            set.push(*only);
        }
        (whole && !set.is_empty()).then_some(set)
    }
}

/// Whose every trace of a run is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// One entry a trace, in the run's order.
    pub traces: Vec<Assigned>,
    /// The groups that hold ranks or traces that might be of one, by name; numbers in names count as numbers.
    pub groups: Vec<Group>,
}

/// Makes one assignment of the policies' labels. `world_size` is the user's word for every group.
pub fn assign(run: &Run, answers: &[PolicyLabels], world_size: Option<u32>) -> Assignment {
    let mut traces: Vec<Assigned> = (0..run.traces.len()).map(|index| judge(run, index, answers)).collect();
    merge_split_folders(&mut traces);
    split_captures(run, &mut traces);

    let mut members: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, trace) in traces.iter().enumerate() {
        if trace.role.is_none() {
            members.entry(trace.group.clone()).or_default().push(index);
        }
    }
    let groups = members
        .into_iter()
        .map(|(name, members)| group(name, &members, &traces, answers, world_size));
    let mut groups: Vec<Group> = groups.collect();
    groups.sort_by_cached_key(|group| in_natural_order(&group.name));
    Assignment { traces, groups }
}

fn labels(answers: &[PolicyLabels], index: usize) -> impl Iterator<Item = (&str, &Label)> {
    answers
        .iter()
        .map(move |answer| (answer.policy.as_str(), &answer.labels[index]))
}

fn claims(answers: &[PolicyLabels], index: usize) -> impl Iterator<Item = (&str, &Claim)> {
    labels(answers, index).filter_map(|(policy, label)| match label {
        Label::Rank(claim) => Some((policy, claim)),
        _ => None,
    })
}

fn judge(run: &Run, index: usize, answers: &[PolicyLabels]) -> Assigned {
    let trace = &run.traces[index];
    let unknown = Assigned {
        role: None,
        rank: None,
        world_size: None,
        group: trace.folder(),
        node: None,
        by: None,
        evidence: String::new(),
    };
    if let Some((policy, role)) = labels(answers, index).find_map(|(policy, label)| match label {
        Label::Role(role) => Some((policy, role)),
        _ => None,
    }) {
        return Assigned {
            role: Some(role.clone()),
            by: Some(policy.to_owned()),
            ..unknown
        };
    }
    if trace.kind == Kind::Other {
        let evidence = "not a trace that can be of one rank".to_owned();
        return Assigned {
            role: Some("other".to_owned()),
            evidence,
            ..unknown
        };
    }
    let Some((policy, claim)) = claims(answers, index)
        .find(|(_, claim)| claim.certain)
        .or_else(|| claims(answers, index).next())
    else {
        let reasons = labels(answers, index).filter_map(|(_, label)| match label {
            Label::Unknown(reason) if !reason.is_empty() => Some(reason.as_str()),
            _ => None,
        });
        return Assigned {
            evidence: reasons.collect::<Vec<_>>().join("; "),
            ..unknown
        };
    };
    // A policy that knows ranks need not know folders: another one's group serves as well.
    let group = claim
        .group
        .clone()
        .or_else(|| claims(answers, index).find_map(|(_, claim)| claim.group.clone()));
    Assigned {
        role: None,
        rank: Some(claim.rank),
        world_size: claim.world_size,
        group: group.unwrap_or(unknown.group),
        node: claim.node.clone(),
        by: Some(policy.to_owned()),
        evidence: claim.evidence.clone(),
    }
}

fn group(
    name: String,
    members: &[usize],
    traces: &[Assigned],
    answers: &[PolicyLabels],
    users_world_size: Option<u32>,
) -> Group {
    let mut ranks: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let (mut unranked, mut conflicts) = (Vec::new(), Vec::new());
    for &index in members {
        match traces[index].rank {
            Some(rank) => ranks.entry(rank).or_default().push(index),
            None => unranked.push(index),
        }
    }
    for &index in members {
        let Some(rank) = traces[index].rank else { continue };
        if traces[index].by.as_deref() == Some(MAP) {
            // The user has seen both sides.
            continue;
        }
        if claims(answers, index).any(|(_, claim)| claim.rank != rank) {
            let winner = traces[index].by.as_deref();
            let mut said: Vec<_> = claims(answers, index)
                .map(|(policy, claim)| (policy.to_owned(), claim.rank, claim.evidence.clone()))
                .collect();
            said.sort_by_key(|(policy, ..)| Some(policy.as_str()) != winner);
            conflicts.push(Conflict::Disagreement {
                trace: index,
                claims: said,
            });
        }
    }
    for (&rank, claimants) in ranks.iter().filter(|(_, claimants)| claimants.len() > 1) {
        conflicts.push(Conflict::Duplicate {
            rank,
            traces: claimants.clone(),
        });
    }

    let claimed: BTreeSet<u32> = members.iter().filter_map(|&index| traces[index].world_size).collect();
    if claimed.len() > 1 {
        conflicts.push(Conflict::WorldSizes(claimed.iter().copied().collect()));
    }
    let known = users_world_size.or(claimed.last().copied());
    let smallest = ranks.last_key_value().map_or(0, |(&rank, _)| rank.saturating_add(1));
    let world_size = known.unwrap_or(smallest);
    for &rank in ranks.keys().filter(|&&rank| rank >= world_size) {
        conflicts.push(Conflict::OutsideWorld { rank, world_size });
    }
    let missing = if ranks.is_empty() {
        Vec::new()
    } else {
        (0..world_size)
            .filter(|rank| !ranks.contains_key(rank))
            .take(MAX_MISSING)
            .collect()
    };
    Group {
        name,
        world_size,
        world_size_is_known: known.is_some(),
        ranks,
        unranked,
        missing,
        conflicts,
    }
}
