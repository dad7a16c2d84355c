//! Ranks by elimination: where the names of a folder's files differ in one number only, and that number runs from 0 to the last file,
//! it is taken for the rank. The policy needs the whole list, and it guesses: steps, pids or shards may run from 0 too. So no claim is
//! certain, and tracemend asks it only where the user says so (facts/traces.md section B, rule 2).

mod elimination;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "trace-naming" });

use elimination::Verdict;
use exports::tracemend::plugin::naming::{Claim, Guest, Kind, Label, Trace};
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

struct ByElimination;

impl Guest for ByElimination {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks from the only number that differs over the files of a folder: a guess".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        let paths: Vec<&str> = traces.iter().map(|trace| trace.path.as_str()).collect();
        let verdicts = elimination::all(&paths);
        Ok(traces
            .iter()
            .zip(verdicts)
            .map(|(trace, verdict)| label(trace, verdict))
            .collect())
    }
}

fn label(trace: &Trace, verdict: Verdict) -> Label {
    match (trace.kind, verdict) {
        (Kind::ExecutionTrace | Kind::Other, _) => Label::Unknown("not a profiler's trace".into()),
        (_, Verdict::Unknown(reason)) => Label::Unknown(reason),
        (_, Verdict::Rank { rank, world_size }) => Label::Rank(Claim {
            rank,
            world_size: Some(world_size),
            group: None,
            node: None,
            certain: false,
            evidence: format!("the only number that differs over {world_size} files"),
        }),
    }
}

export!(ByElimination);
