//! From one call to its verdict: facts/dynolog.md section 2, "How to classify". A whole reply decides, whatever the exit code says;
//! without one, dyno's error text does.

use crate::exports::tracemend::plugin::interpreter::{Answer, Call, Verdict};
use crate::{reply, trouble};

/// What dyno says when no answer came: no connection, or a connection that ended too early. Its panics also name a place in the
/// source, which changes from version to version; these words do not.
const NO_ANSWER: [&str; 5] = [
    "Couldn't connect to the server",
    "failed to fill whole buffer",
    "Connection reset",
    "Error sending message to service",
    "Broken pipe",
];

/// The verdict on `call`. `repair` turns any bytes into text: the host's `bytes.repair`.
pub fn of(call: &Call, repair: impl Fn(&[u8]) -> String) -> Answer {
    match reply::find(&call.stdout) {
        Some(json) => of_reply(&repair(json)),
        None => of_silence(call, trouble::own_words(&repair(&call.stderr))),
    }
}

fn of_reply(json: &str) -> Answer {
    let reply::Counts {
        matched,
        triggered,
        busy,
    } = match reply::read(json) {
        Ok(counts) => counts,
        Err(reason) => return without_processes(Verdict::Rejected, trouble::one_line(&reason)),
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

fn of_silence(call: &Call, words: Option<String>) -> Answer {
    if call.timed_out {
        return without_processes(
            Verdict::Unreachable,
            "dyno did not come back: the daemon accepts, but does not answer".into(),
        );
    }
    if let Some(signal) = call.signal {
        return without_processes(
            Verdict::Unreachable,
            format!("dyno was ended by signal {signal} before an answer came"),
        );
    }
    let (verdict, reason) = match (call.exit_code, words) {
        (Some(2), Some(words)) if words.contains("'--fail-on-no-process'") => {
            let mend = "this dyno is older than that flag (0.5.0 or before): leave --fail-on-no-process out";
            (Verdict::Rejected, format!("{words}: {mend}"))
        }
        (Some(101), Some(words)) if NO_ANSWER.iter().any(|known| words.contains(known)) => {
            (Verdict::Unreachable, words)
        }
        (_, Some(words)) => (Verdict::Rejected, words),
        (Some(code), None) => (
            Verdict::Rejected,
            format!("dyno ended with exit code {code} and printed no reply"),
        ),
        (None, None) => (
            Verdict::Unreachable,
            "dyno ended without an exit code and printed no reply".into(),
        ),
    };
    without_processes(verdict, reason)
}

fn without_processes(verdict: Verdict, reason: String) -> Answer {
    Answer {
        verdict,
        matched: Vec::new(),
        triggered: Vec::new(),
        busy: 0,
        reason,
    }
}

#[cfg(test)]
mod tests;
