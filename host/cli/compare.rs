//! `tracemend compare`

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use super::text::printable;
use super::tracelens::TraceLensOptions;
use super::{Global, Outcome};
use crate::reports::{Comparands, Comparison, Driver, Status};
use crate::scratch::Scratch;

/// The workbook, if not said otherwise (facts/seed.md section 1.1).
pub(super) const OUTPUT: &str = "tracelens_comparison.xlsx";

#[derive(Debug, Args)]
pub struct Compare {
    /// TraceLens's reports: workbooks, or folders of CSVs; the first is what the others are compared with
    #[arg(value_name = "REPORT", required = true)]
    reports: Vec<PathBuf>,
    /// The workbook to write
    #[arg(short, long, value_name = "FILE", default_value = OUTPUT)]
    output: PathBuf,
    /// What the reports are called, one name each; else they are named after their files
    #[arg(long, value_name = "TAG", num_args = 1..)]
    names: Vec<String>,
    #[command(flatten)]
    tracelens: TraceLensOptions,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Compare {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let comparands = Comparands::new(&self.reports, &self.names)?;
        let scratch = Scratch::for_this_run()?;
        let driver = self.tracelens.driver(&[], Vec::new(), scratch.path())?;
        let comparison = comparands.compare(&driver, scratch.path(), &self.output)?;
        tell(&comparison, self.json, global)
    }
}

/// Compares reports as the toolchain before did: whatever is wrong with them is a failed comparison.
pub(super) fn compare(
    driver: &Driver,
    scratch: &Path,
    reports: &[PathBuf],
    names: &[String],
    output: &Path,
) -> Result<Comparison> {
    match Comparands::new(reports, names) {
        Ok(comparands) => comparands.compare(driver, scratch, output),
        Err(error) => Ok(Comparison {
            reports: reports.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            output: output.to_string_lossy().into_owned(),
            status: Status::Failure,
            detail: format!("{error:#}"),
            names: names.to_vec(),
        }),
    }
}

/// Says how a comparison ended.
pub(super) fn tell(comparison: &Comparison, json: bool, global: &Global) -> Result<Outcome> {
    let mut out = io::stdout().lock();
    let succeeded = comparison.status == Status::Success;
    if json {
        serde_json::to_writer_pretty(&mut out, comparison)?;
        writeln!(out)?;
    } else if succeeded {
        if !global.quiet {
            writeln!(out, "Compared {}", printable(&comparison.names.join(", ")))?;
        }
        writeln!(out, "Comparison written to: {}", printable(&comparison.output))?;
    } else {
        let lines = comparison.detail.lines().rev().map(str::trim);
        let last = lines.clone().find(|line| !line.is_empty()).unwrap_or_default();
        writeln!(out, "Comparison failed: {}", printable(last))?;
    }
    Ok(Outcome::bad_news_if(!succeeded))
}

/// Writes a summary as the JSON file `path`, in whose folder it gets its name once it is whole.
pub(super) fn write_json(path: &Path, document: &impl serde::Serialize) -> Result<()> {
    let write = || -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let (mut file, scratch) = Scratch::file_beside(path)?;
        serde_json::to_writer_pretty(&mut file, document)?;
        file.write_all(b"\n")?;
        scratch.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
