//! A naming policy that looks at the environment. No plugin gets one, so a host must refuse it before it runs.

wit_bindgen::generate!({ path: ["../../../wit/0.1.0", "wit"], world: "tests:wants-env/curious-naming", generate_all });

use exports::tracemend::plugin::naming::{Guest, Label, Trace};
use tracemend::plugin::types::Description;
use wasi::cli::environment::get_environment;

struct WantsEnv;

impl Guest for WantsEnv {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "looks at the environment".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        let names: Vec<String> = get_environment().into_iter().map(|(name, _)| name).collect();
        Ok(traces.iter().map(|_| Label::Unknown(names.join(" "))).collect())
    }
}

export!(WantsEnv);
