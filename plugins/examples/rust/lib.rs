//! `gpu2@n03.json` is slot 2 of node n03; ranks count slots through the nodes, in the order of the site's list.

wit_bindgen::generate!({ path: "wit", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Claim, Guest, Label, Trace};
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::{Description, Setting};

struct GpuNodes;

impl Guest for GpuNodes {
    fn describe() -> Description {
        let setting = |name: &str, help: &str, default: Option<&str>| Setting {
            name: name.into(),
            help: help.into(),
            default: default.map(Into::into),
        };
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks from gpu<slot>@<node>.json".into(),
            settings: vec![
                setting(
                    "nodes",
                    "The job's nodes in the order of their ranks, with commas between.",
                    None,
                ),
                setting("gpus-per-node", "How many GPUs a node has, 1 to 1024.", Some("4")),
            ],
        }
    }

    fn label_all(traces: Vec<Trace>, settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        let set = |name: &str| {
            settings
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
        };
        let nodes: Vec<&str> = set("nodes").unwrap_or("").split(',').map(str::trim).collect();
        let nodes: Vec<&str> = nodes.into_iter().filter(|node| !node.is_empty()).collect();
        let gpus = number(set("gpus-per-node").unwrap_or("4")).filter(|gpus| (1..=1024).contains(gpus));
        let gpus = gpus.ok_or("gpus-per-node must be 1 to 1024")?;
        Ok(traces.iter().map(|trace| label(&trace.path, &nodes, gpus)).collect())
    }
}

fn label(path: &str, nodes: &[&str], gpus: u32) -> Label {
    let Some((slot, node)) = slot_and_node(path) else {
        return Label::Unknown("not named gpu<slot>@<node>.json".into());
    };
    let Some(index) = nodes.iter().position(|known| *known == node) else {
        return Label::Unknown("its node is not in the setting nodes".into());
    };
    if slot >= gpus {
        return Label::Unknown(format!("slot {slot} on a node of {gpus} GPUs"));
    }
    Label::Rank(Claim {
        rank: index as u32 * gpus + slot,
        world_size: Some(nodes.len() as u32 * gpus),
        group: None,
        node: Some(node.into()),
        certain: true,
        evidence: format!("slot {slot} of {node}"),
    })
}

/// `run/gpu2@n03.json.gz` is (2, "n03").
fn slot_and_node(path: &str) -> Option<(u32, &str)> {
    let file = path.rsplit('/').next()?;
    let stem = file.strip_suffix(".gz").unwrap_or(file).strip_suffix(".json")?;
    let (slot, node) = stem.strip_prefix("gpu")?.split_once('@')?;
    Some((number(slot)?, node))
}

/// Digits alone: `parse` takes a sign, too.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

export!(GpuNodes);
