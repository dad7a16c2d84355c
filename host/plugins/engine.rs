//! The one wasmtime engine of a process.

use std::time::Duration;

use anyhow::Result;
use wasmtime::{Config, Engine, WasmBacktraceDetails};

/// How often the clock that ends runaway plugins ticks.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// An engine whose epoch advances every [`TICK`] until the engine is dropped.
pub(super) fn engine() -> Result<Engine> {
    let mut config = Config::new();
    config.epoch_interruption(true).max_wasm_stack(512 << 10);
    config.wasm_backtrace_details(WasmBacktraceDetails::Enable);
    // The same input gives the same answer on every CPU.
    config
        .relaxed_simd_deterministic(true)
        .cranelift_nan_canonicalization(true);
    let engine = Engine::new(&config)?;
    let clock = engine.weak();
    std::thread::Builder::new().name("plugin-clock".into()).spawn(move || {
        while let Some(engine) = clock.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    })?;
    Ok(engine)
}

/// How many ticks cover `time`.
pub(super) fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(TICK.as_nanos()))
        .unwrap_or(u64::MAX)
        .max(1)
}
