//! The summary of a run, on disk at every moment.
//!
//! The CSV gets each row as its job ends; the JSON is written anew then, but no more often than costs a twentieth of the time, so
//! ten thousand quick jobs do not write it ten thousand times. At the end both are written once more, rows in plan order.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::scratch::Scratch;

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The trace, relative to the run, or a label.
    pub trace_file: String,
    /// `pytorch`, `rocprof_json`, `pftrace`, `unsupported`.
    pub kind: &'static str,
    /// The program, empty where none ran.
    pub tracelens_tool: &'static str,
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
    pub mode: &'static str,
    /// `tracelens` or `builtin`.
    pub reporter: &'static str,
    /// The interpreter, if TraceLens makes the reports.
    pub python: Option<String>,
    /// The TraceLens that makes them.
    pub tracelens: Option<super::TraceLens>,
    /// The CSV.
    pub summary_csv: String,
    /// Traces by kind.
    pub discovered: BTreeMap<&'static str, usize>,
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

/// The rows of a run, kept on disk as they come.
pub struct Summary {
    header: Header,
    rows: Vec<(usize, Row)>,
    csv: csv::Writer<fs::File>,
    csv_path: PathBuf,
    json_path: PathBuf,
    next_json: Instant,
}

impl Summary {
    /// Begins the CSV and the JSON at `json`.
    ///
    /// # Errors
    /// When either cannot be written.
    pub fn begin(header: Header, output: &Path, json: Option<&Path>) -> io::Result<Self> {
        let csv_path = output.join("tracelens_summary.csv");
        let json_path = json.map_or_else(|| output.join("tracelens_summary.json"), Path::to_owned);
        if let Some(parent) = json_path.parent() {
            fs::create_dir_all(parent)?;
        }
        // A file of an earlier run is replaced whole, never written into.
        let (file, scratch) = Scratch::file_beside(&csv_path)?;
        let mut csv = writer(file);
        csv.write_record(COLUMNS)?;
        csv.flush()?;
        scratch.persist(&csv_path)?;
        let mut summary = Summary {
            header,
            rows: Vec::new(),
            csv,
            csv_path,
            json_path,
            next_json: Instant::now(),
        };
        summary.write_json()?;
        Ok(summary)
    }

    /// Where the JSON is.
    pub fn json_path(&self) -> &Path {
        &self.json_path
    }

    /// Adds the row of job `index`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, index: usize, row: Row) -> io::Result<()> {
        write_row(&mut self.csv, &row)?;
        self.csv.flush()?;
        self.rows.push((index, row));
        if Instant::now() >= self.next_json {
            self.write_json()
        } else {
            Ok(())
        }
    }

    /// Writes both files a last time, in plan order.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(mut self) -> io::Result<Vec<Row>> {
        self.rows.sort_by_key(|(index, _)| *index);
        let (file, scratch) = Scratch::file_beside(&self.csv_path)?;
        let mut csv = writer(file);
        csv.write_record(COLUMNS)?;
        for (_, row) in &self.rows {
            write_row(&mut csv, row)?;
        }
        csv.flush()?;
        scratch.persist(&self.csv_path)?;
        self.write_json()?;
        Ok(self.rows.into_iter().map(|(_, row)| row).collect())
    }

    fn write_json(&mut self) -> io::Result<()> {
        let start = Instant::now();
        let count = |status| self.rows.iter().filter(|(_, row)| row.status == status).count();
        let document = Document {
            header: &self.header,
            succeeded: count(Status::Success),
            failed: count(Status::Failure),
            skipped: count(Status::Skipped),
            results: self.rows.iter().map(|(_, row)| row).collect(),
        };
        let (file, scratch) = Scratch::file_beside(&self.json_path)?;
        let mut file = io::BufWriter::new(file);
        serde_json::to_writer_pretty(&mut file, &document)?;
        file.write_all(b"\n")?;
        file.flush()?;
        scratch.persist(&self.json_path)?;
        self.next_json = Instant::now() + (start.elapsed() * 20).max(Duration::from_millis(1));
        Ok(())
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

fn writer(file: fs::File) -> csv::Writer<fs::File> {
    csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(file)
}

fn write_row(csv: &mut csv::Writer<fs::File>, row: &Row) -> io::Result<()> {
    let rank = row.rank.map(|rank| rank.to_string()).unwrap_or_default();
    let seconds = format!("{:.3}", row.seconds);
    let mended = if row.mended { "yes" } else { "no" };
    csv.write_record([
        row.trace_file.as_str(),
        row.kind,
        row.tracelens_tool,
        row.status.as_str(),
        &row.output,
        &row.detail,
        &row.group,
        &rank,
        mended,
        &seconds,
    ])?;
    Ok(())
}
