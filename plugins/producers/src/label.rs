//! From the schemes that fit a run's paths to their labels.

use std::collections::HashSet;

use crate::field::Field;
use crate::pattern::Capture;
use crate::sizes::{Combined, Sizes};
use crate::table::{Path, Scheme, What, find};
use names::{Folder, group};

/// What the policy says of one trace.
#[derive(Debug, PartialEq, Eq)]
pub enum Label {
    Rank {
        rank: u32,
        world_size: Option<u32>,
        group: Option<String>,
        node: Option<String>,
        evidence: String,
    },
    Role(String),
    Unknown(String),
}

/// The labels of a run's traces, given as path and whether it holds GPU events.
pub fn all(schemes: &[Scheme], sizes: &Sizes, traces: &[(&str, bool)]) -> Vec<Label> {
    let paths: Vec<Path> = traces.iter().map(|(path, _)| Path::new(path)).collect();
    let found: Vec<_> = paths
        .iter()
        .zip(traces)
        .map(|(path, (_, gpu))| find(schemes, path, *gpu))
        .collect();

    // Folders in which a number of a scheme is 0, so none of them is a process id.
    let mut numbered_from_0: HashSet<(usize, &[&str])> = HashSet::new();
    for (path, found) in paths.iter().zip(&found) {
        let Some((scheme, captures)) = found else { continue };
        if number(captures, Field::RankOrPid) == Some(0) {
            numbered_from_0.insert((*scheme, &path.upwards[1..]));
        }
    }
    let labels = paths.iter().zip(&found).map(|(path, found)| match found {
        None => Label::Unknown(String::new()),
        Some((at, captures)) => {
            let is_no_pid = numbered_from_0.contains(&(*at, &path.upwards[1..]));
            label(&schemes[*at], captures, path, sizes, is_no_pid)
        }
    });
    labels.collect()
}

fn label(scheme: &Scheme, captures: &[Capture], path: &Path, sizes: &Sizes, is_no_pid: bool) -> Label {
    let producer = &scheme.producer;
    let impossible = match &scheme.what {
        What::Role(role) => return Label::Role(role.clone()),
        What::Trace(reason) => reason.as_deref(),
    };
    let claim = |rank, world_size, basis: String| Label::Rank {
        rank,
        world_size,
        group: group_of(path, captures),
        node: text(captures, Field::Host).map(str::to_owned),
        evidence: format!("{producer}: {basis}"),
    };
    let unknown = |reason: String| Label::Unknown(format!("{producer}: {reason}"));
    let coordinates = coordinates(captures);
    if let Some(reason) = impossible {
        return match shown(&coordinates).as_str() {
            "" => unknown(reason.to_owned()),
            coordinates => unknown(format!("{coordinates}, and {reason}")),
        };
    }
    if let Some(rank) = number(captures, Field::Rank) {
        return claim(rank, None, format!("rank {rank}"));
    }
    if let Some(rank) = number(captures, Field::RankOrPid) {
        return match is_no_pid {
            true => claim(
                rank,
                None,
                format!("rank {rank}, since its folder's numbers begin at 0"),
            ),
            false => unknown(format!("{rank} is a rank or a pid: no file of the folder has 0")),
        };
    }
    if let Some(local) = number(captures, Field::LocalRank) {
        let Some(node) = number(captures, Field::NodeRank) else {
            return unknown(format!("local rank {local} counts within its node"));
        };
        return match sizes.rank_on_node(node, local) {
            Ok(rank) => claim(rank, None, format!("local rank {local} of node {node}")),
            Err(reason) => unknown(format!("local rank {local} of node {node}: {reason}")),
        };
    }
    if !coordinates.is_empty() {
        let shown = shown(&coordinates);
        return match sizes.rank_at(&coordinates) {
            Combined::Rank { rank, world_size } => claim(
                rank,
                Some(world_size),
                format!("{shown} make rank {rank} in the order {}", sizes.order()),
            ),
            Combined::Misfit(reason) => unknown(format!("{shown}: {reason}")),
            Combined::Unset => match coordinates.len() {
                1 => unknown(format!("{shown} is a coordinate, not the global rank")),
                _ => unknown(format!("{shown} are coordinates, not the global rank")),
            },
        };
    }
    if let Some(rank) = number(captures, Field::GroupRank) {
        return unknown(format!("rank {rank} counts within a communicator"));
    }
    match text(captures, Field::Pid) {
        Some(pid) => unknown(format!("the name has pid {pid} but no rank")),
        None => unknown("the name has no rank".into()),
    }
}

fn text<'p>(captures: &[Capture<'p>], field: Field) -> Option<&'p str> {
    captures
        .iter()
        .find(|capture| capture.field == field)
        .map(|capture| capture.value)
}

fn number(captures: &[Capture], field: Field) -> Option<u32> {
    text(captures, field).and_then(|value| value.parse().ok())
}

/// Axis and place on it, in the name's order.
fn coordinates(captures: &[Capture]) -> Vec<(&'static str, u32)> {
    let mut found: Vec<&Capture> = captures.iter().collect();
    found.sort_by_key(|capture| (std::cmp::Reverse(capture.height), capture.range));
    let coordinate = |capture: &Capture| match capture.field {
        Field::Axis(axis) => Some((axis, capture.value.parse().ok()?)),
        _ => None,
    };
    found.into_iter().filter_map(coordinate).collect()
}

/// `TP 3, DP 1`.
fn shown(coordinates: &[(&str, u32)]) -> String {
    let shown = coordinates
        .iter()
        .map(|(axis, at)| format!("{} {at}", axis.to_uppercase()));
    shown.collect::<Vec<_>>().join(", ")
}

/// Which traces this one is compared with.
fn group_of(path: &Path, captures: &[Capture]) -> Option<String> {
    let folders: Vec<Folder> = path
        .upwards
        .iter()
        .enumerate()
        .skip(1)
        .rev()
        .map(|(height, name)| Folder {
            name,
            varying: captures
                .iter()
                .filter(|capture| capture.height == height && capture.field.differs_by_rank())
                .map(|capture| capture.range)
                .collect(),
        })
        .collect();
    let in_file = |field| {
        captures
            .iter()
            .find(|capture| capture.height == 0 && capture.field == field)
    };
    let step = in_file(Field::Step)
        .and_then(|capture| capture.value.parse::<u64>().ok())
        .map(|step| format!("step {step}"));
    let capture = in_file(Field::Capture).map(|capture| format!("capture {}", capture.value));
    let stage = in_file(Field::Stage).map(|stage| stage.value.to_lowercase());
    let labels: Vec<String> = step.into_iter().chain(capture).chain(stage).collect();
    group(&folders, &labels)
}
