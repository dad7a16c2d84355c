//! Adds up the GPU events of a trace, in any order, in memory that does not grow with their number.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::io;
use std::path::Path;

use super::collectives::{Collective, CollectiveKey, UNKNOWN};
use super::intervals::{Budget, Interval};
use super::timeline::{Class, Spans};
use super::trace::{Direction, Kernel, MemoryCopies, Runs, Skipped, TraceReport};

/// Kernels beyond so many names, or so many bytes of names, are counted under [`OTHER`]: names may hold addresses and counters,
/// and then there are as many as events.
const MOST_NAMES: usize = 100_000;
const MOST_NAME_BYTES: usize = 32 << 20;
const MOST_COLLECTIVES: usize = 10_000;

/// The name that stands for all kernels beyond the limits.
pub const OTHER: &str = "(other kernels)";

/// Why an event is in no figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skip {
    Unreadable,
    NoTime,
    Backwards,
    TooLong,
}

impl Skip {
    fn reason(self) -> &'static str {
        match self {
            Skip::Unreadable => "unreadable",
            Skip::NoTime => "without a usable start or duration",
            Skip::Backwards => "that end before they start",
            Skip::TooLong => "of more than 16 MiB",
        }
    }
}

#[derive(Debug, Default)]
struct Copied {
    runs: Runs,
    bytes: u64,
    sized_ns: u64,
    sized_count: u64,
}

/// What the events of a trace come to so far.
#[derive(Debug)]
pub(super) struct Activity {
    kernels: HashMap<String, Runs>,
    name_bytes: usize,
    copies: BTreeMap<Direction, Copied>,
    collectives: HashMap<CollectiveKey, Runs>,
    spans: Spans,
    skipped: BTreeMap<Skip, u64>,
}

impl Activity {
    /// Nothing so far; scratch files go to `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        Activity {
            kernels: HashMap::new(),
            name_bytes: 0,
            copies: BTreeMap::new(),
            collectives: HashMap::new(),
            spans: Spans::new(folder, Budget::default()),
            skipped: BTreeMap::new(),
        }
    }

    /// An event that cannot be counted.
    pub(super) fn skip(&mut self, why: Skip) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// A kernel that ran, counted by name.
    pub(super) fn kernel(&mut self, name: &str, interval: Interval) {
        let runs = match self.kernels.get_mut(name) {
            Some(runs) => runs,
            None => {
                let fits = self.kernels.len() < MOST_NAMES && self.name_bytes + name.len() <= MOST_NAME_BYTES;
                let name = if fits { name } else { OTHER };
                if fits {
                    self.name_bytes += name.len();
                }
                self.kernels.entry(name.to_owned()).or_default()
            }
        };
        runs.add(length(interval));
    }

    /// A collective that ran, counted by kind and size.
    pub(super) fn collective(&mut self, key: CollectiveKey, interval: Interval) {
        let fits = self.collectives.len() < MOST_COLLECTIVES || self.collectives.contains_key(&key);
        let key = if fits {
            key
        } else {
            CollectiveKey {
                kind: UNKNOWN.to_owned(),
                dtype: None,
                in_elements: None,
                out_elements: None,
                group_size: None,
            }
        };
        self.collectives.entry(key).or_default().add(length(interval));
    }

    /// A memory copy or set that ran, of so many bytes if the trace says.
    pub(super) fn copy(&mut self, direction: Direction, bytes: Option<u64>, interval: Interval) {
        let copied = self.copies.entry(direction).or_default();
        copied.runs.add(length(interval));
        if let Some(bytes) = bytes {
            copied.bytes = copied.bytes.saturating_add(bytes);
            copied.sized_ns = copied.sized_ns.saturating_add(length(interval));
            copied.sized_count += 1;
        }
    }

    /// Something that ran, on the time line.
    pub(super) fn span(&mut self, class: Class, interval: Interval) -> io::Result<()> {
        self.spans.add(class, interval)
    }

    /// The report. `total`, if given, is the length of the time line in nanoseconds, instead of the extent of the events.
    pub(super) fn report(self, total: Option<u64>) -> io::Result<TraceReport> {
        let kernels = by_total(self.kernels);
        let all: u128 = kernels.iter().map(|(_, runs)| u128::from(runs.total_ns)).sum();
        let share = |runs: &Runs| {
            if all > 0 {
                runs.total_ns as f64 / all as f64
            } else {
                0.0
            }
        };
        let mut memory_copies: Vec<MemoryCopies> = self
            .copies
            .into_iter()
            .map(|(direction, copied)| MemoryCopies {
                direction,
                runs: copied.runs,
                bytes: copied.bytes,
                sized_ns: copied.sized_ns,
                sized_count: copied.sized_count,
            })
            .collect();
        memory_copies.sort_by_key(|copies| std::cmp::Reverse(copies.runs.total_ns));
        Ok(TraceReport {
            kernels: kernels
                .into_iter()
                .map(|(name, runs)| Kernel {
                    name,
                    share: share(&runs),
                    runs,
                })
                .collect(),
            timeline: self.spans.timeline(total)?,
            memory_copies,
            collectives: by_total(self.collectives)
                .into_iter()
                .map(|(key, runs)| Collective { key, runs })
                .collect(),
            skipped_events: Skipped(
                self.skipped
                    .into_iter()
                    .map(|(why, count)| (why.reason().to_owned(), count))
                    .collect(),
            ),
        })
    }
}

/// From start to end in nanoseconds.
fn length((start, end): Interval) -> u64 {
    end.abs_diff(start)
}

/// The largest total first; equal ones in order of their keys.
pub(super) fn by_total<K: Ord + Hash>(map: HashMap<K, Runs>) -> Vec<(K, Runs)> {
    let mut rows: Vec<(K, Runs)> = map.into_iter().collect();
    rows.sort_by(|(a, x), (b, y)| y.total_ns.cmp(&x.total_ns).then_with(|| a.cmp(b)));
    rows
}
