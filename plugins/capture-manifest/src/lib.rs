//! Ranks noted at capture time: the capturing side leaves a manifest beside the traces that says which process was which rank. The
//! strongest evidence there is for traces without a rank inside (facts/traces.md, C10). `README.md` has the format and the rules.

mod folders;
mod manifest;
mod verdict;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Claim, Guest, Kind, Label, Trace};
use folders::{Folders, Owner};
use manifest::Manifest;
use tracemend::plugin::contents;
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;
use verdict::Verdict;

/// A manifest full of nonsense is told in this many lines.
const MAX_WARNINGS: usize = 5;

struct CaptureManifest;

impl Guest for CaptureManifest {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "ranks noted at capture time, from the manifest beside the traces".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        let mut manifests: Vec<(&str, Manifest)> = Vec::new();
        let mut is_manifest = vec![false; traces.len()];
        for (index, trace) in (0..).zip(&traces) {
            // Of no other kind: a manifest is an object without events.
            if !matches!(trace.kind, Kind::Other) {
                continue;
            }
            if let Some(version) = contents::members(index, "tracemend_manifest").pop() {
                is_manifest[index as usize] = true;
                manifests.extend(read(index, &trace.path, &version).map(|manifest| (trace.path.as_str(), manifest)));
            }
        }
        let folders = Folders::new(manifests);
        let labels = traces
            .iter()
            .zip(is_manifest)
            .map(|(trace, is_manifest)| match is_manifest {
                true => Label::Role("manifest".into()),
                false => label(&folders, trace),
            });
        Ok(labels.collect())
    }
}

/// The manifest at `index`. What is wrong with it is shown.
fn read(index: u32, path: &str, version: &str) -> Option<Manifest> {
    let (host, processes) = (
        contents::members(index, "host").pop(),
        contents::members(index, "processes").pop(),
    );
    let mut warnings = Vec::new();
    let manifest = manifest::read(version, host.as_deref(), processes.as_deref(), &mut warnings);
    for warning in warnings.iter().take(MAX_WARNINGS) {
        log(Level::Warn, &format!("{path}: {warning}"));
    }
    if let Some(more) = warnings.len().checked_sub(MAX_WARNINGS).filter(|more| *more > 0) {
        log(Level::Warn, &format!("{path}: and {more} more"));
    }
    manifest
        .inspect_err(|reason| log(Level::Warn, &format!("{path}: not used: {reason}")))
        .ok()
}

fn label(folders: &Folders, trace: &Trace) -> Label {
    match folders.owner(&trace.path) {
        Owner::Nobody if folders.is_empty() => Label::Unknown(String::new()),
        Owner::Nobody => Label::Unknown("no manifest knows it".into()),
        Owner::Several(reason) => Label::Unknown(reason),
        Owner::Process(Verdict::Unknown(reason), _) => Label::Unknown(reason.clone()),
        Owner::Process(Verdict::Launcher(reason), _) => match trace.gpu_events {
            Some(true) => Label::Unknown(format!("{reason}, but its trace holds GPU events")),
            _ => Label::Role("launcher".into()),
        },
        Owner::Process(
            Verdict::Rank {
                rank,
                world_size,
                certain,
                evidence,
            },
            host,
        ) => Label::Rank(Claim {
            rank: *rank,
            world_size: *world_size,
            group: None,
            node: host.map(str::to_owned),
            certain: *certain,
            evidence: evidence.clone(),
        }),
    }
}

export!(CaptureManifest);
