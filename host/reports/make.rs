//! Making one of TraceLens's reports: staged, run, judged, and put in place once it is whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::child;
use super::command::{self, Invocation};
use super::driver::Driver;
use super::job::Job;
use super::outcome::{Outcome, judge, last_lines, last_words};
use super::staging::Staging;
use crate::scratch::Scratch;

/// The folder, below that of the reports, for logs of TraceLens's own words.
const LOGS: &str = "logs";
/// The folder, below that of the reports, for what an earlier run left under the name of a report that could not be made.
const PREVIOUS: &str = "previous";
/// What the names of folders begin with in which reports are made.
const PARTIAL: &str = ".partial-";
/// What the names of reports end with, as a rule; a generator may promise others.
const ENDINGS: [&str; 3] = [".xlsx", "_csv", ".md"];

/// What reports are made with.
pub struct Maker<'a> {
    /// TraceLens.
    pub driver: &'a Driver,
    /// The traces.
    pub staging: &'a Staging<'a>,
    /// A folder for the programs to be in, and for their temporary files.
    pub scratch: &'a Path,
    /// The folder for reports.
    pub output: &'a Path,
    /// How long one program may take.
    pub time_limit: Option<Duration>,
    /// How many traces of a collective report may be in memory at once.
    pub collective_workers: &'a (dyn Fn(&Job) -> usize + Sync),
}

/// What making a report came to.
#[derive(Debug)]
pub struct Made {
    /// How it came out.
    pub outcome: Outcome,
    /// Names of the outputs that are in place, relative to the folder for reports.
    pub outputs: Vec<String>,
    /// The log of what TraceLens said, relative to the folder for reports.
    pub log: Option<String>,
    /// Its last lines, where it failed.
    pub said: Vec<String>,
    /// The most bytes of memory that it had at once.
    pub peak: u64,
}

impl Made {
    /// Of a report that no program had to make.
    pub fn without_trying(outcome: Outcome) -> Self {
        Made {
            outcome,
            outputs: Vec::new(),
            log: None,
            said: Vec::new(),
            peak: 0,
        }
    }
}

impl Maker<'_> {
    /// Makes the report of `job` in a folder of its own and moves it into place once it is whole. What lay there under its names is
    /// moved away first.
    ///
    /// # Errors
    /// When it cannot be tried: a copy that cannot be made, a folder that cannot be written, a program that does not start.
    pub fn make(&self, job: &Job) -> Result<Made> {
        let output = self.output;
        let part =
            Scratch::folder_in(output, ".partial-").with_context(|| format!("cannot write to {}", output.display()))?;
        let base = part.path().join(&job.stem);
        // Even if the traces cannot be staged, nobody shall take an earlier run's report for this one's.
        let usual = ENDINGS.map(|ending| PathBuf::from(format!("{}{ending}", job.stem)));
        let mut stale = move_away(usual.iter(), output)?;
        let workers = (self.collective_workers)(job);
        let prepared = command::prepare(self.driver, self.scratch, self.staging, job, workers, &base)?;
        let promised = prepared.invocations.iter().flat_map(|invocation| &invocation.promised);
        stale.extend(move_away(promised, output)?);

        let log = format!("{LOGS}/{}.log", job.stem);
        let mut made = Made {
            outcome: Outcome::Success,
            outputs: Vec::new(),
            log: Some(log.clone()),
            said: Vec::new(),
            peak: 0,
        };
        let mut said =
            new_log(&output.join(&log)).with_context(|| format!("cannot write {log} in {}", output.display()))?;
        for invocation in prepared.invocations {
            let (outcome, words) = self.invoke(invocation, &mut said, &mut made.peak)?;
            if outcome != Outcome::Success {
                if let Outcome::Failure(_) = outcome {
                    made.said = last_lines(&words);
                }
                made.outcome = outcome;
                break;
            }
        }
        match &mut made.outcome {
            Outcome::Success => {
                made.outputs = move_all(part.path(), output)?;
                stale
                    .iter()
                    .try_for_each(|path| remove(path))
                    .context("cannot remove an earlier report")?;
            }
            Outcome::Failure(why) if !stale.is_empty() => {
                why.push_str(&format!("; the report of an earlier run is in {PREVIOUS}"));
            }
            Outcome::Failure(_) | Outcome::Skipped(_) => {}
        }
        Ok(made)
    }

    /// Runs one program. Returns how it came out, and its last words.
    fn invoke(&self, mut invocation: Invocation, log: &mut File, peak: &mut u64) -> Result<(Outcome, String)> {
        let command = &mut invocation.command;
        writeln!(log, "$ {command:?}")?;
        let begin = log.metadata()?.len();
        command.stdout(log.try_clone()?).stderr(log.try_clone()?);
        // Whatever it leaves there goes with the scratch folder (openpyxl's files stay when it is killed).
        command.env("TMPDIR", self.scratch);
        let program = command.get_program().to_string_lossy().into_owned();
        let ended = child::run(command, self.time_limit).with_context(|| format!("{program} does not start"))?;
        *peak = ended.peak.max(*peak);
        let words = last_words(log, begin)?;
        Ok((judge(&ended, self.time_limit, &words, &invocation.promised), words))
    }
}

/// Removes what an earlier run into `output` was making when it was killed.
pub fn remove_unfinished(output: &Path) {
    for entry in fs::read_dir(output).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PARTIAL.as_bytes()) {
            // What cannot be removed is in nobody's way.
            let _ = remove(&entry.path());
        }
    }
}

/// A log that several programs append to and that is read back. One of an earlier run is removed, not written over: a program
/// that still has it open keeps it to itself.
fn new_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    remove(path)?;
    File::options().read(true).append(true).create_new(true).open(path)
}

/// Moves what lies in `output` under the names of `promised` into a folder beside it. Returns where it is now.
fn move_away<'a>(promised: impl Iterator<Item = &'a PathBuf>, output: &Path) -> Result<Vec<PathBuf>> {
    let previous = output.join(PREVIOUS);
    let mut moved = Vec::new();
    for name in promised.filter_map(|promised| promised.file_name()) {
        let stale = output.join(name);
        if stale.symlink_metadata().is_err() {
            continue;
        }
        let target = previous.join(name);
        let away = || -> io::Result<()> {
            fs::create_dir_all(&previous)?;
            remove(&target)?;
            fs::rename(&stale, &target)
        };
        away().with_context(|| format!("cannot move away {} of an earlier run", stale.display()))?;
        moved.push(target);
    }
    Ok(moved)
}

/// Moves everything in `from` into `to`. Returns the names.
fn move_all(from: &Path, to: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        let target = to.join(&name);
        // Beyond what was promised: an output that only this TraceLens writes.
        let move_one = || remove(&target).and_then(|()| fs::rename(from.join(&name), &target));
        move_one().with_context(|| format!("cannot put {} in place", target.display()))?;
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Removes a file or a folder with all that is in it, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
