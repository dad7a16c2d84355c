//! Reports of a run: jobs are planned from its rank assignment and run side by side, by TraceLens or by the embedded reporter.
//! Every finished job is a row on disk at once.

pub mod builtin;
mod child;
mod command;
mod farm;
mod figures;
mod generator;
pub mod html;
mod interpreter;
mod job;
mod ledger;
mod make;
mod memory;
mod merge;
mod opening;
mod outcome;
mod plan;
mod pool;
mod record;
mod resume;
mod run;
mod running;
mod schedule;
mod shard;
mod staging;
mod stem;
mod summary;

pub use command::Driver;
pub use farm::{Farm, Reader, link_farm};
pub use figures::figures;
pub use generator::Generator;
pub use interpreter::{Interpreter, TraceLens};
pub use job::{Job, Work};
pub use merge::{merge, write_merged};
pub use plan::ranks as folded_ranks;
pub use plan::{Mode, Plan, plan};
pub use record::{ClusterUse, Identity, JobRecord, LimitsUse, PluginUse, Record, ReporterUse, ShardUse, TraceRecord};
pub use run::{Limits, Provenance, Report, Reporter, Request, run};
pub use shard::share;
pub use summary::{Header, Row, Status};
