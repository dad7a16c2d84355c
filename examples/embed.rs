//! tracemend as a library: load a plugin, label a list of traces, mend a stream.
//!
//! `cargo run --release --example embed -- PLUGIN.wasm < DAMAGED.json > MENDED.json`

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use tracemend::bytes::{Options, Verdict, mend, scan};
use tracemend::plugins::{Cache, Kind, Label, Limits, NoContents, PluginHost, Trace, World, from_file};

/// What the naming plugin in `plugin` says of traces that have these paths. It sees no file: a host that has the traces at hand implements
/// `Contents` for them and hands that over instead of `NoContents`.
pub fn label(plugin: &Path, paths: &[&str]) -> Result<Vec<Label>> {
    let log = |plugin: &str, _, message: &str| eprintln!("{plugin}: {message:?}");
    let host = PluginHost::new(Cache::of_user(), Limits::default(), Box::new(log))?;
    let plugin = from_file(&host, plugin, Some(World::TraceNaming))?;
    let traces: Vec<Trace> = paths
        .iter()
        .map(|path| Trace {
            path: (*path).to_owned(),
            kind: Kind::Kineto,
            size: 0,
            gpu_events: None,
        })
        .collect();
    // A plugin that traps, loops or eats memory is an error here, never a crash.
    Ok(host.label(&plugin, &traces, &[], Arc::new(NoContents))?)
}

/// Writes what `damaged` holds to `out`, mended, and returns how many places were. It is read twice, the first time to the end, in constant
/// memory, so that nothing is written of what cannot be mended.
pub fn mend_stream(mut damaged: impl Read + Seek + Send, out: impl Write) -> Result<u64> {
    let findings = scan(&mut damaged, &Options::default(), &mut ())?;
    if findings.verdict == Verdict::Refused {
        bail!("it cannot be mended: {}", findings.reason.unwrap_or_default());
    }
    damaged.rewind()?;
    let mended = mend(damaged, &findings, out, &mut |edit| eprintln!("mended: {edit:?}"))?;
    Ok(mended.edits)
}

#[allow(dead_code, reason = "the tests take this file as a module")]
fn main() -> Result<()> {
    if let Some(plugin) = std::env::args_os().nth(1) {
        let paths = ["rank_0/trace.json", "gpu2@n03.json"];
        for (path, label) in paths.iter().zip(label(Path::new(&plugin), &paths)?) {
            eprintln!("{path}: {label:?}");
        }
    }
    // Standard input may be a pipe, which cannot be read twice.
    let mut copy: File = tempfile::tempfile().context("no temporary file")?;
    io::copy(&mut io::stdin().lock(), &mut copy)?;
    copy.rewind()?;
    let edits = mend_stream(copy, io::stdout().lock())?;
    eprintln!("{edits} places mended");
    Ok(())
}
