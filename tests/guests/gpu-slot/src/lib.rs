//! The naming policy of a made-up cluster: `gpu2@n03.json` is slot 2 of node n03, and ranks count slots through the nodes.

wit_bindgen::generate!({ path: "../../../wit/0.1.0", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Claim, Guest, Label, Trace};
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::{Description, Setting};

const GPUS_PER_NODE: &str = "gpus-per-node";
const DEFAULT_GPUS: &str = "4";

struct GpuSlot;

impl Guest for GpuSlot {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks from gpu<slot>@<node>.json".into(),
            settings: vec![Setting {
                name: GPUS_PER_NODE.into(),
                help: "How many GPUs a node has.".into(),
                default: Some(DEFAULT_GPUS.into()),
            }],
        }
    }

    fn label_all(traces: Vec<Trace>, settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        let set = settings.iter().find(|(name, _)| name == GPUS_PER_NODE);
        let gpus = set.map_or(DEFAULT_GPUS, |(_, value)| value);
        let gpus = gpus.parse().ok().filter(|gpus| *gpus > 0);
        let gpus = gpus.ok_or_else(|| format!("{GPUS_PER_NODE} must be a whole number from 1"))?;
        Ok(traces.iter().map(|trace| label(&trace.path, gpus)).collect())
    }
}

fn label(path: &str, gpus: u32) -> Label {
    let file = path.rsplit('/').next().unwrap_or(path);
    let Some((slot, node)) = slot_and_node(file) else {
        return Label::Unknown("not named gpu<slot>@<node>.json".into());
    };
    if slot >= gpus {
        return Label::Unknown(format!("slot {slot} on a node of {gpus} GPUs: set {GPUS_PER_NODE}"));
    }
    let digits = node.trim_start_matches(|c: char| !c.is_ascii_digit());
    let Some(rank) = digits
        .parse()
        .ok()
        .and_then(|node: u32| node.checked_mul(gpus)?.checked_add(slot))
    else {
        return Label::Unknown(format!("{node} has no node number"));
    };
    Label::Rank(Claim {
        rank,
        world_size: None,
        group: None,
        node: Some(node.into()),
        certain: true,
        evidence: format!("slot {slot} of {node}"),
    })
}

/// `gpu2@n03.json` and `gpu2@n03.json.gz` are (2, "n03").
fn slot_and_node(file: &str) -> Option<(u32, &str)> {
    let stem = file.strip_suffix(".gz").unwrap_or(file).strip_suffix(".json")?;
    let (slot, node) = stem.strip_prefix("gpu")?.split_once('@')?;
    Some((slot.parse().ok()?, node))
}

export!(GpuSlot);

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(path: &str, gpus: u32) -> Option<u32> {
        match label(path, gpus) {
            Label::Rank(claim) => Some(claim.rank),
            _ => None,
        }
    }

    #[test]
    fn ranks_count_slots_through_the_nodes() {
        assert_eq!(rank("run/gpu2@n03.json", 4), Some(14));
        assert_eq!(rank("gpu0@n00.json.gz", 4), Some(0));
        assert_eq!(rank("gpu7@n01.json", 8), Some(15));
    }

    #[test]
    fn other_names_claim_nothing() {
        for path in [
            "gpu4@n00.json",
            "gpu1@login.json",
            "gpu@n00.json",
            "gpu1@n4294967295.json",
            "rank3.json",
            "",
        ] {
            assert_eq!(rank(path, 4), None, "{path}");
        }
    }
}
