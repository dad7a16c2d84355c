//! Clocks that stand still, and waiting that takes no time.
//!
//! Epochs do not reach a guest that waits inside the host (facts/wasm.md, finding 5), so no guest ever waits there: time begins
//! at 0 and moves only when all that a guest waits for lies in the future, then at once to the earliest of it. A guest that
//! sleeps longer than it may run is ended, without anyone having waited for it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use thiserror::Error;
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::bindings::sync::io::poll;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi_io::bindings::wasi::io::poll as waiting;

/// The guest slept longer than it may run.
#[derive(Debug, Error)]
#[error("slept {0:?}")]
pub(in crate::plugins) struct Overslept(pub(in crate::plugins) Duration);

/// The guest waits for what cannot come.
#[derive(Debug, Error)]
#[error("waits for what can never come")]
pub(in crate::plugins) struct WaitsForever;

/// No time at all: what a timer never reaches, and the mark of a clock on which nobody waits.
const NEVER: u64 = u64::MAX;

/// The clock of one call, in nanoseconds from its begin.
pub(super) struct Clock {
    hands: Arc<Hands>,
    patience: u64,
}

struct Hands {
    now: AtomicU64,
    /// The earliest time that somebody waits for.
    awaited: AtomicU64,
}

impl Clock {
    /// A clock that goes no further than `patience`.
    pub(super) fn new(patience: Duration) -> Self {
        Clock {
            hands: Arc::new(Hands {
                now: AtomicU64::new(0),
                awaited: AtomicU64::new(NEVER),
            }),
            patience: u64::try_from(patience.as_nanos()).unwrap_or(NEVER - 1),
        }
    }

    fn now(&self) -> u64 {
        self.hands.now.load(Ordering::Relaxed)
    }

    /// Runs `wait` to its end, moving the clock instead of waiting.
    fn run<T>(&self, wait: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
        let mut wait = pin!(wait);
        loop {
            self.hands.awaited.store(NEVER, Ordering::Relaxed);
            if let Poll::Ready(result) = wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return result;
            }
            match self.hands.awaited.load(Ordering::Relaxed) {
                NEVER => return Err(WaitsForever.into()),
                time if time > self.patience => return Err(Overslept(Duration::from_nanos(time)).into()),
                time => self.hands.now.store(time, Ordering::Relaxed),
            }
        }
    }
}

struct Timer {
    due: u64,
    hands: Arc<Hands>,
}

impl Pollable for Timer {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(poll_fn(|_| {
            if self.due <= self.hands.now.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            self.hands.awaited.fetch_min(self.due, Ordering::Relaxed);
            Poll::Pending
        }))
    }
}

/// `wasi:clocks` and `wasi:io/poll` on the clock of a call.
pub(super) struct Clocks<'a> {
    pub(super) clock: &'a Clock,
    pub(super) table: &'a mut ResourceTable,
}

impl Clocks<'_> {
    fn timer(&mut self, due: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let timer = self.table.push(Timer {
            due,
            hands: self.clock.hands.clone(),
        })?;
        subscribe(self.table, timer)
    }
}

impl monotonic_clock::Host for Clocks<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.clock.now())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.timer(when)
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.timer(self.clock.now().saturating_add(duration))
    }
}

impl wall_clock::Host for Clocks<'_> {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        let now = Duration::from_nanos(self.clock.now());
        Ok(wall_clock::Datetime {
            seconds: now.as_secs(),
            nanoseconds: now.subsec_nanos(),
        })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime {
            seconds: 0,
            nanoseconds: 1,
        })
    }
}

impl poll::Host for Clocks<'_> {
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        self.clock.run(waiting::Host::poll(self.table, pollables))
    }
}

impl poll::HostPollable for Clocks<'_> {
    fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        self.clock.run(waiting::HostPollable::ready(self.table, pollable))
    }

    fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.clock.run(waiting::HostPollable::block(self.table, pollable))
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        waiting::HostPollable::drop(self.table, pollable)
    }
}

#[cfg(test)]
mod tests {
    use super::monotonic_clock::Host as _;
    use super::poll::{Host as _, HostPollable as _};
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn with<T>(patience: u64, test: impl FnOnce(&mut Clocks) -> T) -> T {
        let clock = Clock::new(Duration::from_secs(patience));
        let mut table = ResourceTable::new();
        test(&mut Clocks {
            clock: &clock,
            table: &mut table,
        })
    }

    #[test]
    fn the_earliest_of_several_timers_moves_the_clock() {
        with(10, |clocks| {
            let early = clocks.subscribe_duration(SECOND).unwrap();
            let late = clocks.subscribe_duration(4 * SECOND).unwrap();
            assert!(!clocks.ready(Resource::new_borrow(early.rep())).unwrap());
            let both = vec![Resource::new_borrow(late.rep()), Resource::new_borrow(early.rep())];
            assert_eq!(clocks.poll(both).unwrap(), [1]);
            assert_eq!(clocks.now().unwrap(), SECOND);
            clocks.block(late).unwrap();
            assert_eq!(clocks.now().unwrap(), 4 * SECOND);
        });
    }

    #[test]
    fn sleep_counts_and_has_an_end() {
        with(5, |clocks| {
            for _ in 0..5 {
                let timer = clocks.subscribe_duration(SECOND).unwrap();
                clocks.block(timer).unwrap();
            }
            let timer = clocks.subscribe_duration(SECOND).unwrap();
            let error = clocks.block(timer).unwrap_err();
            assert_eq!(error.downcast_ref::<Overslept>().unwrap().0, Duration::from_secs(6));
            let never = clocks.subscribe_duration(NEVER).unwrap();
            assert!(clocks.block(never).unwrap_err().is::<WaitsForever>());
        });
    }
}
