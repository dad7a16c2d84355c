//! TraceLens's comparison of reports.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::child;
use super::driver::Driver;
use super::generator::Generator;
use super::outcome::{Outcome, judge, last_words};
use super::summary::Status;
use crate::scratch::Scratch;

/// How a comparison ended. The fields are those of the toolchain that this replaces (facts/seed.md section 6.3).
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The reports compared, absolute.
    pub reports: Vec<String>,
    /// The workbook.
    pub output: String,
    /// Success or failure.
    pub status: Status,
    /// All that TraceLens said, after a failure.
    pub detail: String,
    /// What the columns of each report are called.
    pub names: Vec<String>,
}

/// Reports to be compared, checked.
#[derive(Debug, Clone)]
pub struct Comparands {
    reports: Vec<PathBuf>,
    names: Vec<String>,
}

impl Comparands {
    /// Checks the reports (workbooks, or folders of CSVs) and what they are to be called; without `names` after their files.
    ///
    /// # Errors
    /// When TraceLens would refuse them, in one line.
    pub fn new(reports: &[PathBuf], names: &[String]) -> Result<Self> {
        if reports.len() < 2 {
            bail!("a comparison needs at least two reports, workbooks or folders of CSVs");
        }
        for report in reports {
            check_report(report)?;
        }
        if names.is_empty() {
            return Ok(Comparands {
                reports: reports.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
                names: names_of(reports),
            });
        }
        if names.len() != reports.len() {
            bail!("{} names for {} reports; give one each", names.len(), reports.len());
        }
        let mut seen = HashSet::new();
        for name in names {
            if name.is_empty() || name.starts_with('-') {
                bail!("{name:?} is no name; it must not be empty or begin with -");
            }
            if !seen.insert(name) {
                bail!("two reports are named {name}; names must differ");
            }
        }
        Ok(Comparands {
            reports: reports.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
            names: names.to_vec(),
        })
    }

    /// Compares them into the workbook `output`, which gets its name once it is whole. `--names` is always given: TraceLens calls
    /// reports after their files and fails if two are alike (facts/tracelens.md section 1).
    ///
    /// # Errors
    /// When `output` cannot be written. A comparison that fails is no error.
    pub fn compare(&self, driver: &Driver, scratch: &Path, output: &Path) -> Result<Comparison> {
        let output = std::path::absolute(output)?;
        let (Some(folder), Some(name)) = (output.parent(), output.file_name()) else {
            bail!("{} is no file to write to", output.display());
        };
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let part =
            Scratch::folder_in(folder, ".partial-").with_context(|| format!("cannot write to {}", folder.display()))?;
        let made = part.path().join(name);
        let mut command = driver.interpreter.command(Generator::Compare, scratch);
        command.args(&self.reports).arg("-o").arg(&made);
        let flags = driver.flags(Generator::Compare);
        command.args(driver.settings.extra.words_for(Generator::Compare, flags));
        // Last: it takes all that follows.
        command.arg("--names").args(&self.names);

        let mut said = tempfile::tempfile_in(scratch).context("cannot keep what TraceLens says")?;
        command.stdout(said.try_clone()?).stderr(said.try_clone()?);
        let ended = child::run(&mut command, None).context("TraceLens does not start")?;
        let words = last_words(&mut said, 0)?;
        let failed = match judge(&ended, None, &words, &[&made]) {
            Outcome::Success => None,
            Outcome::Skipped(reason) | Outcome::Failure(reason) => Some(reason),
        };
        let (status, detail) = match failed {
            None => {
                fs::rename(&made, &output).with_context(|| format!("cannot put {} in place", output.display()))?;
                (Status::Success, String::new())
            }
            Some(reason) => (Status::Failure, whole_output(said, reason)?),
        };
        Ok(self.outcome(&output, status, detail))
    }

    fn outcome(&self, output: &Path, status: Status, detail: String) -> Comparison {
        Comparison {
            reports: self
                .reports
                .iter()
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
            output: output.to_string_lossy().into_owned(),
            status,
            detail,
            names: self.names.clone(),
        }
    }
}

/// What a program said; ends with the reason if it does not say it itself.
fn whole_output(mut said: File, reason: String) -> Result<String> {
    const ENOUGH: u64 = 1 << 20;
    said.rewind()?;
    let mut bytes = Vec::new();
    said.take(ENOUGH).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let output = text.trim_end();
    Ok(match output.ends_with(&reason) {
        true => output.to_owned(),
        false => format!("{output}\n{reason}").trim().to_owned(),
    })
}

fn check_report(report: &Path) -> Result<()> {
    let shown = report.display();
    let meta = fs::metadata(report).with_context(|| format!("no report at {shown}"))?;
    if meta.is_dir() {
        let entries = fs::read_dir(report).with_context(|| format!("cannot list {shown}"))?;
        let is_csv = |path: PathBuf| path.extension().is_some_and(|ending| ending == "csv");
        if !entries.flatten().any(|entry| is_csv(entry.path())) {
            bail!("{shown} holds no CSVs; a report is a workbook, or a folder such as STEM_csv");
        }
        return Ok(());
    }
    let mut magic = [0; 4];
    let read = File::open(report).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || magic != *b"PK\x03\x04" {
        bail!("{shown} is no workbook; a report is an .xlsx, or a folder of CSVs");
    }
    Ok(())
}

/// A name for each report: its file's stem, with the folders before it as far as that takes to tell them apart.
fn names_of(reports: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = reports
        .iter()
        .map(|report| {
            let path = std::path::absolute(report).unwrap_or_else(|_| report.clone());
            let mut parts: Vec<String> = path
                .components()
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect();
            if let Some(last) = parts.last_mut() {
                let stem = last.strip_suffix(".xlsx").or(last.strip_suffix("_csv")).unwrap_or(last);
                *last = stem.trim_start_matches('-').to_owned();
            }
            parts
        })
        .collect();
    let longest = parts.iter().map(Vec::len).max().unwrap_or(1);
    for depth in 1..=longest {
        let names: Vec<String> = parts
            .iter()
            .map(|parts| parts[parts.len().saturating_sub(depth)..].join("/"))
            .collect();
        let distinct: HashSet<&String> = names.iter().collect();
        if distinct.len() == names.len() && !names.iter().any(|name| name.is_empty() || name.starts_with('-')) {
            return names;
        }
    }
    // One report twice.
    (1..=reports.len()).map(|number| format!("report {number}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_reports_apart() {
        let named = |paths: &[&str]| names_of(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["/a/before.xlsx", "/a/after_csv"]), ["before", "after"]);
        assert_eq!(named(&["/a/r.xlsx", "/b/r.xlsx", "/c/q.xlsx"]), ["a/r", "b/r", "c/q"]);
        assert_eq!(named(&["/a/r.xlsx", "/a/r.xlsx"]), ["report 1", "report 2"]);
        assert_eq!(named(&["/a/-x.xlsx", "/a/--x.xlsx"]), ["report 1", "report 2"]);
    }
}
