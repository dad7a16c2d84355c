//! A naming policy built for contract version 0.1.9 (wit/ beside it), which uses nothing that 0.1.0 has not.

wit_bindgen::generate!({ path: "wit", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Guest, Label, Trace};
use tracemend::plugin::contents::members;
use tracemend::plugin::types::Description;

struct Soon;

impl Guest for Soon {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "built for contract version 0.1.9".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        if !traces.is_empty() {
            members(0, "distributedInfo");
        }
        Ok(traces.iter().map(|_| Label::Unknown("nothing new".into())).collect())
    }
}

export!(Soon);
