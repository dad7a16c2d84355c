//! Puts the reports on a run's traces together.

use std::collections::{BTreeMap, HashMap};

use super::activity::by_total;
use super::collectives::{CollectiveKey, UNKNOWN};
use super::ranks::{RankRow, RunCollective, RunKernel, RunReport, Source, Spread};
use super::slowest::{groups, slowest};
use super::trace::{Direction, MemoryCopies, Runs, TraceReport};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::builtin::collectives::Collective;
    use crate::reports::builtin::ranks::Evidence;
    use crate::reports::builtin::timeline::Timeline;
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
        assert_eq!(report.labels(), ["a", "b", "x: rank 1", "y: rank 1", "y: rank 2"]);
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
