//! An interpreter that says what the host finds in the output of a call, and what it makes of it.

wit_bindgen::generate!({ path: "../../../wit/0.1.0", world: "dyno-interpreter" });

use exports::tracemend::plugin::interpreter::{Answer, Call, Guest, Verdict};
use tracemend::plugin::bytes;
use tracemend::plugin::types::Description;

struct Mirror;

impl Guest for Mirror {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "shows what the host finds in bytes".into(),
            settings: Vec::new(),
        }
    }

    /// Offset and length of each flaw of the standard output, then the text.
    fn interpret(call: Call, _settings: Vec<(String, String)>) -> Result<Answer, String> {
        let flaws = bytes::scan(&call.stdout);
        let flaws: Vec<String> = flaws
            .iter()
            .map(|flaw| format!("{}+{}", flaw.offset, flaw.length))
            .collect();
        Ok(Answer {
            verdict: Verdict::Rejected,
            matched: Vec::new(),
            triggered: Vec::new(),
            busy: 0,
            reason: format!("{}: {}", flaws.join(" "), bytes::repair(&call.stdout)),
        })
    }
}

export!(Mirror);
