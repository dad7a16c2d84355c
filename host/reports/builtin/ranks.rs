//! The reports of a run's traces put together.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::activity::by_total;
use super::collectives::{CollectiveKey, UNKNOWN};
use super::timeline::Timeline;
use super::trace::{Direction, MemoryCopies, Runs, Skipped, TraceReport};

/// Whose trace it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What the run calls it: its path relative to the run.
    pub trace: String,
    /// The group of its ranks; empty if it is in none.
    pub group: String,
    /// Its rank.
    pub rank: Option<u32>,
}

/// Everything the embedded reporter says of a run. Tables are in order of their total, the largest first; ranks in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Kernels by name, all traces together.
    pub kernels: Vec<RunKernel>,
    /// One row a trace.
    pub ranks: Vec<RankRow>,
    /// Memory copies and sets by direction, all traces together.
    pub memory_copies: Vec<MemoryCopies>,
    /// Collectives by group, kind and size.
    pub collectives: Vec<RunCollective>,
    /// Which rank of each group is slow, where there is something to compare.
    pub slowest: Vec<Slowest>,
}

/// The kernels of one name in all traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunKernel {
    /// Its name.
    pub name: String,
    /// Its runs in all traces.
    #[serde(flatten)]
    pub runs: Runs,
    /// Its part of the total of all kernels, 0 to 1.
    pub share: f64,
    /// How the traces that hold it differ.
    pub spread: Spread,
}

/// How traces differ in the time of one thing. Nanoseconds of one trace's total; positions are those of [`RunReport::ranks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many traces hold it.
    pub traces: usize,
    /// The least total of one of them.
    pub least_ns: u64,
    /// Which one that is.
    pub least: usize,
    /// The greatest total of one of them.
    pub greatest_ns: u64,
    /// Which one that is.
    pub greatest: usize,
}

/// One trace of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRow {
    /// Whose it is.
    #[serde(flatten)]
    pub source: Source,
    /// How its time is spent; none if nothing ran on a GPU.
    pub timeline: Option<Timeline>,
    /// Kernels that ran.
    pub kernels: u64,
    /// Nanoseconds in collectives that synchronize, the wait for other ranks included: the fewest have the rank that others wait for.
    pub synchronizing_ns: u64,
    /// GPU events that are in no figure.
    pub skipped_events: Skipped,
}

/// Collectives of one kind and size over the ranks of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunCollective {
    /// The group of the ranks; empty for traces of none.
    pub group: String,
    /// Which they are.
    #[serde(flatten)]
    pub key: CollectiveKey,
    /// Their runs on all ranks.
    #[serde(flatten)]
    pub runs: Runs,
    /// How the ranks differ.
    pub spread: Spread,
    /// Position in [`RunReport::ranks`] of the rank that the others wait for; none where the collective does not synchronize, or
    /// the ranks did not run it equally often.
    pub slowest: Option<usize>,
}

/// The rank of a group that holds the others up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slowest {
    /// The group.
    pub group: String,
    /// Its position in [`RunReport::ranks`].
    pub position: usize,
    /// What tells.
    pub by: Evidence,
    /// How much slower it is than the median of the group, 0.12 for 12 %: by collectives, the time that the median rank waits for
    /// it, as a part of the median time line; by busy time, what it is busy beyond the median, as a part of that.
    pub excess: f64,
}

/// What tells which rank is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// It waits the least in collectives that all ranks ran equally often. Their kernels end together on all ranks, so the one
    /// whose kernels take the least time came last. This is TraceLens's straggler (`build_df_straggler_summary`: the least total
    /// wait time), without comparing clocks of different nodes.
    Collectives,
    /// It is busy the longest; there are no such collectives.
    Busy,
}

impl RunReport {
    /// What to call each trace of [`RunReport::ranks`]: `rank 3` where no other trace is of that rank, `train: rank 3` where
    /// none of its group is, else its path.
    pub fn labels(&self) -> Vec<String> {
        let mut ranks: HashMap<Option<u32>, u32> = HashMap::new();
        let mut of_groups: HashMap<(&str, Option<u32>), u32> = HashMap::new();
        for RankRow { source, .. } in &self.ranks {
            *ranks.entry(source.rank).or_default() += 1;
            *of_groups.entry((&source.group, source.rank)).or_default() += 1;
        }
        let label = |row: &RankRow| match &row.source {
            Source { rank: Some(rank), .. } if ranks[&Some(*rank)] == 1 => format!("rank {rank}"),
            Source {
                rank: Some(rank),
                group,
                ..
            } if of_groups[&(group.as_str(), Some(*rank))] == 1 => {
                format!("{group}: rank {rank}")
            }
            Source { trace, .. } => trace.clone(),
        };
        self.ranks.iter().map(label).collect()
    }

    /// The sentence that names the slow rank of `slowest`, by what [`RunReport::labels`] calls it.
    pub fn sentence(&self, slowest: &Slowest, labels: &[String]) -> String {
        let label = &labels[slowest.position];
        let percent = slowest.excess * 100.0;
        if percent < 1.0 {
            let of = if self.slowest.len() > 1 {
                format!("{}: ", slowest.group)
            } else {
                String::new()
            };
            return format!("{of}no rank is slower than the others by 1 % or more");
        }
        match slowest.by {
            Evidence::Collectives => {
                format!("{label} is the slowest: the others wait for it in collectives, {percent:.1} % of their time")
            }
            Evidence::Busy => format!("{label} is the slowest: its GPU is busy {percent:.1} % longer than the median"),
        }
    }
}

/// Puts reports together, one after the other. What is kept grows with the traces' distinct kernels and collectives.
#[derive(Debug, Default)]
pub struct RunTally {
    kernels: HashMap<String, (Runs, Spread)>,
    copies: BTreeMap<Direction, MemoryCopies>,
    ranks: Vec<RankRow>,
    /// By group and key: position of the trace and its runs.
    collectives: HashMap<(String, CollectiveKey), Vec<(usize, Runs)>>,
}

impl RunTally {
    /// Adds one trace.
    pub fn add(&mut self, source: Source, report: &TraceReport) {
        let position = self.ranks.len();
        for kernel in &report.kernels {
            let one = (kernel.runs, Spread::of_one(position, kernel.runs.total_ns));
            match self.kernels.get_mut(&kernel.name) {
                Some((runs, spread)) => {
                    runs.merge(&one.0);
                    spread.merge(one.1);
                }
                None => {
                    self.kernels.insert(kernel.name.clone(), one);
                }
            }
        }
        for copies in &report.memory_copies {
            match self.copies.get_mut(&copies.direction) {
                Some(known) => {
                    known.runs.merge(&copies.runs);
                    known.bytes = known.bytes.saturating_add(copies.bytes);
                    known.sized_ns = known.sized_ns.saturating_add(copies.sized_ns);
                    known.sized_count += copies.sized_count;
                }
                None => {
                    self.copies.insert(copies.direction, copies.clone());
                }
            }
        }
        let all_unknown = report
            .collectives
            .iter()
            .all(|collective| collective.key.kind == UNKNOWN);
        let mut synchronizing_ns: u64 = 0;
        for collective in &report.collectives {
            if collective.key.synchronizes() || all_unknown {
                synchronizing_ns = synchronizing_ns.saturating_add(collective.runs.total_ns);
            }
            self.collectives
                .entry((source.group.clone(), collective.key.clone()))
                .or_default()
                .push((position, collective.runs));
        }
        self.ranks.push(RankRow {
            source,
            timeline: report.timeline,
            kernels: report.kernels.iter().map(|kernel| kernel.runs.count).sum(),
            synchronizing_ns,
            skipped_events: report.skipped_events.clone(),
        });
    }

    /// The report on all traces added. The order in which they came does not matter.
    pub fn report(mut self) -> RunReport {
        let new_position = self.sort_ranks();
        let all: u128 = self.kernels.values().map(|(runs, _)| u128::from(runs.total_ns)).sum();
        let mut spreads = HashMap::new();
        let mut totals = HashMap::new();
        for (name, (runs, spread)) in self.kernels {
            spreads.insert(name.clone(), spread.moved(&new_position));
            totals.insert(name, runs);
        }
        let kernels = by_total(totals)
            .into_iter()
            .map(|(name, runs)| RunKernel {
                spread: spreads[&name],
                share: if all > 0 {
                    runs.total_ns as f64 / all as f64
                } else {
                    0.0
                },
                name,
                runs,
            })
            .collect();
        let mut memory_copies: Vec<MemoryCopies> = self.copies.into_values().collect();
        memory_copies.sort_by_key(|copies| std::cmp::Reverse(copies.runs.total_ns));

        let mut by_rank: HashMap<(String, CollectiveKey), Vec<(usize, Runs)>> = HashMap::new();
        for (key, mut rows) in self.collectives {
            for row in &mut rows {
                row.0 = new_position[row.0];
            }
            rows.sort_by_key(|row| row.0);
            by_rank.insert(key, rows);
        }
        let groups = groups(&self.ranks);
        let comparable = |group: &str, key: &CollectiveKey, rows: &[(usize, Runs)]| {
            let equally_often = rows.iter().all(|row| row.1.count == rows[0].1.count);
            let unknown_only = || by_rank.keys().all(|other| other.0 != group || other.1.kind == UNKNOWN);
            rows.len() > 1 && equally_often && (key.synchronizes() || unknown_only())
        };
        let mut collectives: Vec<RunCollective> = Vec::new();
        let mut waiting: HashMap<&str, HashMap<usize, u64>> = HashMap::new();
        for ((group, key), rows) in &by_rank {
            let mut runs = Runs::default();
            let mut spread: Option<Spread> = None;
            for &(position, of_rank) in rows {
                runs.merge(&of_rank);
                let one = Spread::of_one(position, of_rank.total_ns);
                match &mut spread {
                    Some(spread) => spread.merge(one),
                    None => spread = Some(one),
                }
            }
            let Some(spread) = spread else { continue };
            let comparable = comparable(group, key, rows);
            let everywhere = groups
                .get(group.as_str())
                .is_some_and(|ranks| ranks.len() == rows.len());
            if comparable && everywhere {
                let waiting = waiting.entry(group).or_default();
                for &(position, of_rank) in rows {
                    *waiting.entry(position).or_default() += of_rank.total_ns;
                }
            }
            collectives.push(RunCollective {
                group: group.clone(),
                key: key.clone(),
                runs,
                spread,
                slowest: (comparable && spread.least_ns < spread.greatest_ns).then_some(spread.least),
            });
        }
        collectives.sort_by(|a, b| {
            let order = (&a.group, std::cmp::Reverse(a.runs.total_ns), &a.key);
            order.cmp(&(&b.group, std::cmp::Reverse(b.runs.total_ns), &b.key))
        });
        let slowest = groups
            .iter()
            .filter_map(|(group, ranks)| slowest(group, ranks, &self.ranks, waiting.get(group)))
            .collect();
        RunReport {
            kernels,
            memory_copies,
            collectives,
            slowest,
            ranks: self.ranks,
        }
    }

    /// Sorts by group, rank and name; says where each one went.
    fn sort_ranks(&mut self) -> Vec<usize> {
        let mut rows: Vec<(usize, RankRow)> = std::mem::take(&mut self.ranks).into_iter().enumerate().collect();
        rows.sort_by(|(_, a), (_, b)| {
            let order = |row: &RankRow| {
                (
                    row.source.group.clone(),
                    row.source.rank.is_none(),
                    row.source.rank,
                    row.source.trace.clone(),
                )
            };
            order(a).cmp(&order(b))
        });
        let mut new_position = vec![0; rows.len()];
        for (new, (old, row)) in rows.into_iter().enumerate() {
            new_position[old] = new;
            self.ranks.push(row);
        }
        new_position
    }
}

impl Spread {
    fn of_one(position: usize, nanoseconds: u64) -> Self {
        Spread {
            traces: 1,
            least_ns: nanoseconds,
            least: position,
            greatest_ns: nanoseconds,
            greatest: position,
        }
    }

    fn merge(&mut self, other: Spread) {
        self.traces += other.traces;
        if other.least_ns < self.least_ns {
            (self.least_ns, self.least) = (other.least_ns, other.least);
        }
        if other.greatest_ns > self.greatest_ns {
            (self.greatest_ns, self.greatest) = (other.greatest_ns, other.greatest);
        }
    }

    fn moved(mut self, new_position: &[usize]) -> Self {
        self.least = new_position[self.least];
        self.greatest = new_position[self.greatest];
        self
    }
}

/// Positions of the ranks of each group that ran something on a GPU. Traces of no rank are compared with nothing, and nor are
/// groups in which a rank is claimed twice: those are several runs.
fn groups(ranks: &[RankRow]) -> BTreeMap<&str, Vec<usize>> {
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

fn slowest(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::builtin::collectives::Collective;
    use crate::reports::builtin::trace::Kernel;

    fn runs(count: u64, total_ns: u64) -> Runs {
        Runs {
            count,
            total_ns,
            min_ns: total_ns / count,
            max_ns: total_ns / count,
        }
    }

    fn trace(gemm_ns: u64, collective: Option<(&str, u64, u64)>) -> TraceReport {
        let key = |kind: &str| CollectiveKey {
            kind: kind.to_owned(),
            dtype: Some("Float".to_owned()),
            in_elements: Some(1000),
            out_elements: Some(1000),
            group_size: Some(2),
        };
        TraceReport {
            kernels: vec![Kernel {
                name: "gemm".to_owned(),
                runs: runs(1, gemm_ns),
                share: 1.0,
            }],
            timeline: Some(Timeline {
                total_ns: 1000,
                busy_ns: gemm_ns,
                ..Timeline::default()
            }),
            collectives: collective
                .into_iter()
                .map(|(kind, count, total)| Collective {
                    key: key(kind),
                    runs: runs(count, total),
                })
                .collect(),
            ..TraceReport::default()
        }
    }

    fn source(rank: Option<u32>) -> Source {
        Source {
            trace: format!("{rank:?}.json"),
            group: "run".to_owned(),
            rank,
        }
    }

    #[test]
    fn the_rank_that_waits_least_is_the_slowest() {
        let mut tally = RunTally::default();
        for (rank, waits) in [(2, 400), (0, 410), (1, 100)] {
            tally.add(source(Some(rank)), &trace(500, Some(("allreduce", 4, waits))));
        }
        let report = tally.report();
        let slowest = &report.slowest[0];
        assert_eq!(
            (report.ranks[slowest.position].source.rank, slowest.by),
            (Some(1), Evidence::Collectives)
        );
        assert_eq!(slowest.excess, 0.3);
        let collective = &report.collectives[0];
        assert_eq!(
            (collective.spread.least, collective.spread.greatest, collective.slowest),
            (1, 0, Some(1))
        );
        assert_eq!(
            (
                collective.spread.least_ns,
                collective.spread.greatest_ns,
                collective.spread.traces
            ),
            (100, 410, 3)
        );
        assert_eq!((collective.runs.count, collective.runs.total_ns), (12, 910));
        assert_eq!(
            report.sentence(slowest, &report.labels()),
            "rank 1 is the slowest: the others wait for it in collectives, 30.0 % of their time"
        );
    }

    #[test]
    fn collectives_that_tell_nothing_leave_it_to_the_busy_time() {
        for odd in [Some(("allreduce", 3, 30)), Some(("send", 4, 10)), None] {
            let mut tally = RunTally::default();
            tally.add(source(Some(0)), &trace(500, Some(("allreduce", 4, 400))));
            tally.add(source(Some(1)), &trace(500, Some(("allreduce", 4, 400))));
            tally.add(source(Some(2)), &trace(600, odd));
            let report = tally.report();
            let slowest = &report.slowest[0];
            assert_eq!((slowest.position, slowest.by), (2, Evidence::Busy), "{odd:?}");
            assert_eq!(slowest.excess, 0.2);
        }
    }

    #[test]
    fn one_rank_or_none_has_no_slowest() {
        let mut tally = RunTally::default();
        tally.add(source(Some(0)), &trace(500, None));
        tally.add(source(None), &trace(900, None));
        tally.add(source(Some(1)), &TraceReport::default());
        let report = tally.report();
        assert_eq!(report.slowest, []);
        assert_eq!(
            report.ranks.iter().map(|row| row.source.rank).collect::<Vec<_>>(),
            [Some(0), Some(1), None]
        );
        let kernel = &report.kernels[0];
        assert_eq!(
            (
                kernel.spread.least,
                kernel.spread.greatest,
                kernel.spread.traces,
                kernel.share
            ),
            (0, 2, 2, 1.0)
        );
    }

    #[test]
    fn a_rank_claimed_twice_is_compared_with_nothing() {
        let mut tally = RunTally::default();
        for (trace_name, group, rank) in [
            ("a", "x", 0),
            ("b", "x", 0),
            ("c", "x", 1),
            ("d", "y", 1),
            ("e", "y", 2),
        ] {
            let source = Source {
                trace: trace_name.to_owned(),
                group: group.to_owned(),
                rank: Some(rank),
            };
            tally.add(source, &trace(500, None));
        }
        let report = tally.report();
        assert_eq!(report.labels(), ["a", "b", "x: rank 1", "y: rank 1", "rank 2"]);
        assert_eq!(
            report
                .slowest
                .iter()
                .map(|slowest| slowest.group.as_str())
                .collect::<Vec<_>>(),
            ["y"]
        );
    }

    #[test]
    fn kinds_that_nothing_tells_are_compared_among_themselves() {
        let mut tally = RunTally::default();
        tally.add(source(Some(0)), &trace(500, Some((UNKNOWN, 4, 400))));
        tally.add(source(Some(1)), &trace(500, Some((UNKNOWN, 4, 200))));
        let report = tally.report();
        assert_eq!(
            (report.slowest[0].position, report.slowest[0].by),
            (1, Evidence::Collectives)
        );
        assert_eq!(report.ranks[0].synchronizing_ns, 400);
    }
}
