//! From one call to its verdict: facts/dynolog.md section 2, "How to classify". A whole reply decides, whatever the exit code says;
//! without one, dyno's error text does.

use dynolog::{Answer, Call, Verdict, without_processes};

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
        Some(json) => dynolog::judge(&repair(json)),
        None => of_silence(call, trouble::own_words(&repair(&call.stderr))),
    }
}

fn of_silence(call: &Call, words: Option<String>) -> Answer {
    if call.timed_out {
        return without_processes(
            Verdict::Unreachable,
            "dyno did not come back: the daemon accepts, but does not answer",
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

#[cfg(test)]
mod tests;
