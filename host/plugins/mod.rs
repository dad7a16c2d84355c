//! WebAssembly plugins: loading, limits, calls. Knows what the contract in `wit/` says, and neither TraceLens nor dyno.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use std::sync::Arc;
//! use tracemend::plugins::{Cache, Kind, Limits, NoContents, PluginHost, Trace, built_in};
//!
//! let host = PluginHost::new(Cache::of_user(), Limits::default(), Box::new(|plugin, _, message| eprintln!("{plugin}: {message}")))?;
//! let policy = built_in(&host, "rank-in-name")?;
//! let trace = Trace { path: "rank_3/trace.json".into(), kind: Kind::Kineto, size: 0, gpu_events: None };
//! println!("{:?}", host.label(&policy, &[trace], &[], Arc::new(NoContents))?);
//! # Ok(()) }
//! ```

pub mod authoring;
mod bindings;
mod cache;
mod call;
mod component;
mod engine;
mod imports;
mod limits;
mod messages;
mod order;
mod plugin;
mod recorded;
mod registry;
mod wasi;

pub use bindings::dyno_interpreter::exports::tracemend::plugin::interpreter::{Answer, Call, Verdict};
pub use bindings::log::Level;
pub use bindings::trace_naming::exports::tracemend::plugin::naming::{Claim, Kind, Label, Trace};
pub use bindings::types::{Description, Setting};
pub use cache::{Cache, user_cache};
pub use call::{CallError, Reason};
pub use component::{CONTRACT, Refusal, World};
pub use imports::{Contents, NoContents};
pub use limits::Limits;
pub use order::{Order, Place, Wanted};
pub use plugin::{LogSink, Origin, Plugin, PluginHost, UnknownSetting};
pub use recorded::{ExpectedAnswer, RecordedCall};
pub use registry::{BUILT_IN, Registry, built_in, from_file};
