//! Reports of a run: jobs are planned from its rank assignment and run side by side, by TraceLens or by the embedded reporter.
//! Every finished job is a row on disk at once.

pub mod builtin;
mod child;
mod collective;
mod command;
mod compare;
mod discovered;
mod driver;
mod extra;
mod farm;
mod flags;
mod generator;
mod help_cache;
mod interpreter;
mod job;
mod make;
mod memory;
mod outcome;
mod pftrace;
mod plan;
mod pool;
mod run;
mod schedule;
mod staging;
mod stem;
mod summary;

pub use collective::ranks as folded_ranks;
pub use compare::{Comparands, Comparison};
pub use discovered::{Discovered, Unreported, discovered, row_kind};
pub use driver::{Driver, Settings};
pub use extra::Extra;
pub use farm::{Farm, Reader, link_farm};
pub use generator::Generator;
pub use interpreter::{Interpreter, TraceLens, find_program};
pub use job::{Job, Work};
pub use pftrace::find_traceconv;
pub use plan::{Mode, Plan, Wanted, plan};
pub use run::{Limits, Report, Reporter, Request, run};
pub use summary::{Header, Row, Status, Summary};
