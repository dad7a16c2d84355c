//! The summary of a run: a row a job, as CSV and as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::builtin::cell;
use super::record::Record;
use crate::scratch::Scratch;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// All that was promised is there.
    Success,
    /// It was tried, or could not be, and something is wrong.
    Failure,
    /// There is no report to make, and nothing is wrong.
    Skipped,
}

impl Status {
    /// The word in the summary.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "SUCCESS",
            Status::Failure => "FAILURE",
            Status::Skipped => "SKIPPED",
        }
    }
}

/// One row of the summary. The first six columns are those of the toolchain that this replaces (facts/seed.md section 6).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The trace, relative to the run, or a label.
    pub trace_file: String,
    /// `pytorch`, `rocprof_json`, `pftrace`, `unsupported`.
    pub kind: String,
    /// The program, empty where none ran.
    pub tracelens_tool: String,
    /// How it ended.
    pub status: Status,
    /// The output folder, relative to the run if it lies inside; empty where there is no report.
    pub output: String,
    /// Why, where it is not a success.
    pub detail: String,
    /// The group of its ranks.
    pub group: String,
    /// Its rank.
    pub rank: Option<u32>,
    /// Whether a mended copy was read.
    pub mended: bool,
    /// Logs of the edits that mended its traces, relative to the output folder.
    pub edits: Vec<String>,
    /// How long it took.
    pub seconds: f64,
    /// The most bytes of memory that its program had at once; 0 where none ran.
    pub peak_bytes: u64,
    /// The log of what its program said, relative to the output folder.
    pub log: Option<String>,
    /// The last lines of it, where it failed.
    pub last_lines: Vec<String>,
}

/// The name of the CSV summary.
pub const SUMMARY_CSV: &str = "tracelens_summary.csv";
/// The name of the JSON summary.
pub const SUMMARY_JSON: &str = "tracelens_summary.json";

/// What the JSON says before its rows.
#[derive(Debug, Clone, Serialize)]
pub struct Header {
    /// The run's folder.
    pub root: String,
    /// Where reports are.
    pub output_dir: String,
    /// The cluster of the configuration whose policies ranked the traces; none: the built-in order.
    pub cluster: Option<String>,
    /// The mode, as on the command line.
    pub mode: String,
    /// `tracelens` or `builtin`.
    pub reporter: String,
    /// The interpreter, if TraceLens makes the reports.
    pub python: Option<String>,
    /// The TraceLens that makes them.
    pub tracelens: Option<super::TraceLens>,
    /// The CSV.
    pub summary_csv: String,
    /// Traces by kind.
    pub discovered: BTreeMap<String, usize>,
}

impl From<&Record> for Header {
    fn from(record: &Record) -> Self {
        let csv = Path::new(&record.output_dir).join(SUMMARY_CSV);
        Header {
            root: record.root.clone(),
            output_dir: record.output_dir.clone(),
            cluster: record.cluster.as_ref().map(|cluster| cluster.name.clone()),
            mode: record.mode.clone(),
            reporter: record.reporter.name.clone(),
            python: record.reporter.python.clone(),
            tracelens: record.reporter.tracelens.clone(),
            summary_csv: csv.to_string_lossy().into_owned(),
            discovered: record.discovered.clone(),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    header: &'a Header,
    succeeded: usize,
    failed: usize,
    skipped: usize,
    results: Vec<&'a Row>,
}

/// Writes the JSON summary, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_json<'a>(path: &Path, header: &Header, rows: impl Iterator<Item = &'a Row>) -> io::Result<()> {
    let results: Vec<&Row> = rows.collect();
    let count = |status| results.iter().filter(|row| row.status == status).count();
    write_document(
        path,
        &Document {
            header,
            succeeded: count(Status::Success),
            failed: count(Status::Failure),
            skipped: count(Status::Skipped),
            results,
        },
    )
}

/// Writes a JSON document, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_document(path: &Path, document: &impl Serialize) -> io::Result<()> {
    let (file, scratch) = Scratch::file_beside(path)?;
    let mut file = io::BufWriter::new(file);
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.flush()?;
    scratch.persist(path)
}

/// The CSV summary.
pub struct Csv {
    csv: csv::Writer<fs::File>,
}

impl Csv {
    /// Writes `rows` to `path`, whole or not at all; an earlier run's file is replaced, never written into. More may follow.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write<'a>(path: &Path, rows: impl Iterator<Item = &'a Row>) -> io::Result<Self> {
        let (file, scratch) = Scratch::file_beside(path)?;
        let mut csv = csv::WriterBuilder::new()
            .terminator(csv::Terminator::CRLF)
            .from_writer(file);
        csv.write_record(COLUMNS)?;
        for row in rows {
            write_row(&mut csv, row)?;
        }
        csv.flush()?;
        scratch.persist(path)?;
        Ok(Csv { csv })
    }

    /// Adds a row, at once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, row: &Row) -> io::Result<()> {
        write_row(&mut self.csv, row)?;
        self.csv.flush()
    }
}

const COLUMNS: [&str; 10] = [
    "trace_file",
    "kind",
    "tracelens_tool",
    "status",
    "output",
    "detail",
    "group",
    "rank",
    "mended",
    "seconds",
];

fn write_row(csv: &mut csv::Writer<fs::File>, row: &Row) -> io::Result<()> {
    let rank = row.rank.map(|rank| rank.to_string()).unwrap_or_default();
    let seconds = format!("{:.3}", row.seconds);
    let mended = if row.mended { "yes" } else { "no" };
    csv.write_record([
        &*cell(&row.trace_file),
        &row.kind,
        &row.tracelens_tool,
        row.status.as_str(),
        &cell(&row.output),
        &cell(&row.detail),
        &cell(&row.group),
        &rank,
        mended,
        &seconds,
    ])?;
    Ok(())
}
