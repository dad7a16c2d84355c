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

#[cfg(test)]
mod tests {
    /// The walk-through in the README quotes this crate and the contract as they are.
    #[test]
    fn the_readme_quotes_what_stands_here() {
        let readme = include_str!("../../README.md");
        let (_, walk) = readme.split_once("## A built-in policy, part by part").unwrap();
        let (walk, _) = walk.split_once("\n## ").unwrap();
        let mut quoted = 0;
        for (language, source) in [
            ("```wit\n", include_str!("../../../wit/0.1.0/naming.wit")),
            ("```rust\n", include_str!("lib.rs")),
        ] {
            for block in walk.split(language).skip(1) {
                let (block, _) = block.split_once("```").unwrap();
                assert!(source.contains(block), "{block}");
                quoted += 1;
            }
        }
        assert_eq!(quoted, 8);
    }
}
