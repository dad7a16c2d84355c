//! What the GPU did over time.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::intervals::{Budget, Interval, Joined, Union};

/// How the time of a trace is spent, all its GPUs and streams laid over each other. Nanoseconds.
///
/// The rules are those of TraceLens's sheet `gpu_timeline` (`TreePerf/gpu_event_analyser.py`, `compute_metrics_dict`), with
/// `--include_unlinked_kernels`: every GPU event counts, also one whose launch is not in the trace. Each time is the length of a
/// union of intervals: what overlaps counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// From the first start to the last end of GPU activity; of a rocprofv3 trace from the profiler's `init_time` to its `fini_time`.
    pub total_ns: u64,
    /// Anything runs (`busy_time`).
    pub busy_ns: u64,
    /// A kernel that is no collective runs, or a memory is set (`computation_time`).
    pub computation_ns: u64,
    /// A collective's kernel runs (`total_comm_time`).
    pub communication_ns: u64,
    /// A collective's kernel runs and no computation (`exposed_comm_time`).
    pub exposed_communication_ns: u64,
    /// A memory copy runs (`total_memcpy_time`).
    pub memcpy_ns: u64,
    /// A memory copy runs, and neither computation nor communication (`exposed_memcpy_time`).
    pub exposed_memcpy_ns: u64,
}

impl Timeline {
    /// Nothing runs (`idle_time`).
    pub fn idle_ns(&self) -> u64 {
        self.total_ns.saturating_sub(self.busy_ns)
    }

    /// A kernel runs, a collective's or another (`kernel` in TraceLens's rocprofv3 report).
    pub fn kernel_ns(&self) -> u64 {
        self.busy_ns - self.exposed_memcpy_ns
    }

    /// Communication behind which computation runs.
    pub fn overlapped_communication_ns(&self) -> u64 {
        self.communication_ns - self.exposed_communication_ns
    }

    /// The part of the whole that `nanoseconds` are, 0 to 1.
    pub fn share(&self, nanoseconds: u64) -> f64 {
        match self.total_ns {
            0 => 0.0,
            total => nanoseconds as f64 / total as f64,
        }
    }

    /// The rows of the sheet, by TraceLens's names. `kernel_time` is ours.
    pub fn rows(&self) -> [(&'static str, u64); 9] {
        [
            ("computation_time", self.computation_ns),
            ("exposed_comm_time", self.exposed_communication_ns),
            ("exposed_memcpy_time", self.exposed_memcpy_ns),
            ("busy_time", self.busy_ns),
            ("idle_time", self.idle_ns()),
            ("total_time", self.total_ns),
            ("total_comm_time", self.communication_ns),
            ("total_memcpy_time", self.memcpy_ns),
            ("kernel_time", self.kernel_ns()),
        ]
    }
}

/// What an event is on the time line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Computation,
    Communication,
    Memcpy,
}

/// Gathers the events of a time line, in any order.
#[derive(Debug)]
pub(super) struct Spans {
    classes: [Union; 3],
    /// From the first start to the last end.
    extent: Option<Interval>,
}

impl Spans {
    /// None so far; scratch files go to `folder`.
    pub(super) fn new(folder: &Path, budget: Budget) -> Self {
        Spans {
            classes: [(); 3].map(|()| Union::new(folder, budget)),
            extent: None,
        }
    }

    pub(super) fn add(&mut self, class: Class, (start, end): Interval) -> io::Result<()> {
        let (first, last) = self.extent.unwrap_or((start, end));
        self.extent = Some((first.min(start), last.max(end)));
        self.classes[class as usize].add((start, end))
    }

    /// The time line; none if there was nothing. `total`, if given, is the whole instead of the extent of the events.
    pub(super) fn timeline(self, total: Option<u64>) -> io::Result<Option<Timeline>> {
        let Some((first, last)) = self.extent else {
            return Ok(None);
        };
        let [computation, communication, memcpy] = self.classes;
        let [c, x, m] = [
            1 << Class::Computation as u8,
            1 << Class::Communication as u8,
            1 << Class::Memcpy as u8,
        ];
        let lengths = overlaps([computation.joined()?, communication.joined()?, memcpy.joined()?])?;
        let sum = |counts: &dyn Fn(usize) -> bool| (0..8).filter(|&set| counts(set)).map(|set| lengths[set]).sum();
        Ok(Some(Timeline {
            total_ns: total.unwrap_or_else(|| last.abs_diff(first)),
            busy_ns: sum(&|set| set != 0),
            computation_ns: sum(&|set| set & c != 0),
            communication_ns: sum(&|set| set & x != 0),
            exposed_communication_ns: sum(&|set| set & x != 0 && set & c == 0),
            memcpy_ns: sum(&|set| set & m != 0),
            exposed_memcpy_ns: sum(&|set| set == m),
        }))
    }
}

/// How long exactly each set of the three runs; bit `n` of the index says whether the `n`th does.
fn overlaps(mut unions: [Joined; 3]) -> io::Result<[u64; 8]> {
    let mut lengths = [0_u64; 8];
    let mut heads = [None; 3];
    for (head, union) in heads.iter_mut().zip(&mut unions) {
        *head = union.next()?;
    }
    let mut now = i64::MIN;
    loop {
        let mut running = 0;
        let mut next: Option<i64> = None;
        for (bit, (head, union)) in heads.iter_mut().zip(&mut unions).enumerate() {
            while let Some((_, end)) = *head
                && end <= now
            {
                *head = union.next()?;
            }
            let Some((start, end)) = *head else { continue };
            let change = if start <= now {
                running |= 1 << bit;
                end
            } else {
                start
            };
            next = Some(next.map_or(change, |next| next.min(change)));
        }
        let Some(next) = next else { return Ok(lengths) };
        if running != 0 {
            lengths[running] += next.abs_diff(now);
        }
        now = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLASSES: [Class; 3] = [Class::Computation, Class::Communication, Class::Memcpy];

    /// Nanosecond by nanosecond.
    fn naive(events: &[(usize, Interval)]) -> Timeline {
        let running = |class: usize, at: i64| {
            events
                .iter()
                .any(|&(of, (start, end))| of == class && start <= at && at < end)
        };
        let first = events.iter().map(|event| event.1.0).min().unwrap_or(0);
        let last = events.iter().map(|event| event.1.1).max().unwrap_or(0);
        let mut timeline = Timeline {
            total_ns: last.abs_diff(first),
            ..Timeline::default()
        };
        for at in first..last {
            let [computation, communication, memcpy] = [0, 1, 2].map(|class| running(class, at));
            timeline.busy_ns += u64::from(computation || communication || memcpy);
            timeline.computation_ns += u64::from(computation);
            timeline.communication_ns += u64::from(communication);
            timeline.exposed_communication_ns += u64::from(communication && !computation);
            timeline.memcpy_ns += u64::from(memcpy);
            timeline.exposed_memcpy_ns += u64::from(memcpy && !computation && !communication);
        }
        timeline
    }

    proptest! {
        #[test]
        fn equals_the_naive_time_line(
            events in prop::collection::vec((0_usize..3, -60_i64..60, 0_i64..25), 1..60), buffer in 1_usize..20,
        ) {
            let events: Vec<(usize, Interval)> = events.into_iter().map(|(class, start, length)| (class, (start, start + length))).collect();
            let folder = tempfile::tempdir().unwrap();
            let mut spans = Spans::new(folder.path(), Budget { buffer, fan_in: 2, read: 2 });
            for &(class, interval) in &events {
                spans.add(CLASSES[class], interval).unwrap();
            }
            prop_assert_eq!(spans.timeline(None).unwrap(), Some(naive(&events)));
        }
    }

    #[test]
    fn the_ends_of_time_do_not_overflow() {
        let folder = tempfile::tempdir().unwrap();
        let mut spans = Spans::new(folder.path(), Budget::default());
        spans.add(Class::Computation, (i64::MIN, i64::MIN)).unwrap();
        spans.add(Class::Memcpy, (i64::MAX - 1, i64::MAX)).unwrap();
        let timeline = spans.timeline(None).unwrap().unwrap();
        assert_eq!(
            (timeline.total_ns, timeline.busy_ns, timeline.exposed_memcpy_ns),
            (u64::MAX, 1, 1)
        );
    }
}
