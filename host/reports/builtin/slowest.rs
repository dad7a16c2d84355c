//! Which rank of a group holds the others up.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ranks::{Evidence, RankRow, Slowest};
use super::timeline::Timeline;

/// Positions of the ranks of each group that ran something on a GPU. Traces of no rank are compared with nothing, and nor are
/// groups in which a rank is claimed twice: those are several runs.
pub(super) fn groups(ranks: &[RankRow]) -> BTreeMap<&str, Vec<usize>> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (position, row) in ranks.iter().enumerate() {
        if row.source.rank.is_some() && row.timeline.is_some() {
            groups.entry(&row.source.group).or_default().push(position);
        }
    }
    let mut seen = HashSet::new();
    groups.retain(|_, positions| {
        seen.clear();
        positions
            .iter()
            .all(|&position| seen.insert(ranks[position].source.rank))
    });
    groups
}

/// The slowest of the ranks at these positions; `waiting` is the time of each in collectives that all of them ran equally often.
pub(super) fn slowest(
    group: &str,
    positions: &[usize],
    ranks: &[RankRow],
    waiting: Option<&HashMap<usize, u64>>,
) -> Option<Slowest> {
    if positions.len() < 2 {
        return None;
    }
    let of = |what: fn(&Timeline) -> u64| {
        positions
            .iter()
            .filter_map(move |&position| ranks[position].timeline.as_ref().map(what))
            .collect::<Vec<u64>>()
    };
    let excess = |more: f64, whole: f64| if whole > 0.0 { (more / whole).max(0.0) } else { 0.0 };
    if let Some(waiting) = waiting {
        let times: Vec<u64> = positions
            .iter()
            .map(|position| waiting.get(position).copied().unwrap_or(0))
            .collect();
        let (least, position) = times.iter().zip(positions).min()?;
        return Some(Slowest {
            group: group.to_owned(),
            position: *position,
            by: Evidence::Collectives,
            excess: excess(
                median(times.clone()) - *least as f64,
                median(of(|timeline| timeline.total_ns)),
            ),
        });
    }
    let busy = of(|timeline| timeline.busy_ns);
    let (most, position) = busy
        .iter()
        .zip(positions)
        .max_by_key(|(busy, position)| (**busy, std::cmp::Reverse(**position)))?;
    let median = median(busy.clone());
    Some(Slowest {
        group: group.to_owned(),
        position: *position,
        by: Evidence::Busy,
        excess: excess(*most as f64 - median, median),
    })
}

/// The middle one, or the mean of the two in the middle.
fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    let half = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[half] as f64,
        _ => (values[half - 1] as f64 + values[half] as f64) / 2.0,
    }
}
