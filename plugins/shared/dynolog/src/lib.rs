//! What the dynolog daemon's reply to a capture request means, for the interpreters that read it out of dyno's text and off the wire,
//! and the contract's types, which both speak.

mod line;
mod reply;

wit_bindgen::generate!({
    path: "../../../wit/0.1.0",
    world: "dyno-interpreter",
    pub_export_macro: true,
    default_bindings_module: "dynolog",
});

pub use exports::tracemend::plugin::interpreter::{Answer, Call, Guest, Verdict};
pub use line::one_line;
pub use tracemend::plugin::bytes::repair;
pub use tracemend::plugin::types::Description;

use tracemend::plugin::log::{Level, log};

/// From now on, a panic is a line of the host's log.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
}

/// What a plugin without settings says of itself.
pub fn description(name: &str, version: &str, summary: &str) -> Description {
    Description {
        name: name.into(),
        version: version.into(),
        summary: summary.into(),
        settings: Vec::new(),
    }
}

/// A verdict on a call that names no process.
pub fn without_processes(verdict: Verdict, reason: impl Into<String>) -> Answer {
    Answer {
        verdict,
        matched: Vec::new(),
        triggered: Vec::new(),
        busy: 0,
        reason: reason.into(),
    }
}

/// Judges the JSON text of a whole reply (facts/dynolog.md section 2, "How to classify"). Silence is the caller's to judge.
pub fn judge(json: &str) -> Answer {
    let reply::Counts {
        matched,
        triggered,
        busy,
    } = match reply::read(json) {
        Ok(counts) => counts,
        Err(reason) => return without_processes(Verdict::Rejected, one_line(&reason)),
    };
    let count = matched.len();
    let (verdict, reason) = if matched.is_empty() {
        (
            Verdict::Waiting,
            "no process matched: check --job-id and --pids, and that the job runs with KINETO_USE_DAEMON".into(),
        )
    } else if triggered.is_empty() && busy > 0 {
        (
            Verdict::Busy,
            format!("{busy} of {count} matched processes have a request pending, none was triggered"),
        )
    } else if triggered.is_empty() {
        (
            Verdict::Rejected,
            format!(
                "{} matched, but none was triggered: is --process-limit 0?",
                processes(count)
            ),
        )
    } else {
        (Verdict::Accepted, accepted(count, triggered.len(), busy))
    };
    Answer {
        verdict,
        matched,
        triggered,
        busy,
        reason,
    }
}

fn accepted(matched: usize, triggered: usize, busy: u32) -> String {
    let left = matched.saturating_sub(triggered);
    match (left, busy as usize) {
        (0, _) => format!("{} triggered", processes(triggered)),
        (_, 0) => {
            format!("{triggered} of {matched} matched processes triggered: raise --process-limit for the other {left}")
        }
        (_, busy) if busy >= left => {
            format!("{triggered} of {matched} matched processes triggered: the other {left} have a request pending")
        }
        (_, busy) => format!(
            "{triggered} of {matched} matched processes triggered: {busy} have a request pending, --process-limit leaves out {}",
            left - busy
        ),
    }
}

fn processes(count: usize) -> String {
    format!("{count} process{}", if count == 1 { "" } else { "es" })
}
