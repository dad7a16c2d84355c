//! Asking dynolog for a capture, understanding the answer, and getting every file that Kineto then writes.
//!
//! Knows dyno, the daemon's protocol and Kineto's file names (facts/dynolog.md); neither TraceLens nor reports. What an answer means
//! is an interpreter plugin's to say. With `analyze` it meets in one file only: the manifest.

mod cancel;
mod daemon;
mod dyno;
mod hook;
mod log_path;
mod manifest;
mod muster;
mod outcome;
mod process;
mod registration;
mod request;
mod rpc;
mod settle;
mod state;
mod target;
mod trigger;
mod wait;

pub use cancel::Cancel;
pub use daemon::{DAEMON_LOG, Daemon, DaemonRecord, Ended, answers};
pub use dyno::Dyno;
pub use hook::write_hook;
pub use log_path::{LogPath, redirected_file, trace_file};
pub use manifest::{Manifest, TracedProcess, attempts_file_name, newest_manifests, now};
pub use outcome::{AttemptRecord, Ending, HostOutcome, TriggerResult};
pub use process::{Identity, host_name};
pub use request::{Request, Window, parse_job_id, parse_pids};
pub use rpc::Address;
pub use state::{State, append_json_line, make_private, write_json};
pub use target::{Target, Transport};
pub use trigger::{Patience, Trigger, TriggerSink};
pub use wait::{Fate, Gathered, WaitOptions, wait};
