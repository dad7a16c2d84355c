//! How asking ended, as scripts and the state folder read it.

use serde::{Deserialize, Serialize};

use crate::plugins::Verdict;

/// How asking one daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Processes were triggered.
    Accepted,
    /// The request can never succeed.
    RequestRejected,
    /// No answer came.
    Unreachable,
    /// All matched processes had a request pending to the last.
    Busy,
    /// No process matched to the last.
    NoProcess,
    /// Cancelled before any of that.
    Stopped,
}

/// How it ended for one host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct HostOutcome {
    pub host: String,
    pub result: Ending,
    pub attempts: u32,
    pub matched: Vec<i64>,
    pub triggered: Vec<i64>,
    pub busy: u32,
    pub reason: String,
    /// How many ranks the host has, where that is known.
    #[serde(default)]
    pub ranks_expected: Option<usize>,
    /// How many of those were not triggered.
    #[serde(default)]
    pub ranks_missing: usize,
    /// Their numbers, where those can be told.
    #[serde(default)]
    pub missing_ranks: Vec<u32>,
}

/// How it ended for all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TriggerResult {
    /// `accepted` if any host's was, else the first of the hosts' endings in the order of [`Ending`].
    pub result: Ending,
    /// One a host, in the order in which they were given.
    pub hosts: Vec<HostOutcome>,
}

/// One attempt, as the manifest of what came of it keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct NotedAttempt {
    /// Seconds since 1970.
    pub time: f64,
    pub attempt: u32,
    pub verdict: String,
    pub reason: String,
}

/// One attempt, as the state folder keeps it.
#[derive(Debug, Serialize)]
#[allow(missing_docs)]
pub struct AttemptRecord<'a> {
    /// The capture, as its manifests have it.
    pub capture: &'a str,
    /// Seconds since 1970.
    pub time: f64,
    pub attempt: u32,
    pub host: &'a str,
    pub verdict: &'static str,
    pub matched: &'a [i64],
    pub triggered: &'a [i64],
    pub busy: u32,
    pub reason: &'a str,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub start_time_ms: u64,
}

/// How asking ends if this is the last answer.
pub fn ending(verdict: Verdict) -> Ending {
    match verdict {
        Verdict::Accepted => Ending::Accepted,
        Verdict::Rejected => Ending::RequestRejected,
        Verdict::Unreachable => Ending::Unreachable,
        Verdict::Busy => Ending::Busy,
        Verdict::Waiting => Ending::NoProcess,
    }
}

/// A verdict in the words of the contract.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Waiting => "waiting",
        Verdict::Busy => "busy",
        Verdict::Unreachable => "unreachable",
        Verdict::Rejected => "rejected",
    }
}
