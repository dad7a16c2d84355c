//! Which job may start now: a decision over memory, scratch space and what is running, without a clock or a file.
//!
//! Largest first, so that none is left running alone at the end. What does not fit now is passed over by what does, but only so
//! often: a job that waits for much would otherwise wait for ever. All that a job needs is taken at once, before it starts, and
//! copies that nobody reads can be taken away from those who will: so whatever waits can start once nothing runs.

use std::cmp::Reverse;

/// What a job needs while it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes of memory at its peak.
    pub memory: u64,
    /// The mended copies that it reads, by the number of their trace.
    pub copies: Vec<usize>,
}

/// A job that is to start now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The job.
    pub job: usize,
    /// Copies to be deleted first, to make room; whoever reads them later has them made again.
    pub evicted: Vec<usize>,
}

#[derive(Debug, Clone, Default)]
struct Copy {
    size: u64,
    present: bool,
    /// Running jobs that read it.
    readers: usize,
    /// Waiting jobs that will.
    expected: usize,
}

#[derive(Debug)]
struct Waiting {
    job: usize,
    demand: Demand,
    passed_over: usize,
}

/// How often a job may be passed over by smaller ones before these wait as well.
const PATIENCE: usize = 8;

/// Jobs that wait and run, and what they have taken.
#[derive(Debug)]
pub struct Schedule {
    memory: u64,
    scratch: u64,
    copies: Vec<Copy>,
    /// Largest first.
    waiting: Vec<Waiting>,
    running: Vec<(usize, Demand)>,
    peak_scratch: u64,
}

impl Schedule {
    /// `memory` and `scratch` are budgets in bytes; `copies[i]` is how large a mended copy of trace `i` can become.
    pub fn new(memory: u64, scratch: u64, copies: Vec<u64>) -> Self {
        let copies = copies.into_iter().map(|size| Copy {
            size,
            ..Copy::default()
        });
        Schedule {
            memory,
            scratch,
            copies: copies.collect(),
            waiting: Vec::new(),
            running: Vec::new(),
            peak_scratch: 0,
        }
    }

    /// Puts a job in its place among those that wait.
    ///
    /// # Errors
    /// When its copies together are larger than the scratch budget, so that it could never start: their size.
    pub fn add(&mut self, job: usize, demand: Demand) -> Result<(), u64> {
        let wanted = demand.copies.iter().map(|&copy| self.copies[copy].size).sum();
        if wanted > self.scratch {
            return Err(wanted);
        }
        for &copy in &demand.copies {
            self.copies[copy].expected += 1;
        }
        self.waiting.push(Waiting {
            job,
            demand,
            passed_over: 0,
        });
        self.sort();
        Ok(())
    }

    fn sort(&mut self) {
        self.waiting
            .sort_by_key(|waiting| (Reverse(waiting.demand.memory), waiting.job));
    }

    /// What each waiting job needs by what is known now.
    pub fn estimate_again(&mut self, memory: impl Fn(usize) -> u64) {
        for waiting in &mut self.waiting {
            waiting.demand.memory = memory(waiting.job);
        }
        self.sort();
    }

    /// The largest job that fits beside those that run, if any may start now. A job that needs more memory than there is in all
    /// runs alone.
    pub fn start(&mut self) -> Option<Start> {
        let mut chosen = None;
        for (position, waiting) in self.waiting.iter().enumerate() {
            if self.has_memory_for(waiting.demand.memory)
                && let Some(evicted) = self.room_for(&waiting.demand.copies)
            {
                chosen = Some((position, evicted));
                break;
            }
            if waiting.passed_over >= PATIENCE {
                return None;
            }
        }
        let (position, evicted) = chosen?;
        for passed in &mut self.waiting[..position] {
            passed.passed_over += 1;
        }
        let Waiting { job, demand, .. } = self.waiting.remove(position);
        for &copy in &evicted {
            self.copies[copy].present = false;
        }
        for &copy in &demand.copies {
            let copy = &mut self.copies[copy];
            copy.present = true;
            copy.expected -= 1;
            copy.readers += 1;
        }
        self.peak_scratch = self.peak_scratch.max(self.scratch_taken());
        self.running.push((job, demand));
        Some(Start { job, evicted })
    }

    /// A job is over. Returns the copies that nobody will read any more.
    pub fn end(&mut self, job: usize) -> Vec<usize> {
        let Some(position) = self.running.iter().position(|(running, _)| *running == job) else {
            return Vec::new();
        };
        let (_, demand) = self.running.swap_remove(position);
        let mut done_with = Vec::new();
        for index in demand.copies {
            let copy = &mut self.copies[index];
            copy.readers -= 1;
            if copy.readers == 0 && copy.expected == 0 {
                copy.present = false;
                done_with.push(index);
            }
        }
        done_with
    }

    /// Whether nothing waits any more.
    pub fn is_drained(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes of memory that the running jobs have taken.
    pub fn memory_taken(&self) -> u64 {
        self.running
            .iter()
            .fold(0, |sum, (_, demand)| sum.saturating_add(demand.memory))
    }

    /// Bytes of scratch space that copies have taken.
    pub fn scratch_taken(&self) -> u64 {
        self.copies
            .iter()
            .filter(|copy| copy.present)
            .map(|copy| copy.size)
            .sum()
    }

    /// The most bytes of scratch space that were ever taken at once.
    pub fn peak_scratch(&self) -> u64 {
        self.peak_scratch
    }

    fn has_memory_for(&self, wanted: u64) -> bool {
        self.running.is_empty() || self.memory_taken().saturating_add(wanted) <= self.memory
    }

    /// What must be deleted so that `wanted` fit, if they can: copies that nobody reads just now, the largest first.
    fn room_for(&self, wanted: &[usize]) -> Option<Vec<usize>> {
        let missing: u64 = wanted
            .iter()
            .map(|&copy| &self.copies[copy])
            .filter(|copy| !copy.present)
            .map(|copy| copy.size)
            .sum();
        let mut taken = self.scratch_taken();
        let mut idle: Vec<usize> = (0..self.copies.len())
            .filter(|index| {
                let copy = &self.copies[*index];
                copy.present && copy.readers == 0 && !wanted.contains(index)
            })
            .collect();
        idle.sort_by_key(|&index| self.copies[index].size);
        let mut evicted = Vec::new();
        while taken.saturating_add(missing) > self.scratch {
            let index = idle.pop()?;
            taken -= self.copies[index].size;
            evicted.push(index);
        }
        Some(evicted)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn demand(memory: u64, copies: &[usize]) -> Demand {
        Demand {
            memory,
            copies: copies.to_vec(),
        }
    }

    fn started(schedule: &mut Schedule) -> Vec<usize> {
        std::iter::from_fn(|| schedule.start().map(|start| start.job)).collect()
    }

    #[test]
    fn the_largest_that_fits_starts_first() {
        let mut schedule = Schedule::new(100, 0, Vec::new());
        for (job, memory) in [10, 70, 60, 30].into_iter().enumerate() {
            schedule.add(job, demand(memory, &[])).unwrap();
        }
        assert_eq!(started(&mut schedule), [1, 3]);
        schedule.end(1);
        assert_eq!(started(&mut schedule), [2, 0]);
    }

    #[test]
    fn a_job_larger_than_the_budget_runs_alone() {
        let mut schedule = Schedule::new(100, 0, Vec::new());
        schedule.add(0, demand(500, &[])).unwrap();
        schedule.add(1, demand(1, &[])).unwrap();
        assert_eq!(started(&mut schedule), [0]);
        schedule.end(0);
        assert_eq!(started(&mut schedule), [1]);
    }

    #[test]
    fn a_copy_lives_until_its_last_reader_and_gives_way_to_one_that_is_needed() {
        let mut schedule = Schedule::new(100, 10, vec![6, 6]);
        schedule.add(0, demand(50, &[0])).unwrap();
        schedule.add(1, demand(40, &[1])).unwrap();
        schedule.add(2, demand(30, &[0])).unwrap();
        assert_eq!(schedule.start().unwrap().job, 0);
        // The copy of job 1 has no room, job 2 reads the one that is there.
        assert_eq!(schedule.start().unwrap().job, 2);
        assert_eq!(schedule.start(), None);
        assert_eq!(schedule.end(0), [] as [usize; 0]);
        assert_eq!(schedule.end(2), [0]);
        assert_eq!(
            schedule.start(),
            Some(Start {
                job: 1,
                evicted: vec![]
            })
        );

        let mut schedule = Schedule::new(100, 10, vec![6, 6]);
        schedule.add(0, demand(50, &[0])).unwrap();
        schedule.add(1, demand(40, &[1])).unwrap();
        schedule.add(2, demand(30, &[0])).unwrap();
        schedule.start().unwrap();
        schedule.end(0);
        assert_eq!(
            schedule.start(),
            Some(Start {
                job: 1,
                evicted: vec![0]
            })
        );
    }

    #[test]
    fn what_can_never_have_its_copies_is_refused() {
        let mut schedule = Schedule::new(100, 10, vec![6, 6]);
        assert_eq!(schedule.add(0, demand(1, &[0, 1])), Err(12));
        assert!(schedule.is_drained());
    }

    #[test]
    fn a_better_estimate_lets_more_start() {
        let mut schedule = Schedule::new(100, 0, Vec::new());
        for job in 0..3 {
            schedule.add(job, demand(90, &[])).unwrap();
        }
        assert_eq!(started(&mut schedule), [0]);
        schedule.end(0);
        schedule.estimate_again(|_| 50);
        assert_eq!(started(&mut schedule), [1, 2]);
    }

    prop_compose! {
        fn jobs()(copies in prop::collection::vec(0u64..60, 1..6))
            (jobs in prop::collection::vec((0u64..150, prop::collection::btree_set(0..copies.len(), 0..4)), 1..40), copies in Just(copies))
            -> (Vec<u64>, Vec<Demand>) {
            let demands = jobs.into_iter().map(|(memory, copies)| Demand { memory, copies: copies.into_iter().collect() });
            (copies, demands.collect())
        }
    }

    proptest! {
        #[test]
        fn budgets_hold_and_every_job_runs((copies, demands) in jobs(), workers in 1usize..5, order in prop::collection::vec(any::<prop::sample::Index>(), 200)) {
            let (memory, scratch) = (100, 100);
            let mut schedule = Schedule::new(memory, scratch, copies);
            let mut waiting: Vec<usize> = Vec::new();
            for (job, demand) in demands.iter().enumerate() {
                if schedule.add(job, demand.clone()).is_ok() {
                    waiting.push(job);
                }
            }
            let (mut running, mut order) = (Vec::new(), order.into_iter().cycle());
            let mut passed_over = vec![0; demands.len()];
            while !waiting.is_empty() || !running.is_empty() {
                while running.len() < workers && let Some(start) = schedule.start() {
                    for &job in waiting.iter().filter(|&&job| demands[job].memory > demands[start.job].memory) {
                        passed_over[job] += 1;
                        prop_assert!(passed_over[job] <= PATIENCE);
                    }
                    waiting.retain(|&job| job != start.job);
                    running.push(start.job);
                    prop_assert!(schedule.memory_taken() <= memory || running.len() == 1);
                    prop_assert!(schedule.scratch_taken() <= scratch);
                    let read = running.iter().flat_map(|&job| &demands[job].copies);
                    prop_assert!(start.evicted.iter().all(|evicted| read.clone().all(|copy| copy != evicted)));
                }
                // Something always runs while something waits.
                prop_assert!(!running.is_empty());
                let ended = running.swap_remove(order.next().unwrap().index(running.len()));
                schedule.end(ended);
            }
            prop_assert_eq!(schedule.scratch_taken(), 0);
            prop_assert_eq!(schedule.memory_taken(), 0);
        }
    }
}
