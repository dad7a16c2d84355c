//! What is said before the reports are made.

use std::io::Write;

use anyhow::Result;

use crate::bytes::Verdict;
use crate::cli::findings::describe as describe_findings;
use crate::cli::gather::{Gathered, found};
use crate::cli::ranks::describe as describe_conflict;
use crate::cli::text::printable;
use crate::reports::{Reporter, folded_ranks};
use crate::traces::only_the_suffix_misleads;

/// Places of damage shown for each trace; `tracemend scan` shows more.
const PLACES: usize = 3;

/// Damage, ranks, and who makes the reports.
pub(super) fn before(out: &mut dyn Write, gathered: &Gathered, reporter: &Reporter) -> Result<()> {
    let run = &gathered.run;
    writeln!(out, "{}", found(run))?;
    for trace in run
        .traces
        .iter()
        .filter(|trace| trace.findings.verdict != Verdict::Clean)
    {
        describe_findings(out, &trace.path, trace.kind, &trace.findings, PLACES)?;
        if trace.findings.verdict == Verdict::Damaged && !only_the_suffix_misleads(&trace.findings) {
            // Words that users of the toolchain before search for.
            writeln!(out, "    analyzing a sanitized copy")?;
        }
    }
    if gathered.assignment.traces.iter().any(|trace| trace.by.is_some()) {
        let cluster = gathered.cluster.as_deref();
        let cluster = cluster
            .map(|name| format!(" by the policies of cluster {name}"))
            .unwrap_or_default();
        writeln!(out, "\nRanks{}", printable(&cluster))?;
    }
    for group in gathered
        .assignment
        .groups
        .iter()
        .filter(|group| !group.ranks.is_empty())
    {
        let mut by: Vec<&str> = group
            .ranks
            .values()
            .flatten()
            .filter_map(|&index| gathered.assignment.traces[index].by.as_deref())
            .collect();
        by.sort_unstable();
        by.dedup();
        let missing = match group.missing.as_slice() {
            [] => String::new(),
            missing => format!("; missing: {}", folded_ranks(missing)),
        };
        let ranks: Vec<u32> = group.ranks.keys().copied().collect();
        writeln!(
            out,
            "  {}: {} by {}{missing}",
            printable(&group.name),
            folded_ranks(&ranks),
            by.join(", ")
        )?;
        for conflict in &group.conflicts {
            writeln!(out, "    conflict: {}", printable(&describe_conflict(run, conflict)))?;
        }
    }
    for (index, assigned) in gathered.assignment.traces.iter().enumerate() {
        if let (Some(role), true) = (&assigned.role, assigned.by.is_some()) {
            writeln!(
                out,
                "  {}: {}, of no rank",
                printable(&run.traces[index].display_path()),
                printable(role)
            )?;
        }
    }
    match reporter {
        Reporter::BuiltIn => writeln!(
            out,
            "\nReports by the embedded reporter (TraceLens: --python VENV/bin/python)"
        )?,
        Reporter::TraceLens(driver) => {
            let interpreter = &driver.interpreter;
            let tracelens = &interpreter.tracelens;
            let version = tracelens.distribution.as_deref().unwrap_or("version unknown");
            let python = printable(&interpreter.python.to_string_lossy());
            let commit = match &tracelens.commit {
                Some(commit) => format!("commit {}, ", printable(commit)),
                None => String::new(),
            };
            writeln!(
                out,
                "\nReports by TraceLens ({}, {commit}{}, Python {} at {python})",
                printable(version),
                printable(&tracelens.path),
                printable(&interpreter.version)
            )?;
        }
    }
    out.flush()?;
    Ok(())
}
