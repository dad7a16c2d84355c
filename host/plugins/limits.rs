//! What one call into a plugin may cost.

use std::time::Duration;

use wasmtime::ResourceLimiter;

/// Bounds of one call into a plugin, and of all its calls in a run. Every call runs in a fresh store, so memory does not add up.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Time that the plugin's own code may run in a call. Time that the host spends on the plugin's behalf does not count.
    pub time: Duration,
    /// The same in all calls of one plugin together, for as long as it is loaded.
    pub run_time: Duration,
    /// Time that the host may spend on the plugin's behalf: reading and searching traces.
    pub host_time: Duration,
    /// Bytes of linear memory and table elements (16 bytes each), summed over the plugin.
    pub memory: usize,
    /// Bytes that may be copied out of the plugin in one call: its result, and what it hands to imported functions.
    pub result: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            time: Duration::from_secs(5),
            run_time: Duration::from_secs(60),
            host_time: Duration::from_secs(300),
            memory: 256 << 20,
            result: 64 << 20,
        }
    }
}

/// Counts what a store's memories and tables hold and refuses growth beyond the limit. `StoreLimits` of wasmtime bounds each
/// memory by itself, not their sum.
#[derive(Debug)]
pub(super) struct MemoryCap {
    max: usize,
    used: usize,
    /// Set once growth was refused: a guest's allocator often turns the refusal into a bare trap.
    pub(super) refused: bool,
}

impl MemoryCap {
    pub(super) fn new(max: usize) -> Self {
        MemoryCap {
            max,
            used: 0,
            refused: false,
        }
    }

    fn grow(&mut self, current: usize, desired: usize) -> wasmtime::Result<bool> {
        let total = self.used.saturating_sub(current).saturating_add(desired);
        if total > self.max {
            self.refused = true;
            wasmtime::bail!(
                "it asked for {} MiB of memory, the limit is {} MiB",
                total >> 20,
                self.max >> 20
            );
        }
        self.used = total;
        Ok(true)
    }
}

impl ResourceLimiter for MemoryCap {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current, desired)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current.saturating_mul(16), desired.saturating_mul(16))
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        8
    }
}
