//! A naming policy that would talk to the network. No plugin may, so a host must refuse it before it runs.

wit_bindgen::generate!({ path: ["../../../wit/0.1.0", "wit"], world: "tests:wants-http/curious-naming", generate_all });

use exports::tracemend::plugin::naming::{Guest, Label, Trace};
use tracemend::plugin::types::Description;
use wasi::http::types::Fields;

struct WantsHttp;

impl Guest for WantsHttp {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "asks a server".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        let _request = Fields::new();
        Ok(traces.iter().map(|_| Label::Unknown(String::new())).collect())
    }
}

export!(WantsHttp);
