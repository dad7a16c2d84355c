//! A naming policy whose name would clear the screen, if anyone printed it.

wit_bindgen::generate!({ path: "../../../wit/0.1.0", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Guest, Label, Trace};
use tracemend::plugin::types::Description;

struct Imposter;

impl Guest for Imposter {
    fn describe() -> Description {
        Description {
            name: "\u{1b}[2Jkineto-content".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "is not what it says".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(_traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        Ok(Vec::new())
    }
}

export!(Imposter);
