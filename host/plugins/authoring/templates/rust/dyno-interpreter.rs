//! What did the answer to a capture request mean? This site's wrapper around dyno prints `traced PID` for each process.

wit_bindgen::generate!({ path: "wit", world: "dyno-interpreter" });

use exports::tracemend::plugin::interpreter::{Answer, Call, Guest, Verdict};
use tracemend::plugin::bytes;
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

struct Plugin;

impl Guest for Plugin {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "a wrapper that prints `traced PID`".into(),
            settings: Vec::new(),
        }
    }

    fn interpret(call: Call, _settings: Vec<(String, String)>) -> Result<Answer, String> {
        // Without this a panic is a bare trap.
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        // Output may be any bytes; the host makes text of them.
        let (stdout, stderr) = (bytes::repair(&call.stdout), bytes::repair(&call.stderr));
        Ok(match call.exit_code {
            Some(0) => traced(&stdout),
            Some(code) => answer(Verdict::Rejected, Vec::new(), said(&stderr, &format!("exit code {code}"))),
            None => answer(Verdict::Unreachable, Vec::new(), "the wrapper did not come to its end".into()),
        })
    }
}

fn traced(stdout: &str) -> Answer {
    let mut pids = Vec::new();
    for line in stdout.lines() {
        let pid = line.strip_prefix("traced ").and_then(|pid| pid.parse::<i64>().ok());
        if let Some(pid) = pid.filter(|pid| *pid > 0 && !pids.contains(pid)) {
            pids.push(pid);
        }
    }
    match pids.len() {
        0 => answer(Verdict::Waiting, pids, "no process is there yet".into()),
        count => answer(Verdict::Accepted, pids, format!("{count} traced")),
    }
}

fn answer(verdict: Verdict, pids: Vec<i64>, reason: String) -> Answer {
    Answer {
        verdict,
        matched: pids.clone(),
        triggered: pids,
        busy: 0,
        reason,
    }
}

/// The first line that says something, cut to a length for people.
fn said(text: &str, otherwise: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or(otherwise).chars().take(200).collect()
}

export!(Plugin);
