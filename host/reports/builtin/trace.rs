//! The report on one trace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::collectives::Collective;
use super::timeline::Timeline;

/// Everything the embedded reporter says of one trace. Tables are in order of their total, the largest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// Kernels by name.
    pub kernels: Vec<Kernel>,
    /// How the time is spent; none if nothing ran on a GPU.
    pub timeline: Option<Timeline>,
    /// Memory copies and memory sets by direction.
    pub memory_copies: Vec<MemoryCopies>,
    /// Collectives by kind and size.
    pub collectives: Vec<Collective>,
    /// GPU events that are in no figure.
    pub skipped_events: Skipped,
}

/// GPU events that are in no figure: why, as a phrase that goes on after their number, and how many.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped(pub BTreeMap<String, u64>);

impl Skipped {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// `2 without a usable start or duration, 1 that end before they start`; empty if there are none.
    pub fn reasons(&self) -> String {
        let reasons: Vec<String> = self.0.iter().map(|(why, count)| format!("{count} {why}")).collect();
        reasons.join(", ")
    }
}

/// What is known of the runs of one thing. Times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// How often it ran.
    pub count: u64,
    /// All runs together; runs that overlap count each.
    pub total_ns: u64,
    /// The shortest run.
    pub min_ns: u64,
    /// The longest run.
    pub max_ns: u64,
}

impl Default for Runs {
    /// None.
    fn default() -> Self {
        Runs {
            count: 0,
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl Runs {
    /// The mean run in nanoseconds; 0 if there is none.
    pub fn mean_ns(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.total_ns as f64 / count as f64,
        }
    }

    pub(super) fn add(&mut self, nanoseconds: u64) {
        self.merge(&Runs {
            count: 1,
            total_ns: nanoseconds,
            min_ns: nanoseconds,
            max_ns: nanoseconds,
        });
    }

    pub(super) fn merge(&mut self, other: &Runs) {
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// The kernels of one name, as in TraceLens's sheet `kernel_summary`, over all streams and launching operators.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its name; of a rocprofv3 trace the one that TraceLens takes (`TraceLens/util.py`, `extract_kernel_events`).
    pub name: String,
    /// Its runs.
    #[serde(flatten)]
    pub runs: Runs,
    /// Its part of the total of all kernels, 0 to 1.
    pub share: f64,
}

/// From where to where memory is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// Host to device.
    HtoD,
    /// Device to host.
    DtoH,
    /// Device to device.
    DtoD,
    /// Host to host.
    HtoH,
    /// Peer to peer: device to another device.
    PtoP,
    /// The trace does not say.
    Unknown,
    /// No copy: memory is set.
    Memset,
}

impl Direction {
    /// As Kineto writes it (`memcpyKindString`, libkineto `src/CuptiActivity.cpp`); `Memset` and `unknown` for the others.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::HtoD => "HtoD",
            Direction::DtoH => "DtoH",
            Direction::DtoD => "DtoD",
            Direction::HtoH => "HtoH",
            Direction::PtoP => "PtoP",
            Direction::Unknown => "unknown",
            Direction::Memset => "Memset",
        }
    }
}

/// The memory copies of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryCopies {
    /// From where to where.
    pub direction: Direction,
    /// Their runs.
    #[serde(flatten)]
    pub runs: Runs,
    /// Bytes of those whose size the trace gives.
    pub bytes: u64,
    /// Nanoseconds of those whose size the trace gives.
    pub sized_ns: u64,
    /// How many those are.
    pub sized_count: u64,
}

impl MemoryCopies {
    /// Gigabytes (10^9) a second, of those whose size the trace gives; none where that means nothing.
    pub fn gigabytes_per_second(&self) -> Option<f64> {
        (self.sized_ns > 0).then(|| self.bytes as f64 / self.sized_ns as f64)
    }
}
