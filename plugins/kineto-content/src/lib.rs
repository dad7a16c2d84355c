//! Ranks from inside the trace: PyTorch writes a top-level `distributedInfo` member, near the head (torch.profiler) or behind the
//! events (Kineto on demand). The host finds it by parsing; this policy reads what it says.

mod info;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Claim, Guest, Kind, Label, Trace};
use info::Verdict;
use tracemend::plugin::contents;
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

/// How many events of a trace are looked at before it counts as one that holds work. A launcher's trace holds a few dozen.
const LAUNCHER_EVENTS: u32 = 256;

struct KinetoContent;

impl Guest for KinetoContent {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks from the distributedInfo that PyTorch writes into a trace".into(),
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
        Verdict::Rank { rank, world_size } => Label::Rank(Claim {
            rank,
            world_size,
            group: None,
            node: info::host_name(&contents::members(index, "host_name")),
            certain: true,
            evidence: info::evidence(rank, world_size),
        }),
        Verdict::Unreadable(reason) => Label::Unknown(reason),
        Verdict::Absent if is_launcher(index, trace) => Label::Role("launcher".into()),
        Verdict::Absent => Label::Unknown("no distributedInfo".into()),
    }
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
