//! Whose trace is this? `gpu3.json` is rank 3's.

wit_bindgen::generate!({ path: "wit", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Claim, Guest, Label, Trace};
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::{Description, Setting};

struct Plugin;

impl Guest for Plugin {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks from gpu<rank>.json".into(),
            settings: vec![Setting {
                name: "prefix".into(),
                help: "What stands before the rank in a trace's name.".into(),
                default: Some("gpu".into()),
            }],
        }
    }

    fn label_all(traces: Vec<Trace>, settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        // Without this a panic is a bare trap.
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        let prefix = settings.iter().find(|(name, _)| name == "prefix");
        let prefix = prefix.map_or("gpu", |(_, value)| value);
        Ok(traces.iter().map(|trace| label(&trace.path, prefix)).collect())
    }
}

fn label(path: &str, prefix: &str) -> Label {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split('.').next().unwrap_or(file);
    let digits = stem.strip_prefix(prefix).unwrap_or("");
    let all_digits = digits.chars().all(|c| c.is_ascii_digit());
    match digits.parse() {
        Ok(rank) if all_digits => Label::Rank(Claim {
            rank,
            world_size: None,
            group: None,
            node: None,
            // A name proves nothing: what a trace says of itself overrules it.
            certain: false,
            evidence: format!("name: {prefix}{rank}"),
        }),
        _ => Label::Unknown(format!("not called {prefix}<rank>.json")),
    }
}

export!(Plugin);
