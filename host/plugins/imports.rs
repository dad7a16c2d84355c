//! What a plugin may call: `bytes`, `contents`, `log`, and a WASI with nothing in it for those that import it. Nothing else is
//! linked, so there is nothing else to reach.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::bindings::contents::Hit;
use super::bindings::log::Level;
use super::bindings::{bytes, contents, log, types};
use super::limits::{Limits, MemoryCap};
use super::messages::Messages;
use super::wasi::Wasi;
use crate::bytes as damage;

/// What lies inside the traces of a batch. `index` is a trace's position in the batch and below [`Contents::count`].
/// Bytes and offsets are those of the decompressed trace.
pub trait Contents: Send + Sync {
    /// How many traces the batch has.
    fn count(&self) -> u32;
    /// JSON text of each top-level member named `key`, in file order.
    fn members(&self, index: u32, key: &str) -> Vec<String>;
    /// The first bytes, at most `max`.
    fn head(&self, index: u32, max: usize) -> io::Result<Vec<u8>>;
    /// The last bytes, at most `max`.
    fn tail(&self, index: u32, max: usize) -> io::Result<Vec<u8>>;
    /// The first `limit` places of `needle`: offset, and the bytes around it, at most `around` on each side.
    fn find(&self, index: u32, needle: &[u8], limit: usize, around: usize) -> io::Result<Vec<(u64, Vec<u8>)>>;
}

/// A batch without traces, for calls that need none.
pub struct NoContents;

impl Contents for NoContents {
    fn count(&self) -> u32 {
        0
    }
    fn members(&self, _: u32, _: &str) -> Vec<String> {
        Vec::new()
    }
    fn head(&self, _: u32, _: usize) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
    fn tail(&self, _: u32, _: usize) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
    fn find(&self, _: u32, _: &[u8], _: usize, _: usize) -> io::Result<Vec<(u64, Vec<u8>)>> {
        Ok(Vec::new())
    }
}

const MAX_SLICE: usize = 64 << 10;
const MAX_HITS: usize = 1000;
const AROUND: usize = 200;

/// The host has worked for the plugin as long as it may.
#[derive(Debug, Error)]
#[error("host time")]
pub(super) struct HostTimeSpent;

/// The host's side of one call.
pub(super) struct State {
    pub(super) memory: MemoryCap,
    pub(super) host_time: Duration,
    pub(super) messages: Messages,
    contents: Arc<dyn Contents>,
    time: Duration,
    host_limit: Duration,
    wasi: Option<Box<Wasi>>,
}

impl State {
    /// `time` is how long the guest may run, and so sleep.
    pub(super) fn new(limits: &Limits, time: Duration, contents: Arc<dyn Contents>) -> Self {
        State {
            memory: MemoryCap::new(limits.memory),
            host_time: Duration::ZERO,
            messages: Messages::default(),
            contents,
            time,
            host_limit: limits.host_time,
            wasi: None,
        }
    }

    /// The call's WASI, made when it is first asked for: most guests never do.
    pub(super) fn wasi(&mut self) -> &mut Wasi {
        self.wasi
            .get_or_insert_with(|| Box::new(Wasi::new(self.time, self.messages.clone())))
    }

    /// Runs `work` on the plugin's behalf, off the plugin's own clock and on the host's.
    fn on_behalf<T>(&mut self, work: impl FnOnce(&dyn Contents) -> T) -> wasmtime::Result<T> {
        let start = Instant::now();
        let result = work(self.contents.as_ref());
        self.host_time += start.elapsed();
        if self.host_time > self.host_limit {
            return Err(HostTimeSpent.into());
        }
        Ok(result)
    }

    fn check(&self, index: u32) -> wasmtime::Result<()> {
        let count = self.contents.count();
        if index >= count {
            wasmtime::bail!("it asked for trace {index} of a list of {count}");
        }
        Ok(())
    }
}

impl types::Host for State {}

impl log::Host for State {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        self.messages.log(level, message);
        Ok(())
    }
}

impl bytes::Host for State {
    fn scan(&mut self, data: Vec<u8>) -> wasmtime::Result<Vec<bytes::Flaw>> {
        let flaws = self.on_behalf(|_| damage::ill_formed(&data))?;
        Ok(flaws
            .into_iter()
            .map(|(offset, length)| bytes::Flaw { offset, length })
            .collect())
    }

    fn repair(&mut self, data: Vec<u8>) -> wasmtime::Result<String> {
        self.on_behalf(|_| damage::repair(&data))
    }
}

impl contents::Host for State {
    fn members(&mut self, index: u32, key: String) -> wasmtime::Result<Vec<String>> {
        self.check(index)?;
        self.on_behalf(|contents| contents.members(index, &key))
    }

    fn head(&mut self, index: u32, max: u32) -> wasmtime::Result<Vec<u8>> {
        self.check(index)?;
        Ok(self.on_behalf(|contents| contents.head(index, MAX_SLICE.min(max as usize)))??)
    }

    fn tail(&mut self, index: u32, max: u32) -> wasmtime::Result<Vec<u8>> {
        self.check(index)?;
        Ok(self.on_behalf(|contents| contents.tail(index, MAX_SLICE.min(max as usize)))??)
    }

    fn find(&mut self, index: u32, needle: String, limit: u32) -> wasmtime::Result<Vec<Hit>> {
        self.check(index)?;
        let limit = MAX_HITS.min(limit as usize);
        if needle.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let hits = self.on_behalf(|contents| contents.find(index, needle.as_bytes(), limit, AROUND))??;
        Ok(hits
            .into_iter()
            .map(|(offset, around)| Hit {
                offset,
                around: damage::repair(&around),
            })
            .collect())
    }
}
