//! Ranks from inside the trace: PyTorch writes a top-level `distributedInfo` member, near the head (torch.profiler) or behind the
//! events (Kineto on demand). The host finds it by parsing; this policy reads what it says. Where it says no rank, the arguments of
//! collectives of the default process group prove one.

mod comms;
mod group;
mod info;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "trace-naming" });

use comms::Proof;
use exports::tracemend::plugin::naming::{Claim, Guest, Kind, Label, Trace};
use info::Verdict;
use tracemend::plugin::contents;
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

/// How many events of a trace are looked at before it counts as one that holds work. A launcher's trace holds a few dozen.
const LAUNCHER_EVENTS: u32 = 256;

/// How many places of an event's key are looked at: as many as one search gives.
const COLLECTIVES: u32 = 1000;
/// How many are enough to find a size that all events of one group share.
const SIZES: u32 = 64;

struct KinetoContent;

impl Guest for KinetoContent {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks from what PyTorch writes into a trace: distributedInfo, collectives of the default group"
                .into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        Ok((0..).zip(&traces).map(|(index, trace)| label(index, trace)).collect())
    }
}

fn label(index: u32, trace: &Trace) -> Label {
    match trace.kind {
        Kind::Kineto => {}
        Kind::ExecutionTrace => return Label::Role("execution-trace".into()),
        Kind::Rocprof | Kind::Pftrace | Kind::Other => return Label::Unknown("not a Kineto trace".into()),
    }
    match info::read(&contents::members(index, "distributedInfo")) {
        Verdict::Rank { rank, world_size } => {
            let evidence = info::evidence("distributedInfo", rank, world_size);
            claim(index, rank, world_size, true, evidence)
        }
        Verdict::Unreadable(reason) => Label::Unknown(reason),
        Verdict::Absent(_) if is_launcher(index, trace) => Label::Role("launcher".into()),
        Verdict::Absent(reason) => by_collectives(index, reason),
    }
}

/// The rank that collectives of the default group prove.
fn by_collectives(index: u32, no_info: String) -> Label {
    let hits = contents::find(index, comms::RANK, COLLECTIVES);
    match comms::read(hits.iter().map(|hit| hit.around.as_str())) {
        Proof::Absent => Label::Unknown(no_info),
        Proof::Contradiction(reason) => Label::Unknown(format!("{no_info}; {reason}")),
        Proof::Rank { rank, world_size } => {
            let world_size = world_size.or_else(|| {
                let hits = contents::find(index, comms::SIZE, SIZES);
                comms::group_size(hits.iter().map(|hit| hit.around.as_str())).filter(|size| rank < *size)
            });
            // Further collectives might be of other ranks, in a trace merged of several.
            let are_all_seen = hits.len() < COLLECTIVES as usize;
            let evidence = info::evidence("record_param_comms of default_pg", rank, world_size);
            claim(index, rank, world_size, are_all_seen, evidence)
        }
    }
}

fn claim(index: u32, rank: u32, world_size: Option<u32>, certain: bool, evidence: String) -> Label {
    Label::Rank(Claim {
        rank,
        world_size,
        group: None,
        node: info::host_name(&contents::members(index, "host_name")),
        certain,
        evidence,
    })
}

/// torchrun's launcher imports torch, so dynolog traces it like a rank; it does no work, and its trace holds metadata only
/// (facts/dynolog.md section 5).
fn is_launcher(index: u32, trace: &Trace) -> bool {
    trace.gpu_events == Some(false) && {
        let hits = contents::find(index, "\"ph\"", LAUNCHER_EVENTS);
        info::only_metadata(hits.iter().map(|hit| hit.around.as_str()), LAUNCHER_EVENTS as usize)
    }
}

export!(KinetoContent);
