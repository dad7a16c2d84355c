//! A naming policy built for contract version 0.1.9, which needs what came after 0.1.0.

wit_bindgen::generate!({ path: "../soon/wit", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Guest, Label, Trace};
use tracemend::plugin::contents::count;
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
        assert_eq!(count() as usize, traces.len());
        Ok(traces.iter().map(|_| Label::Unknown("nothing new".into())).collect())
    }
}

export!(Soon);
