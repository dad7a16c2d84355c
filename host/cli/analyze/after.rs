//! What is said once the reports are made.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use comfy_table::{ContentArrangement, Table};

use super::embedded::embedded;
use super::glance::Told;
use crate::cli::one_line;
use crate::cli::text::{count, printable};
use crate::reports::{Report, Row, Status};

/// The rows, what the embedded reporter found, and how many reports there are. Without `talk` only the last.
pub(super) fn after(out: &mut dyn Write, report: &Report, told: &Told, output: &Path, talk: bool) -> Result<()> {
    if talk && !report.rows.is_empty() {
        let mut table = Table::new();
        table
            .load_style(comfy_table::presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        for row in &report.rows {
            table.add_row(result(row));
        }
        writeln!(out, "{}", table.trim_fmt())?;
    }
    if talk {
        for row in report.rows.iter().filter(|row| row.last_lines.len() > 1) {
            let log = row.log.as_deref().unwrap_or_default();
            writeln!(
                out,
                "{} ended with (all of it in {}):",
                printable(&row.trace_file),
                printable(log)
            )?;
            for line in &row.last_lines {
                writeln!(out, "    {}", printable(line))?;
            }
        }
    }
    if let Some(found) = report.embedded.as_ref().filter(|_| talk) {
        embedded(out, found)?;
    }
    if talk {
        told.glance(out)?;
    }
    let of = |status| report.rows.iter().filter(|row| row.status == status).count();
    let made = count(of(Status::Success), "report");
    let (failed, skipped) = (of(Status::Failure), of(Status::Skipped));
    let mended = report
        .rows
        .iter()
        .filter(|row| row.mended && row.status == Status::Success)
        .count();
    write!(out, "{made} made")?;
    if mended > 0 {
        write!(out, " ({mended} from mended copies)")?;
    }
    if report.kept > 0 {
        write!(out, ", {} of an earlier run kept", report.kept)?;
    }
    for (number, word) in [(failed, "failed"), (skipped, "skipped")] {
        if number > 0 {
            write!(out, ", {number} {word}")?;
        }
    }
    writeln!(out, "; all in {}", printable(&output.to_string_lossy()))?;
    if talk {
        told.page(out)?;
    }
    Ok(())
}

fn result(row: &Row) -> [String; 3] {
    let what = match row.detail.as_str() {
        "" => format!(
            "{:.1} s{}",
            row.seconds,
            if row.mended { ", from a mended copy" } else { "" }
        ),
        detail => detail.to_owned(),
    };
    // The three reports on one Perfetto trace.
    let which = row
        .tracelens_tool
        .strip_prefix("TraceLens_generate_perf_report_pftrace_");
    // A collective row's label does not say of which group it is.
    let of_group = row.rank.is_none() && row.trace_file.ends_with(" traces");
    let label = match (of_group, which) {
        (true, _) => format!("{} of {}", row.trace_file, row.group),
        (false, Some(which)) => format!("{} ({which})", row.trace_file),
        (false, None) => row.trace_file.clone(),
    };
    [row.status.as_str().to_owned(), printable(&label), one_line(&what)]
}
