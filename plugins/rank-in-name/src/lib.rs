//! Ranks from names: a rank token in the file name, otherwise in the nearest folder that has one. A guess, so never certain.
//! Which producer writes which name, and which files are no rank's at all, is the policy `producers`'s to know.

mod label;
#[cfg(test)]
mod tests;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Claim, Guest, Kind, Label, Trace};
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

struct RankInName;

impl Guest for RankInName {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks from rank tokens in file and folder names".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        Ok(traces.iter().map(label_one).collect())
    }
}

fn label_one(trace: &Trace) -> Label {
    if matches!(trace.kind, Kind::ExecutionTrace) {
        return Label::Role("execution-trace".into());
    }
    match label::of(&trace.path) {
        label::Label::Unknown(reason) => Label::Unknown(reason),
        label::Label::Rank {
            rank,
            world_size,
            group,
            evidence,
        } => Label::Rank(Claim {
            rank,
            world_size,
            group,
            node: None,
            certain: false,
            evidence,
        }),
    }
}

export!(RankInName);
