//! The reports as CSV files. Each is written whole or not at all.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

use super::collectives::CollectiveKey;
use super::ranks::{RunReport, Spread};
use super::timeline::Timeline;
use super::trace::{MemoryCopies, Runs, TraceReport};
use crate::scratch::Scratch;

/// A text that a spreadsheet takes as text: one that begins as a formula would gets an apostrophe in front (OWASP, "CSV Injection").
pub fn cell(text: &str) -> Cow<'_, str> {
    match text.as_bytes().first() {
        Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r') => format!("'{text}").into(),
        _ => text.into(),
    }
}

impl TraceReport {
    /// Writes the tables that hold rows into `folder`: `STEM_kernels.csv` always, `STEM_gpu_timeline.csv`,
    /// `STEM_memory_copies.csv` and `STEM_collectives.csv`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path, stem: &str) -> Result<()> {
        let path = |table: &str| folder.join(format!("{stem}_{table}.csv"));
        let kernels = self.kernels.iter().map(|kernel| {
            let mut row = vec![cell(&kernel.name).into_owned()];
            row.extend(runs(&kernel.runs));
            row.push(format!("{:.6}", kernel.share));
            row
        });
        write(&path("kernels"), &[&["name"][..], &RUNS, &["share"]].concat(), kernels)?;
        if let Some(timeline) = &self.timeline {
            write(
                &path("gpu_timeline"),
                &["type", "time_ms", "percent"],
                timeline_rows(timeline),
            )?;
        }
        write_rows(
            &path("memory_copies"),
            &copy_columns(),
            self.memory_copies.iter().map(copies),
        )?;
        let collectives = self.collectives.iter().map(|collective| {
            let mut row = key(&collective.key).to_vec();
            row.extend(runs(&collective.runs));
            row
        });
        write_rows(&path("collectives"), &[&KEY[..], &RUNS].concat(), collectives)
    }
}

impl RunReport {
    /// Writes the tables that hold rows into `folder`: `kernels.csv`, `ranks.csv`, `memory_copies.csv` and `collectives.csv`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let labels = self.labels();
        let label = |position: usize| cell(&labels[position]).into_owned();
        let spread = |spread: &Spread| {
            [
                spread.traces.to_string(),
                microseconds(spread.least_ns),
                label(spread.least),
                microseconds(spread.greatest_ns),
                label(spread.greatest),
            ]
        };
        let kernels = self.kernels.iter().map(|kernel| {
            let mut row = vec![cell(&kernel.name).into_owned()];
            row.extend(runs(&kernel.runs));
            row.push(format!("{:.6}", kernel.share));
            row.extend(spread(&kernel.spread));
            row
        });
        write_rows(
            &folder.join("kernels.csv"),
            &[&["name"][..], &RUNS, &["share"], &SPREAD].concat(),
            kernels,
        )?;

        let times_ms = Timeline::default().rows().map(|(name, _)| format!("{name}_ms"));
        let ranks = self.ranks.iter().map(|rank| {
            let mut row = vec![
                cell(&rank.source.group).into_owned(),
                rank.source.rank.map(|rank| rank.to_string()).unwrap_or_default(),
                cell(&rank.source.trace).into_owned(),
                rank.kernels.to_string(),
            ];
            let times = rank.timeline.map(|timeline| timeline.rows());
            row.extend(
                (0..times_ms.len()).map(|index| times.map(|rows| milliseconds(rows[index].1)).unwrap_or_default()),
            );
            for what in [
                |of: &Timeline| of.busy_ns,
                |of: &Timeline| of.communication_ns,
                Timeline::idle_ns,
            ] {
                let percent = |timeline: &Timeline| percent(timeline, what(timeline));
                row.push(rank.timeline.as_ref().map(percent).unwrap_or_default());
            }
            row.extend([
                milliseconds(rank.synchronizing_ns),
                rank.skipped_events.count().to_string(),
            ]);
            row
        });
        let mut columns = vec!["group", "rank", "trace", "kernels"];
        columns.extend(times_ms.iter().map(String::as_str));
        columns.extend([
            "busy_percent",
            "comm_percent",
            "idle_percent",
            "synchronizing_ms",
            "skipped_events",
        ]);
        write_rows(&folder.join("ranks.csv"), &columns, ranks)?;

        write_rows(
            &folder.join("memory_copies.csv"),
            &copy_columns(),
            self.memory_copies.iter().map(copies),
        )?;

        let collectives = self.collectives.iter().map(|collective| {
            let mut row = vec![cell(&collective.group).into_owned()];
            row.extend(key(&collective.key));
            row.extend(runs(&collective.runs));
            row.extend(spread(&collective.spread));
            row.push(collective.slowest.map(label).unwrap_or_default());
            row
        });
        let columns = [&["group"][..], &KEY, &RUNS, &SPREAD, &["slowest"]].concat();
        write_rows(&folder.join("collectives.csv"), &columns, collectives)
    }
}

const RUNS: [&str; 5] = ["count", "total_us", "mean_us", "min_us", "max_us"];
const SPREAD: [&str; 5] = ["traces", "least_total_us", "least", "greatest_total_us", "greatest"];
const KEY: [&str; 6] = [
    "kind",
    "dtype",
    "in_elements",
    "out_elements",
    "message_bytes",
    "group_size",
];
fn runs(runs: &Runs) -> [String; 5] {
    [
        runs.count.to_string(),
        microseconds(runs.total_ns),
        format!("{:.3}", runs.mean_ns() / 1000.0),
        microseconds(runs.min_ns),
        microseconds(runs.max_ns),
    ]
}

fn key(key: &CollectiveKey) -> [String; 6] {
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    [
        cell(&key.kind).into_owned(),
        cell(key.dtype.as_deref().unwrap_or_default()).into_owned(),
        number(key.in_elements),
        number(key.out_elements),
        number(key.message_bytes()),
        number(key.group_size),
    ]
}

fn copy_columns() -> Vec<&'static str> {
    [
        &["direction"][..],
        &RUNS,
        &["bytes", "sized_count", "gigabytes_per_second"],
    ]
    .concat()
}

fn copies(copies: &MemoryCopies) -> Vec<String> {
    let mut row = vec![copies.direction.as_str().to_owned()];
    row.extend(runs(&copies.runs));
    row.extend([
        copies.bytes.to_string(),
        copies.sized_count.to_string(),
        copies
            .gigabytes_per_second()
            .map(|speed| format!("{speed:.3}"))
            .unwrap_or_default(),
    ]);
    row
}

fn timeline_rows(timeline: &Timeline) -> impl Iterator<Item = Vec<String>> {
    timeline
        .rows()
        .into_iter()
        .map(|(name, time)| vec![name.to_owned(), milliseconds(time), percent(timeline, time)])
}

fn percent(timeline: &Timeline, nanoseconds: u64) -> String {
    format!("{:.4}", timeline.share(nanoseconds) * 100.0)
}

/// Exact, whatever the size.
fn microseconds(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

fn milliseconds(nanoseconds: u64) -> String {
    format!("{}.{:06}", nanoseconds / 1_000_000, nanoseconds % 1_000_000)
}

/// Writes a table if it has rows; one of an earlier run goes.
fn write_rows(
    path: &Path,
    columns: &[&str],
    rows: impl Iterator<Item = impl IntoIterator<Item = String>>,
) -> Result<()> {
    let mut rows = rows.peekable();
    if rows.peek().is_some() {
        return write(path, columns, rows);
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, columns: &[&str], rows: impl Iterator<Item = impl IntoIterator<Item = String>>) -> Result<()> {
    let write = || -> io::Result<()> {
        let (file, scratch) = Scratch::file_beside(path)?;
        let mut csv = csv::Writer::from_writer(file);
        csv.write_record(columns)?;
        for row in rows {
            csv.write_record(row)?;
        }
        csv.flush()?;
        drop(csv);
        scratch.persist(path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (text, guarded) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM", "'@SUM"),
            ("\tx", "'\tx"),
            ("\rx", "'\rx"),
            ("gemm<a=b>", "gemm<a=b>"),
            ("", ""),
        ] {
            assert_eq!(cell(text), guarded);
        }
    }

    #[test]
    fn figures_are_exact() {
        assert_eq!(microseconds(u64::MAX), "18446744073709551.615");
        assert_eq!(milliseconds(1_000_001), "1.000001");
    }
}
