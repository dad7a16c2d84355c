//! Running a plan: as many jobs at once as memory and scratch space allow, each one's outcome a row.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::HumanBytes;

use super::builtin::{self, RunReport, RunTally, Source};
use super::command::Driver;
use super::generator::Generator;
use super::job::{Job, Work};
use super::make::{Made, Maker};
use super::memory::{self, CostModel};
use super::outcome::Outcome;
use super::plan::{Plan, discovered};
use super::pool::{Pool, Seen};
use super::schedule::{Demand, Schedule};
use super::staging::Staging;
use super::summary::{Header, Row, Status, Summary};
use crate::scratch::Scratch;
use crate::traces::Run;

/// Who makes the reports.
pub enum Reporter {
    /// TraceLens, in the interpreter's environment. Its scratch folder is where the run's scratch goes.
    TraceLens(Driver),
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
    /// The cluster's name, for the summary.
    pub cluster: Option<&'a str>,
    /// The folder for reports, absolute. It exists.
    pub output: &'a Path,
    /// Where the JSON summary goes, if not into the output folder.
    pub json_summary: Option<&'a Path>,
    /// What the jobs may use together.
    pub limits: Limits,
    /// A folder for what lives no longer than the run.
    pub scratch: &'a Scratch,
    /// Told of each row as its job ends.
    pub progress: &'a (dyn Fn(&Row) + Sync),
}

/// What the jobs of a run may use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// How many may run at once; none: as many as there are processors.
    pub jobs: Option<usize>,
    /// Bytes of memory for all that run at once; none: nine tenths of what is free.
    pub memory: Option<u64>,
    /// Bytes of mended copies at once; none: nine tenths of what is free where they go.
    pub scratch: Option<u64>,
    /// How long one of TraceLens's programs may take.
    pub time: Option<Duration>,
}

/// What running a plan gave.
pub struct Report {
    /// One row a job, in plan order.
    pub rows: Vec<Row>,
    /// What the embedded reporter says of all traces together, if it made the reports; also in `kernels.csv`, `ranks.csv`,
    /// `memory_copies.csv` and `collectives.csv`.
    pub embedded: Option<RunReport>,
    /// The JSON summary.
    pub json_summary: PathBuf,
    /// The most bytes of mended copies that there were at once.
    pub peak_scratch: u64,
}

/// Runs all jobs.
///
/// # Errors
/// When the summary cannot be written. A job that fails is a row, not an error.
pub fn run(request: &Request) -> Result<Report> {
    let summary = Summary::begin(header(request), request.output, request.json_summary)
        .with_context(|| format!("cannot write the summary in {}", request.output.display()))?;
    let json_summary = summary.json_path().to_owned();
    let summary = Mutex::new((summary, None::<io::Error>));

    let jobs = &request.plan.jobs;
    let staging = Staging::new(request.run, request.scratch, request.output.join("edits"));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let running = Running {
        request,
        staging: &staging,
        embedded: Mutex::default(),
        workers: request.limits.jobs.unwrap_or(processors).clamp(1, jobs.len().max(1)),
        memory: request.limits.memory.unwrap_or_else(memory::budget),
    };
    let finished = |index: usize, row: Row| {
        (request.progress)(&row);
        let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = summary.0.add(index, row) {
            summary.1.get_or_insert(error);
        }
    };

    let model = CostModel::default();
    let copies = (0..request.run.traces.len()).map(|index| staging.copy_size(index));
    let mut schedule = Schedule::new(running.memory, running.scratch(), copies.collect());
    for (index, job) in jobs.iter().enumerate() {
        let outcome = match &job.work {
            Work::Skip(reason) => Outcome::Skipped(reason.clone()),
            Work::Fail(reason) => Outcome::Failure(reason.clone()),
            _ => match schedule.add(index, running.demand(&model, job)) {
                Ok(()) => continue,
                Err(wanted) => Outcome::Failure(running.too_large(job, wanted)),
            },
        };
        finished(index, running.row(job, Made::without_trying(outcome), Duration::ZERO));
    }
    let needs = |model: &CostModel, job: usize| running.demand(model, &jobs[job]).memory;
    let discard = |trace: usize| staging.discard(trace);
    let pool = Pool::new(schedule, model, &needs, &discard);
    std::thread::scope(|scope| {
        for _ in 0..running.workers {
            scope.spawn(|| {
                while let Some(mut turn) = pool.next() {
                    let job = &jobs[turn.job];
                    let start = Instant::now();
                    let made = running.perform(job);
                    turn.seen = (made.peak > 0).then(|| Seen {
                        program: job.tool(),
                        raw: running.raw_bytes(job),
                        peak: made.peak,
                        succeeded: made.outcome == Outcome::Success,
                    });
                    let (index, row) = (turn.job, running.row(job, made, start.elapsed()));
                    drop(turn);
                    finished(index, row);
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
    let embedded = match request.reporter {
        Reporter::BuiltIn => {
            let tally = std::mem::take(&mut *running.embedded.lock().unwrap_or_else(PoisonError::into_inner));
            let report = tally.report();
            report.write(request.output)?;
            Some(report)
        }
        Reporter::TraceLens(_) => None,
    };
    Ok(Report {
        rows,
        embedded,
        json_summary,
        peak_scratch: pool.peak_scratch(),
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
        cluster: request.cluster.map(str::to_owned),
        mode: request.mode,
        reporter,
        python,
        tracelens,
        summary_csv: request
            .output
            .join("tracelens_summary.csv")
            .to_string_lossy()
            .into_owned(),
        discovered: discovered(request.run),
    }
}

/// What the threads that run jobs share.
struct Running<'a> {
    request: &'a Request<'a>,
    staging: &'a Staging<'a>,
    embedded: Mutex<RunTally>,
    workers: usize,
    memory: u64,
}

/// What the embedded reporter needs at most: the names, and a window of the trace.
const EMBEDDED: u64 = 32 << 20;

impl Running<'_> {
    /// The most bytes of mended copies at once.
    fn scratch(&self) -> u64 {
        self.request.limits.scratch.unwrap_or_else(|| {
            rustix::fs::statvfs(self.request.scratch.path())
                .map_or(u64::MAX, |space| (space.f_bavail * space.f_frsize) / 10 * 9)
        })
    }

    /// Bytes of traces that a job has in memory at once, decompressed.
    fn raw_bytes(&self, job: &Job) -> u64 {
        match job.work {
            Work::TraceLens(Generator::Collective) => self.largest(job) * self.collective_workers(job) as u64,
            _ => self.sizes(job).sum(),
        }
    }

    fn sizes(&self, job: &Job) -> impl Iterator<Item = u64> {
        job.traces
            .iter()
            .map(|&index| self.request.run.traces[index].findings.size)
    }

    fn largest(&self, job: &Job) -> u64 {
        self.sizes(job).max().unwrap_or(0)
    }

    /// How many processes of a collective report share its traces: each has one in memory at a time (facts/tracelens.md section 4).
    fn collective_workers(&self, job: &Job) -> usize {
        let each = CostModel::default().needs(job.tool(), self.largest(job));
        let by_memory = usize::try_from(self.memory / each).unwrap_or(usize::MAX);
        by_memory.min(self.workers).min(job.traces.len()).clamp(1, 4)
    }

    fn demand(&self, model: &CostModel, job: &Job) -> Demand {
        if job.work == Work::BuiltIn {
            return Demand {
                memory: EMBEDDED,
                copies: Vec::new(),
            };
        }
        let is_mended = |index: &usize| self.staging.is_mended(*index);
        Demand {
            memory: model.needs(job.tool(), self.raw_bytes(job)),
            copies: job.traces.iter().copied().filter(is_mended).collect(),
        }
    }

    fn too_large(&self, job: &Job, wanted: u64) -> String {
        let copies = match self.demand(&CostModel::default(), job).copies.len() {
            1 => "its mended copy".to_owned(),
            number => format!("its {number} mended copies, all needed at once,"),
        };
        let (folder, wanted) = (self.request.scratch.path().display(), HumanBytes(wanted));
        match self.request.limits.scratch {
            Some(limit) => format!(
                "{copies} can take {wanted}, more than --scratch-limit {}",
                HumanBytes(limit)
            ),
            None => {
                format!("{copies} can take {wanted}, more than is free in {folder} (set TMPDIR to a place with room)")
            }
        }
    }

    fn perform(&self, job: &Job) -> Made {
        let request = self.request;
        let made = match request.reporter {
            Reporter::BuiltIn => self.embed(job).map(|()| Made::without_trying(Outcome::Success)),
            Reporter::TraceLens(driver) => Maker {
                driver,
                staging: self.staging,
                scratch: request.scratch.path(),
                output: request.output,
                time_limit: request.limits.time,
                collective_workers: &|job| self.collective_workers(job),
            }
            .make(job),
        };
        let mut made = made.unwrap_or_else(|error| Made::without_trying(Outcome::Failure(format!("{error:#}"))));
        if let Outcome::Failure(why) = &mut made.outcome {
            why.push_str(&self.damage(job));
        }
        made
    }

    fn embed(&self, job: &Job) -> Result<()> {
        for &index in &job.traces {
            self.staging.log_edits(index)?;
            let report = builtin::report(self.request.run, index, self.request.scratch.path())?;
            report.write(self.request.output, &job.stem)?;
            let source = Source {
                trace: job.label.clone(),
                group: job.group.clone(),
                rank: job.rank,
            };
            self.embedded
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .add(source, &report);
        }
        Ok(())
    }

    /// Which traces of a failed job were damaged, and where.
    fn damage(&self, job: &Job) -> String {
        let mended: Vec<String> = job
            .traces
            .iter()
            .filter(|&&index| self.staging.is_mended(index))
            .map(|&index| {
                let trace = &self.request.run.traces[index];
                let place = trace.findings.flaws.listed.first().map(|flaw| {
                    format!(
                        ": {} at line {}, column {}, byte {}",
                        flaw.kind.name(),
                        flaw.line,
                        flaw.column,
                        flaw.offset
                    )
                });
                format!("{}{}", trace.display_path(), place.unwrap_or_default())
            })
            .collect();
        match mended.as_slice() {
            [] => String::new(),
            [one] => format!(" (read from the mended copy of {one})"),
            [first, rest @ ..] => format!(" (read from the mended copies of {first}, and {} more)", rest.len()),
        }
    }

    /// The log of the edits that mended a trace, relative to the output folder.
    fn edits_of(&self, index: usize) -> Option<String> {
        let log = self.staging.edits_of(index)?;
        Some(
            log.strip_prefix(self.request.output)
                .ok()?
                .to_string_lossy()
                .into_owned(),
        )
    }

    fn row(&self, job: &Job, made: Made, time: Duration) -> Row {
        let (status, detail) = match made.outcome {
            Outcome::Success => (Status::Success, String::new()),
            Outcome::Skipped(reason) => (Status::Skipped, reason),
            Outcome::Failure(reason) => (Status::Failure, reason),
        };
        let (run, output) = (self.request.run, self.request.output);
        Row {
            trace_file: job.label.clone(),
            kind: job.kind,
            tracelens_tool: job.tool(),
            status,
            output: match status {
                Status::Skipped => String::new(),
                _ => output
                    .strip_prefix(&run.root)
                    .unwrap_or(output)
                    .to_string_lossy()
                    .into_owned(),
            },
            detail,
            group: job.group.clone(),
            rank: job.rank,
            mended: job.traces.iter().any(|&index| self.staging.is_mended(index)),
            edits: job.traces.iter().filter_map(|&index| self.edits_of(index)).collect(),
            seconds: time.as_secs_f64(),
            peak_bytes: made.peak,
            log: made.log,
            last_lines: made.said,
        }
    }
}
