//! tracemend makes every GPU trace of a run survive the way from capture to report.
//!
//! The rooms, from the bottom up; a room uses only those below it:
//! [`bytes`] (damage: scan and mend), [`traces`] (what lies in a run) and [`plugins`] (the WebAssembly host), [`ranks`] (whose
//! trace is whose), [`capture`] (dynolog) and [`reports`] (TraceLens and the embedded reporter), [`cli`] (arguments in, text or JSON out).
//! [`config`] (clusters) stands between [`plugins`] and [`cli`]; beside all: [`scratch`] (what must not outlive the process),
//! [`visible`] (what must not steer whoever reads it) and [`nearest`].

pub mod bytes;
pub mod capture;
pub mod cli;
pub mod config;
pub mod nearest;
pub mod plugins;
pub mod ranks;
pub mod reports;
pub mod scratch;
pub mod traces;
pub mod visible;
