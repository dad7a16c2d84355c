//! Standard output and error of a guest, as log messages.

use std::future::{Future, ready};
use std::pin::Pin;

use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::cli::{stderr, stdout};
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamResult};
use wasmtime_wasi_io::bytes::Bytes;

use crate::plugins::messages::{Messages, Source};

/// What a guest may write at once; it may go on at once, so this is no limit in all.
const PERMIT: usize = 64 << 10;

/// `wasi:cli/stdout` and `wasi:cli/stderr` of a call.
pub(super) struct StandardStreams<'a> {
    pub(super) messages: &'a Messages,
    pub(super) table: &'a mut ResourceTable,
}

impl StandardStreams<'_> {
    fn stream(&mut self, source: Source) -> wasmtime::Result<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(Lines {
            messages: self.messages.clone(),
            source,
        });
        Ok(self.table.push(stream)?)
    }
}

impl stdout::Host for StandardStreams<'_> {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.stream(Source::Stdout)
    }
}

impl stderr::Host for StandardStreams<'_> {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<DynOutputStream>> {
        self.stream(Source::Stderr)
    }
}

struct Lines {
    messages: Messages,
    source: Source,
}

impl Pollable for Lines {
    fn ready<'a, 'b>(&'a mut self) -> Pin<Box<dyn Future<Output = ()> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(ready(()))
    }
}

impl OutputStream for Lines {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.messages.write(self.source, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}
