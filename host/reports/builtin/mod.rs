//! The embedded reporter: what the GPUs did, straight from the mended bytes of a trace, without a copy on disk. It needs no
//! Python, and memory that does not grow with the trace.
//!
//! [`report`] makes the [`TraceReport`] of one trace; a [`RunTally`] puts those of a run together into a [`RunReport`]. Figures
//! that TraceLens has too are defined as there; each says where. Times are integer nanoseconds, so sums are exact.

mod activity;
mod collectives;
mod decimal;
mod intervals;
mod json;
mod kineto;
mod ranks;
mod rocprof;
mod slowest;
mod tables;
mod tally;
mod timeline;
mod trace;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::bytes::MendingReader;
use crate::traces::{Kind, Run};

pub use activity::OTHER;
pub use collectives::{Collective, CollectiveKey, UNKNOWN};
pub use ranks::{Evidence, RankRow, RunCollective, RunKernel, RunReport, Slowest, Source, Spread};
pub use tables::cell;
pub use tally::RunTally;
pub use timeline::Timeline;
pub use trace::{Direction, Kernel, MemoryCopies, Runs, Skipped, TraceReport};

/// The report on trace `index` of the run. Scratch files go to the folder `scratch`: 16 bytes for each GPU event that does not
/// touch another one, without a name, so nothing is left of them.
///
/// # Errors
/// When the trace cannot be read or scratch cannot be written.
pub fn report(run: &Run, index: usize, scratch: &Path) -> Result<TraceReport> {
    let trace = &run.traces[index];
    let path = trace.display_path();
    let read = || -> Result<TraceReport> {
        let mut document = json::Document::new(MendingReader::new(run.open(index)?, &trace.findings)?);
        let mut activity = activity::Activity::new(scratch);
        let total = match trace.kind {
            Kind::Kineto => {
                kineto::read(&mut document, &mut activity)?;
                None
            }
            Kind::Rocprof => rocprof::read(&mut document, &mut activity, scratch)?,
            _ => bail!("the embedded reporter reads Kineto and rocprofv3 JSON, and it is neither"),
        };
        Ok(activity.report(total)?)
    };
    read().with_context(|| format!("cannot read {path}"))
}
