//! The one way into a plugin: a fresh store, its limits, the call, and what went wrong in our own words.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use wasmtime::{Engine, Store, Trap, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use super::bindings::dyno_interpreter::{DynoInterpreter, DynoInterpreterPre};
use super::bindings::log::Level;
use super::bindings::trace_naming::{TraceNaming, TraceNamingPre};
use super::engine::{TICK, ticks};
use super::imports::{Contents, HostTimeSpent, State};
use super::limits::Limits;
use super::wasi::{Overslept, WaitsForever};

/// A component, linked and ready to be instantiated.
pub(super) trait Guest {
    /// The typed exports of one instance.
    type Exports;
    fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<Self::Exports>;
}

impl Guest for TraceNamingPre<State> {
    type Exports = TraceNaming;
    fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<TraceNaming> {
        TraceNamingPre::instantiate(self, store)
    }
}

impl Guest for DynoInterpreterPre<State> {
    type Exports = DynoInterpreter;
    fn instantiate(&self, store: &mut Store<State>) -> wasmtime::Result<DynoInterpreter> {
        DynoInterpreterPre::instantiate(self, store)
    }
}

/// A call into a plugin that gave no usable answer.
#[derive(Debug, Error)]
#[error("plugin {plugin}: {export}: {reason}")]
pub struct CallError {
    /// The plugin's name.
    pub plugin: String,
    /// The exported function.
    pub export: &'static str,
    /// What happened.
    pub reason: Reason,
}

/// Where limits are set for a site.
const LIMITS: &str = "[limits] of tracemend.toml";
const RAISES_TIME: &str = "--plugin-timeout, or call-seconds in [limits] of tracemend.toml, raises";

/// Why a call gave no usable answer.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Reason {
    /// It ran too long.
    #[error("stopped after {0:?} of its own running time ({RAISES_TIME} the limit)")]
    Time(Duration),
    /// All its calls together ran too long.
    #[error("stopped after {0:?} of its own running time in all its calls (run-seconds in {LIMITS} raises the limit)")]
    RunTime(Duration),
    /// It slept longer than it may run. No one waited for it: its clock is the host's to move.
    #[error("stopped, since it slept for {asked:?} where it may run for {limit:?} ({RAISES_TIME} the limit)")]
    Sleep {
        /// How long it slept in all, with the sleep that was one too many.
        asked: Duration,
        /// The limit.
        limit: Duration,
    },
    /// It kept the host busy too long.
    #[error("stopped after the host had spent {0:?} reading traces for it (host-seconds in {LIMITS} raises the limit)")]
    HostTime(Duration),
    /// It asked for too much memory.
    #[error("stopped when it wanted more than {} MiB of memory (--plugin-memory, or memory-mib in {LIMITS}, raises the limit)", .0 >> 20)]
    Memory(usize),
    /// It handed over too much data.
    #[error("stopped when it handed over more than {} MiB of data in one call (result-mib in {LIMITS} raises the limit)", .0 >> 20)]
    Result(usize),
    /// It trapped: a panic, a fault, a misuse of an import.
    #[error("{0}")]
    Trap(String),
    /// It answered with an error.
    #[error("it gave up: {0}")]
    GaveUp(String),
    /// It answered, but not what the contract asks for.
    #[error("nonsense: {0}")]
    Nonsense(String),
}

#[derive(Debug, Error)]
#[error("own time")]
struct OwnTimeSpent;

/// How long a plugin's own code has run, in all its calls.
#[derive(Debug, Default)]
pub(super) struct Spent(AtomicU64);

impl Spent {
    fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// Calls `run` on a fresh instance of `guest`, whose earlier calls took `spent`.
pub(super) fn call<G: Guest, T>(
    engine: &Engine,
    limits: &Limits,
    spent: &Spent,
    guest: &G,
    contents: Arc<dyn Contents>,
    run: impl FnOnce(&G::Exports, &mut Store<State>) -> wasmtime::Result<T>,
) -> (Result<T, Reason>, Vec<(Level, String)>) {
    let left = limits.run_time.saturating_sub(spent.get());
    if left.is_zero() {
        return (Err(Reason::RunTime(limits.run_time)), Vec::new());
    }
    let time = limits.time.min(left);
    let mut store = Store::new(engine, State::new(limits, time, contents));
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(limits.result);
    store.set_epoch_deadline(ticks(time));
    let mut charged = Duration::ZERO;
    store.epoch_deadline_callback(move |store| {
        let spent = store.data().host_time;
        // The clock ran on while the host worked for the plugin: give that time back, once.
        let owed = spent - charged;
        charged = spent;
        if owed < TICK {
            Err(OwnTimeSpent.into())
        } else {
            Ok(UpdateDeadline::Continue(ticks(owed.min(time))))
        }
    });

    let start = Instant::now();
    let result = guest
        .instantiate(&mut store)
        .and_then(|exports| run(&exports, &mut store));
    let elapsed = start.elapsed();
    let state = store.into_data();
    spent.add(elapsed.saturating_sub(state.host_time));
    let last_words = state.messages.last_words();
    let mut messages = state.messages.take();
    let result = result.map_err(|error| {
        let panic = matches!(messages.last(), Some((Level::Warn, text)) if text.starts_with("panicked"));
        let last_words = if panic {
            messages.pop().map(|(_, text)| text)
        } else {
            last_words
        };
        messages.push((Level::Debug, format!("{error:#}")));
        reason(&error, last_words, state.memory.refused, limits, time)
    });
    (result, messages)
}

fn reason(
    error: &wasmtime::Error,
    last_words: Option<String>,
    memory_refused: bool,
    limits: &Limits,
    time: Duration,
) -> Reason {
    let root = error.root_cause();
    if root.is::<OwnTimeSpent>() {
        return match time < limits.time {
            true => Reason::RunTime(limits.run_time),
            false => Reason::Time(time),
        };
    }
    if root.is::<HostTimeSpent>() {
        return Reason::HostTime(limits.host_time);
    }
    if let Some(Overslept(asked)) = root.downcast_ref() {
        return Reason::Sleep {
            asked: *asked,
            limit: time,
        };
    }
    if root.is::<WaitsForever>() {
        return Reason::Trap("stopped, since it waits for something that can never come: a plugin has no input".into());
    }
    if let Some(I32Exit(code)) = root.downcast_ref() {
        let words = last_words.map(|words| format!(": {words}")).unwrap_or_default();
        return Reason::Trap(format!(
            "it ended itself with exit code {code} instead of answering{words}"
        ));
    }
    if memory_refused {
        return Reason::Memory(limits.memory);
    }
    let root = root.to_string();
    if root.starts_with("too much data is being copied") {
        return Reason::Result(limits.result);
    }
    Reason::Trap(match (last_words, error.downcast_ref::<Trap>()) {
        (Some(words), Some(Trap::UnreachableCodeReached)) => words,
        (None, Some(Trap::UnreachableCodeReached)) => {
            "it trapped without a word (a panic without a panic hook?)".into()
        }
        (_, Some(Trap::MemoryOutOfBounds | Trap::StackOverflow)) => {
            format!("it trapped: {root} (endless recursion, or a stray pointer)")
        }
        (_, Some(trap)) => format!("it trapped: {trap}"),
        (_, None) => root.lines().next().unwrap_or("it failed").to_owned(),
    })
}
