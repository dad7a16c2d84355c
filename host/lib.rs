//! tracemend makes every GPU trace of a run survive the way from capture to report.
//!
//! The rooms, from the bottom up; a room uses only those below it:
//! [`bytes`] (damage: scan and mend), [`traces`] (what lies in a run) and [`plugins`] (the WebAssembly host), [`ranks`] (whose
//! trace is whose), [`capture`] (dynolog) and [`reports`] (TraceLens and the embedded reporter), [`cli`] (arguments in, text or JSON out).
//! [`config`] (clusters) stands between [`plugins`] and [`cli`]; beside all: [`scratch`] (what must not outlive the process),
//! [`visible`] (what must not steer whoever reads it) and [`nearest`].
//!
//! # Embedding
//! The binary is one caller among others. What another program is likely to want, whole in `examples/embed.rs`:
//!
//! - **Is this trace damaged, and where?** [`bytes::scan`] reads any stream once, in constant memory, and gives [`bytes::Findings`];
//!   an observer, if one is handed in, sees the top-level members on the way.
//! - **A copy that loads.** [`bytes::mend`] takes the findings and the stream again; [`bytes::restore`] turns a copy and its log back.
//! - **Whose trace is it?** [`plugins::PluginHost`] loads components, built in or from files, and [`plugins::PluginHost::label`] asks
//!   one about a list of traces. [`ranks::Assignment`] is what the answers of several policies come to.
//! - **What does dyno's answer mean?** [`plugins::PluginHost::interpret`].
//!
//! Errors that a caller decides on are types ([`plugins::Refusal`], [`plugins::CallError`]); all others are `anyhow` with context.
//! A trace that cannot be mended is no error but a [`bytes::Verdict`].

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
