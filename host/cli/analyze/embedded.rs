//! What the embedded reporter found, in a few lines.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table};

use crate::cli::text::{count, printable};
use crate::reports::builtin::{RunReport, Timeline};

/// Kernels shown of the whole run.
const TOP_KERNELS: usize = 8;
/// Ranks shown. Of more than these, the least busy ones.
const RANKS: usize = 16;

/// Kernels of the whole run, the GPU time of each rank, which rank is slow, and what was skipped.
pub(super) fn embedded(out: &mut dyn Write, report: &RunReport) -> io::Result<()> {
    if !report.kernels.is_empty() {
        kernels(out, report)?;
    }
    let labels = report.labels();
    let rows = report.ranks.iter().zip(&labels);
    let mut ranks: Vec<(&str, &Timeline)> = rows
        .filter_map(|(rank, label)| Some((label.as_str(), rank.timeline.as_ref()?)))
        .collect();
    if !ranks.is_empty() {
        let all = ranks.len();
        let mut title = "GPU time of each trace".to_owned();
        if all > RANKS {
            ranks.sort_by(|a, b| a.1.share(a.1.busy_ns).total_cmp(&b.1.share(b.1.busy_ns)));
            ranks.truncate(RANKS);
            title = format!("GPU time of the {RANKS} least busy traces of {all}; ranks.csv has all");
        }
        writeln!(out, "\n{title}")?;
        times(out, &ranks)?;
    }
    for slowest in &report.slowest {
        writeln!(out, "{}", printable(&report.sentence(slowest, &labels)))?;
    }
    for rank in report.ranks.iter().filter(|rank| rank.skipped_events.count() > 0) {
        writeln!(
            out,
            "warning: {} of {} in no figure: {}",
            count(rank.skipped_events.count() as usize, "GPU event"),
            printable(&rank.source.trace),
            rank.skipped_events.reasons()
        )?;
    }
    writeln!(out)
}

fn kernels(out: &mut dyn Write, report: &RunReport) -> io::Result<()> {
    writeln!(out, "\nKernels of the whole run")?;
    let mut table = bare_table();
    table.set_header(["share", "total ms", "count", "mean us", "kernel"]);
    for kernel in report.kernels.iter().take(TOP_KERNELS) {
        let name: String = kernel.name.chars().take(70).collect();
        table.add_row([
            format!("{:.1} %", kernel.share * 100.0),
            milliseconds(kernel.runs.total_ns),
            kernel.runs.count.to_string(),
            format!("{:.1}", kernel.runs.mean_ns() / 1e3),
            printable(&name),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    match report.kernels.len().saturating_sub(TOP_KERNELS) {
        0 => Ok(()),
        more => writeln!(out, "and {more} more"),
    }
}

fn times(out: &mut dyn Write, ranks: &[(&str, &Timeline)]) -> io::Result<()> {
    let mut table = bare_table();
    table.set_header([
        "",
        "busy",
        "computation",
        "communication",
        "not overlapped",
        "copies",
        "idle",
        "of ms",
    ]);
    for (label, timeline) in ranks {
        let percent = |nanoseconds| format!("{:.1} %", timeline.share(nanoseconds) * 100.0);
        table.add_row([
            printable(label),
            percent(timeline.busy_ns),
            percent(timeline.computation_ns),
            percent(timeline.communication_ns),
            percent(timeline.exposed_communication_ns),
            percent(timeline.memcpy_ns),
            percent(timeline.idle_ns()),
            milliseconds(timeline.total_ns),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())
}

fn bare_table() -> Table {
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.3}", nanoseconds as f64 / 1e6)
}
