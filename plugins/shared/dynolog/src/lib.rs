//! What the dynolog daemon's reply to a capture request means, for the interpreters that read it out of dyno's text and off the wire.

mod line;
mod reply;

pub use line::one_line;

/// What a whole reply means; the contract's `waiting`, `busy`, `accepted` and `rejected`. Silence is the caller's to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    Waiting,
    Busy,
    Rejected,
}

/// A reply's verdict and what it says of processes.
#[derive(Debug, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    /// Each process id once, in the daemon's order.
    pub matched: Vec<i64>,
    /// Those that will really be traced, each once.
    pub triggered: Vec<i64>,
    /// How many had a request pending.
    pub busy: u32,
    /// One line for people.
    pub reason: String,
}

/// Judges the JSON text of a reply (facts/dynolog.md section 2, "How to classify").
pub fn judge(json: &str) -> Judged {
    let reply::Counts {
        matched,
        triggered,
        busy,
    } = match reply::read(json) {
        Ok(counts) => counts,
        Err(reason) => {
            return Judged {
                verdict: Verdict::Rejected,
                matched: Vec::new(),
                triggered: Vec::new(),
                busy: 0,
                reason: one_line(&reason),
            };
        }
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
    Judged {
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
