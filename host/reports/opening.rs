//! What the record of a run says before its first job.

use super::record::{
    Identity, LimitsUse, RECORD_VERSION, Record, ReporterUse, TraceRecord, now, sha256, traces_sha256,
};
use super::run::{Reporter, Request};
use crate::traces::Run;

/// The record of `request`, as yet without jobs. `is_mended` says of each trace whether it is read through a mended copy.
pub fn opening(request: &Request, limits: &LimitsUse, is_mended: impl Fn(usize) -> bool) -> Record {
    let run = request.run;
    let traces: Vec<TraceRecord> = (0..run.traces.len())
        .map(|index| trace(run, request, index, is_mended(index)))
        .collect();
    Record {
        tracemend_record: RECORD_VERSION,
        tracemend: env!("CARGO_PKG_VERSION").to_owned(),
        finished: false,
        started: now(),
        ended: None,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        command_line: request.provenance.command_line.clone(),
        root: run.root.to_string_lossy().into_owned(),
        output_dir: request.output.to_string_lossy().into_owned(),
        mode: request.mode.to_owned(),
        reporter: reporter(request.reporter),
        cluster: request.provenance.cluster.clone(),
        plugins: request.provenance.plugins.clone(),
        limits: limits.clone(),
        peak_scratch_bytes: 0,
        traces_sha256: traces_sha256(traces.iter().map(|trace| &trace.identity)),
        shard: request.shard,
        missing_shards: Vec::new(),
        discovered: request
            .plan
            .discovered
            .counts
            .iter()
            .map(|(kind, &number)| ((*kind).to_owned(), number))
            .collect(),
        traces,
        jobs: Vec::new(),
    }
}

fn trace(run: &Run, request: &Request, index: usize, mended: bool) -> TraceRecord {
    let (trace, assigned) = (&run.traces[index], &request.assignment.traces[index]);
    let flaws = &trace.findings.flaws.by_kind;
    TraceRecord {
        identity: Identity::of(run, trace),
        kind: trace.kind.to_string(),
        container: trace.findings.container.as_str().to_owned(),
        verdict: trace.findings.verdict.name().to_owned(),
        reason: trace.findings.reason.clone(),
        flaws: flaws
            .iter()
            .map(|(kind, &count)| (kind.name().to_owned(), count))
            .collect(),
        group: assigned.group.clone(),
        rank: assigned.rank,
        by: assigned.by.clone(),
        mended,
        edits: None,
    }
}

fn reporter(reporter: &Reporter) -> ReporterUse {
    let version = env!("CARGO_PKG_VERSION");
    match reporter {
        Reporter::BuiltIn => ReporterUse {
            name: "builtin".to_owned(),
            python: None,
            python_version: None,
            tracelens: None,
            options_sha256: sha256(format!("builtin {version}").as_bytes()),
        },
        Reporter::TraceLens(driver) => ReporterUse {
            name: "tracelens".to_owned(),
            python: Some(driver.interpreter.python.to_string_lossy().into_owned()),
            python_version: Some(driver.interpreter.version.clone()),
            tracelens: Some(driver.interpreter.tracelens.clone()),
            // All that shapes a report is in these two, and their debug form has all that is in them. The flags that the driver has
            // learned stay out: they follow from the interpreter, and how many are known depends on the cache.
            options_sha256: sha256(format!("{:?} {:?} {version}", driver.interpreter, driver.settings).as_bytes()),
        },
    }
}
