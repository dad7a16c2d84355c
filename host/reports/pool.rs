//! Jobs that wait for their turn, shared by the threads that run them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::memory::CostModel;
use super::schedule::Schedule;

/// What a job was seen to need, for those of its kind that follow.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// The program.
    pub program: &'static str,
    /// Bytes of traces that it had in memory at once, decompressed.
    pub raw: u64,
    /// The most bytes of memory that it had.
    pub peak: u64,
    /// Whether it came to its end.
    pub succeeded: bool,
}

struct State {
    schedule: Schedule,
    model: CostModel,
}

/// The jobs of a run.
pub struct Pool<'a> {
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes of memory that a job needs by the model.
    needs: &'a (dyn Fn(&CostModel, usize) -> u64 + Sync),
    /// Deletes the mended copy of a trace.
    discard: &'a (dyn Fn(usize) + Sync),
}

impl<'a> Pool<'a> {
    /// `schedule` holds the jobs.
    pub fn new(
        schedule: Schedule,
        model: CostModel,
        needs: &'a (dyn Fn(&CostModel, usize) -> u64 + Sync),
        discard: &'a (dyn Fn(usize) + Sync),
    ) -> Self {
        Pool {
            state: Mutex::new(State { schedule, model }),
            changed: Condvar::new(),
            needs,
            discard,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a job may start, and starts it; none when no more will.
    pub fn next(&self) -> Option<Turn<'_>> {
        let mut state = self.state();
        loop {
            if let Some(start) = state.schedule.start() {
                // Under the lock: nobody is promised the room before it is there.
                start.evicted.into_iter().for_each(self.discard);
                return Some(Turn {
                    pool: self,
                    job: start.job,
                    seen: None,
                });
            }
            if state.schedule.is_drained() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The most bytes of scratch space that copies have taken at once.
    pub fn peak_scratch(&self) -> u64 {
        self.state().schedule.peak_scratch()
    }
}

/// A job that runs. Dropping it gives back what it has taken.
pub struct Turn<'a> {
    pool: &'a Pool<'a>,
    /// The job.
    pub job: usize,
    /// What it was seen to need.
    pub seen: Option<Seen>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        let State { schedule, model } = &mut *state;
        schedule.end(self.job).into_iter().for_each(self.pool.discard);
        if let Some(seen) = self.seen
            && model.learn(seen.program, seen.raw, seen.peak, seen.succeeded)
        {
            schedule.estimate_again(|job| (self.pool.needs)(model, job));
        }
        drop(state);
        self.pool.changed.notify_all();
    }
}
