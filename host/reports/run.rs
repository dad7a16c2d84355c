//! Running a plan: as many jobs at once as memory allows, each one's outcome judged by what it left behind.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};

use super::builtin::{self, Kernel, Tally};
use super::command::{self, Invocation};
use super::driver::Driver;
use super::generator::Generator;
use super::job::{Job, Work};
use super::memory;
use super::plan::Plan;
use super::staging::Staging;
use super::summary::{Header, Row, Status, Summary};
use crate::scratch::{ProcessGroup, Scratch};
use crate::traces::Run;

/// Who makes the reports.
pub enum Reporter {
    /// TraceLens, in the interpreter's environment. Its scratch folder is where the run's scratch goes.
    TraceLens(Box<Driver>),
    /// The embedded reporter.
    BuiltIn,
}

/// What is to be run, and where the results go.
pub struct Request<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its jobs.
    pub plan: &'a Plan,
    /// Who makes the reports.
    pub reporter: &'a Reporter,
    /// The mode's name, for the summary.
    pub mode: &'static str,
    /// The folder for reports, absolute. It exists.
    pub output: &'a Path,
    /// Where the JSON summary goes, if not into the output folder.
    pub json_summary: Option<&'a Path>,
    /// How many jobs may run at once; none: as many as there are processors.
    pub jobs: Option<usize>,
    /// A folder for what lives no longer than the run.
    pub scratch: &'a Scratch,
    /// Told of each row as its job ends.
    pub progress: &'a (dyn Fn(&Row) + Sync),
}

/// What running a plan gave.
pub struct Report {
    /// One row a job, in plan order.
    pub rows: Vec<Row>,
    /// The kernels of all traces together, if the embedded reporter made the reports; also in `kernels.csv`.
    pub kernels: Vec<Kernel>,
    /// The JSON summary.
    pub json_summary: PathBuf,
}

/// Memory that running jobs have taken of the budget.
struct Pool {
    budget: u64,
    taken: Mutex<u64>,
    freed: Condvar,
}

impl Pool {
    /// Waits until `wanted` bytes are free. A job that wants more than everything runs alone.
    fn take(&self, wanted: u64) -> u64 {
        let wanted = wanted.min(self.budget);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken + wanted > self.budget {
            taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += wanted;
        wanted
    }

    fn give_back(&self, bytes: u64) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.freed.notify_all();
    }
}

/// Runs all jobs.
///
/// # Errors
/// When the summary cannot be written. A job that fails is a row, not an error.
pub fn run(request: &Request) -> Result<Report> {
    let header = header(request);
    let summary = Summary::begin(header, request.output, request.json_summary)
        .with_context(|| format!("cannot write the summary in {}", request.output.display()))?;
    let json_summary = summary.json_path().to_owned();
    let summary = Mutex::new((summary, None::<io::Error>));
    let kernels = Mutex::new(Tally::default());

    let jobs = &request.plan.jobs;
    let mut readers = vec![0; request.run.traces.len()];
    for &index in jobs.iter().flat_map(|job| &job.traces) {
        readers[index] += 1;
    }
    let traceconv = match request.reporter {
        Reporter::TraceLens(driver) => driver.settings.traceconv.as_deref(),
        Reporter::BuiltIn => None,
    };
    let staging = Staging::new(request.run, request.scratch, traceconv, readers);
    let pool = Pool {
        budget: memory::budget(),
        taken: Mutex::new(0),
        freed: Condvar::new(),
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = request.jobs.unwrap_or(processors).clamp(1, jobs.len().max(1));

    // Largest first, so that none is left running alone at the end.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(needs(request, &jobs[index], workers)));
    let queue = Mutex::new(order.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(index) = { queue.lock().unwrap_or_else(PoisonError::into_inner).next() } {
                    let job = &jobs[index];
                    let taken = pool.take(needs(request, job, workers));
                    let row = perform(request, &staging, job, workers, &kernels);
                    pool.give_back(taken);
                    (request.progress)(&row);
                    let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Err(error) = summary.0.add(index, row) {
                        summary.1.get_or_insert(error);
                    }
                }
            });
        }
    });
    let (summary, error) = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rows = match error {
        Some(error) => Err(error),
        None => summary.finish(),
    };
    let rows = rows.with_context(|| format!("cannot write the summary in {}", request.output.display()))?;
    let kernels = kernels.into_inner().unwrap_or_else(PoisonError::into_inner).kernels();
    if !kernels.is_empty() {
        builtin::write(&kernels, &request.output.join("kernels.csv"))?;
    }
    Ok(Report {
        rows,
        kernels,
        json_summary,
    })
}

fn header(request: &Request) -> Header {
    let (reporter, python, tracelens) = match request.reporter {
        Reporter::BuiltIn => ("builtin", None, None),
        Reporter::TraceLens(driver) => (
            "tracelens",
            Some(driver.interpreter.python.to_string_lossy().into_owned()),
            Some(driver.interpreter.tracelens.clone()),
        ),
    };
    Header {
        root: request.run.root.to_string_lossy().into_owned(),
        output_dir: request.output.to_string_lossy().into_owned(),
        mode: request.mode,
        reporter,
        python,
        tracelens,
        summary_csv: request
            .output
            .join("tracelens_summary.csv")
            .to_string_lossy()
            .into_owned(),
        discovered: request.plan.discovered.counts.clone(),
    }
}

/// Bytes of memory that a job will need at its peak.
fn needs(request: &Request, job: &Job, workers: usize) -> u64 {
    let sizes = job.traces.iter().map(|&index| request.run.traces[index].findings.size);
    match job.work {
        Work::TraceLens(Generator::Collective) => {
            let largest = sizes.max().unwrap_or(0);
            memory::tracelens_needs(largest).saturating_mul(collective_workers(job, workers) as u64)
        }
        Work::TraceLens(_) => memory::tracelens_needs(sizes.sum()),
        Work::BuiltIn | Work::Skip(_) | Work::Fail(_) => 32 << 20,
    }
}

fn collective_workers(job: &Job, workers: usize) -> usize {
    workers.min(job.traces.len()).min(4)
}

fn perform(request: &Request, staging: &Staging, job: &Job, workers: usize, kernels: &Mutex<Tally>) -> Row {
    let start = Instant::now();
    let outcome = match &job.work {
        Work::Skip(reason) => Ok(Some(reason.clone())),
        Work::Fail(reason) => Err(anyhow!("{reason}")),
        Work::BuiltIn => count_kernels(request, job, kernels).map(|()| None),
        _ => make(request, staging, job, workers),
    };
    for &index in &job.traces {
        staging.done_with(index);
    }
    let (status, detail) = match outcome {
        Ok(None) => (Status::Success, String::new()),
        Ok(Some(reason)) => (Status::Skipped, reason),
        Err(error) => (Status::Failure, format!("{error:#}")),
    };
    let output = match status {
        Status::Skipped => String::new(),
        _ => request
            .output
            .strip_prefix(&request.run.root)
            .unwrap_or(request.output)
            .to_string_lossy()
            .into_owned(),
    };
    Row {
        trace_file: job.label.clone(),
        kind: job.kind,
        tracelens_tool: job.tool(),
        status,
        output,
        detail,
        group: job.group.clone(),
        rank: job.rank,
        mended: job.traces.iter().any(|&index| staging.is_mended(index)),
        seconds: start.elapsed().as_secs_f64(),
    }
}

fn count_kernels(request: &Request, job: &Job, run: &Mutex<Tally>) -> Result<()> {
    for &index in &job.traces {
        let kernels = builtin::kernels(request.run, index)?;
        builtin::write(&kernels, &request.output.join(format!("{}_kernels.csv", job.stem)))?;
        run.lock().unwrap_or_else(PoisonError::into_inner).add_all(&kernels);
    }
    Ok(())
}

/// Makes one report in a folder of its own and moves it into place once it is whole. `Some` is a reason why there is none to make.
fn make(request: &Request, staging: &Staging, job: &Job, workers: usize) -> Result<Option<String>> {
    let part = Scratch::folder_in(request.output, ".partial-")
        .with_context(|| format!("cannot write to {}", request.output.display()))?;
    let base = part.path().join(&job.stem);
    let Reporter::TraceLens(driver) = request.reporter else {
        bail!("there is no TraceLens to make it")
    };
    let scratch = request.scratch.path();
    let workers = collective_workers(job, workers);
    let prepared = command::prepare(driver, scratch, staging, job, workers, &base)?;
    let logs = request.output.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;
    let log = logs.join(format!("{}.log", job.stem));
    let mut said = new_log(&log).with_context(|| format!("cannot write {}", log.display()))?;
    for invocation in prepared.invocations {
        if let Some(reason) = invoke(invocation, &mut said)? {
            return Ok(Some(reason));
        }
    }
    move_all(part.path(), request.output)?;
    Ok(None)
}

/// A log that several programs append to and that is read back. One of an earlier run is removed, not written over: a program
/// that still has it open keeps it to itself.
fn new_log(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().read(true).append(true).create_new(true).open(path)
}

/// Runs one command. Success is exit code 0 and every promised output, whole; exit codes alone prove nothing
/// (facts/tracelens.md section 6).
pub(super) fn invoke(mut invocation: Invocation, log: &mut File) -> Result<Option<String>> {
    let command = &mut invocation.command;
    let shown = format!("$ {command:?}\n");
    io::Write::write_all(log, shown.as_bytes())?;
    let begin = log.metadata()?.len();
    command
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        .process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let (mut child, group) =
        ProcessGroup::of(|| command.spawn()).with_context(|| format!("{program} does not start"))?;
    let status = child.wait()?;
    drop(group);

    if !status.success() {
        let words = last_words(log, begin)?;
        if words.contains("No GPU events found in the trace") {
            return Ok(Some(
                "no GPU activity in the trace (TraceLens: No GPU events found in the trace)".to_owned(),
            ));
        }
        if words.contains("KeyError: 'collective_id'") {
            return Ok(Some(
                "no collective report: the traces hold no collective kernels".to_owned(),
            ));
        }
        let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
        match (last, status.signal()) {
            (_, Some(signal)) => bail!("TraceLens was ended by signal {signal} (9 often means: out of memory)"),
            (Some(line), None) => bail!("{line}"),
            (None, None) => bail!("exit code {}", status.code().unwrap_or_default()),
        }
    }
    for promised in &invocation.promised {
        check(promised).with_context(|| {
            format!(
                "TraceLens exited with 0, but {} is not usable",
                promised.file_name().unwrap_or_default().display()
            )
        })?;
    }
    Ok(None)
}

/// The end of what a program said since `begin`, as text.
fn last_words(log: &mut File, begin: u64) -> io::Result<String> {
    const ENOUGH: u64 = 64 << 10;
    let end = log.metadata()?.len();
    log.seek(SeekFrom::Start(begin.max(end.saturating_sub(ENOUGH))))?;
    let mut words = Vec::new();
    log.take(ENOUGH).read_to_end(&mut words)?;
    Ok(String::from_utf8_lossy(&words).into_owned())
}

/// A promised workbook is a whole zip archive; a promised folder holds at least one CSV.
fn check(promised: &Path) -> Result<()> {
    if promised.is_dir() {
        let has_csv = fs::read_dir(promised)?
            .flatten()
            .any(|entry| entry.path().extension().is_some_and(|e| e == "csv"));
        return if has_csv {
            Ok(())
        } else {
            Err(anyhow!("the folder holds no CSV"))
        };
    }
    let mut file = File::open(promised).map_err(|_| anyhow!("it is not there"))?;
    let mut tail = Vec::new();
    let length = file.metadata()?.len();
    if promised.extension().is_some_and(|ending| ending == "md") {
        return if length > 0 {
            Ok(())
        } else {
            Err(anyhow!("it is empty"))
        };
    }
    // The end record of a zip archive is 22 bytes and a comment of at most 64 KiB (APPNOTE.TXT 4.3.16).
    file.seek(SeekFrom::Start(length.saturating_sub((64 << 10) + 22)))?;
    file.read_to_end(&mut tail)?;
    match memchr::memmem::rfind(&tail, b"PK\x05\x06") {
        Some(_) => Ok(()),
        None => Err(anyhow!("it is no whole workbook")),
    }
}

/// Moves everything in `from` into `to`; older outputs of the same names go first, so that none of their sheets survive.
fn move_all(from: &Path, to: &Path) -> Result<()> {
    let entries: Vec<PathBuf> = fs::read_dir(from)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    for entry in entries {
        let target = to.join(entry.file_name().unwrap_or_default());
        if target.is_dir() && !target.is_symlink() {
            fs::remove_dir_all(&target)?;
        }
        fs::rename(&entry, &target).with_context(|| format!("cannot put {} in place", target.display()))?;
    }
    Ok(())
}
