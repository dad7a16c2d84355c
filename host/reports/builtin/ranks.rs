//! What the reports on a run's traces say together.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::collectives::CollectiveKey;
use super::timeline::Timeline;
use super::trace::{MemoryCopies, Runs, Skipped};

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
    /// What to call each trace of [`RunReport::ranks`]: `rank 3` where no two traces of the run are of one rank, else
    /// `train: rank 3` where no two of its group are, else its path.
    pub fn labels(&self) -> Vec<String> {
        let mut ranks = HashSet::new();
        let known = self.ranks.iter().filter_map(|row| row.source.rank);
        let in_one_group = known.into_iter().all(|rank| ranks.insert(rank));
        let mut claims: HashMap<(&str, u32), u32> = HashMap::new();
        for RankRow { source, .. } in &self.ranks {
            if let Some(rank) = source.rank {
                *claims.entry((&source.group, rank)).or_default() += 1;
            }
        }
        let label = |row: &RankRow| match &row.source {
            Source { rank: Some(rank), .. } if in_one_group => format!("rank {rank}"),
            Source {
                rank: Some(rank),
                group,
                ..
            } if claims[&(group.as_str(), *rank)] == 1 => {
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

impl Spread {
    pub(super) fn of_one(position: usize, nanoseconds: u64) -> Self {
        Spread {
            traces: 1,
            least_ns: nanoseconds,
            least: position,
            greatest_ns: nanoseconds,
            greatest: position,
        }
    }

    pub(super) fn merge(&mut self, other: Spread) {
        self.traces += other.traces;
        if other.least_ns < self.least_ns {
            (self.least_ns, self.least) = (other.least_ns, other.least);
        }
        if other.greatest_ns > self.greatest_ns {
            (self.greatest_ns, self.greatest) = (other.greatest_ns, other.greatest);
        }
    }

    pub(super) fn moved(mut self, new_position: &[usize]) -> Self {
        self.least = new_position[self.least];
        self.greatest = new_position[self.greatest];
        self
    }
}
