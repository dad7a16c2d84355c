//! Ranks and roles from the naming schemes of known producers. The schemes are data: `schemes.txt` beside the sources, and more of
//! them in the setting `schemes`. Coordinates, local ranks and process ids are told for what they are; coordinates become a rank only
//! where the settings `sizes` and `order` say how. A name proves nothing, so no claim is certain.

mod field;
mod label;
mod pattern;
mod sizes;
mod table;
#[cfg(test)]
mod tests;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Claim, Guest, Kind, Label, Trace};
use sizes::Sizes;
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::{Description, Setting};

struct Producers;

impl Guest for Producers {
    fn describe() -> Description {
        let setting = |name: &str, help: &str| Setting {
            name: name.into(),
            help: help.into(),
            default: None,
        };
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks, coordinates and roles from the naming schemes of known producers".into(),
            settings: vec![
                setting(
                    "sizes",
                    "How many ranks lie along each axis of parallelism: `tp=8,dp=2,pp=1`.",
                ),
                setting(
                    "order",
                    "The axes that make up the global rank, slowest first: `pp,dp,tp`.",
                ),
                setting(
                    "gpus-per-node",
                    "Ranks of each node, for schemes that tell the node and the local rank.",
                ),
                setting(
                    "schemes",
                    "More schemes, in the form of schemes.txt, asked before the built-in ones.",
                ),
            ],
        }
    }

    fn label_all(traces: Vec<Trace>, settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        let setting = |name: &str| {
            let set = settings.iter().find(|(set, _)| set == name);
            set.map_or("", |(_, value)| value.as_str())
        };
        let sizes = Sizes::read(setting("sizes"), setting("order"), setting("gpus-per-node"))?;
        let mut schemes = table::read(setting("schemes")).map_err(|reason| format!("setting schemes: {reason}"))?;
        schemes.extend(table::read(table::BUILT_IN)?);

        let paths: Vec<(&str, bool)> = traces
            .iter()
            .map(|trace| (trace.path.as_str(), trace.gpu_events == Some(true)))
            .collect();
        let labels = label::all(&schemes, &sizes, &paths);
        Ok(traces
            .iter()
            .zip(labels)
            .map(|(trace, label)| given(trace, label))
            .collect())
    }
}

fn given(trace: &Trace, label: label::Label) -> Label {
    match label {
        _ if matches!(trace.kind, Kind::ExecutionTrace) => Label::Role("execution-trace".into()),
        label::Label::Role(role) => Label::Role(role),
        label::Label::Unknown(reason) => Label::Unknown(reason),
        label::Label::Rank {
            rank,
            world_size,
            group,
            node,
            evidence,
        } => Label::Rank(Claim {
            rank,
            world_size,
            group,
            node,
            certain: false,
            evidence,
        }),
    }
}

export!(Producers);
