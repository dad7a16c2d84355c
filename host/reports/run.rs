//! Running a plan: as many jobs at once as memory and scratch space allow, each one's outcome a row and a part of the record.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::builtin::RunReport;
use super::driver::Driver;
use super::job::Work;
use super::ledger::Ledger;
use super::make::{Made, remove_unfinished};
use super::memory::{self, CostModel};
use super::opening::opening;
use super::outcome::Outcome;
use super::plan::Plan;
use super::pool::{Pool, Seen};
use super::record::{ClusterUse, PluginUse, Record, ShardUse, now};
use super::resume;
use super::running::Running;
use super::schedule::Schedule;
use super::staging::Staging;
use super::summary::Row;
use crate::ranks::Assignment;
use crate::scratch::Scratch;
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
    /// Whose its traces are.
    pub assignment: &'a Assignment,
    /// Its jobs.
    pub plan: &'a Plan,
    /// The part of the run that they are, if they are not all.
    pub shard: Option<ShardUse>,
    /// Whether reports of an earlier run are kept where nothing has changed.
    pub resume: bool,
    /// What else the record says of where this comes from.
    pub provenance: Provenance,
    /// Who makes the reports.
    pub reporter: &'a Reporter,
    /// The mode's name, for the summary.
    pub mode: &'static str,
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

/// Where a run of `analyze` comes from, for its record.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    /// The command line.
    pub command_line: Vec<String>,
    /// The cluster whose configuration was used.
    pub cluster: Option<ClusterUse>,
    /// The naming policies, in the order in which they were asked.
    pub plugins: Vec<PluginUse>,
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
    /// How many reports are an earlier run's.
    pub kept: usize,
    /// Whether there was an earlier run to resume whose reports were made otherwise, so that none could be kept.
    pub made_otherwise: bool,
}

/// Runs all jobs.
///
/// # Errors
/// When the summary or the record cannot be written, or a run cannot be resumed because its record is none. A job that fails is a
/// row, not an error.
pub fn run(request: &Request) -> Result<Report> {
    let jobs = &request.plan.jobs;
    let earlier = Record::read(request.output);
    let earlier = if request.resume {
        earlier?
    } else {
        earlier.unwrap_or(None)
    };
    if let Some(of_other_shard) = earlier.as_ref().filter(|earlier| earlier.shard != request.shard) {
        refuse_other_shard(of_other_shard, request)?;
    }
    remove_unfinished(request.output);
    let traceconv = match request.reporter {
        Reporter::TraceLens(driver) => driver.settings.traceconv.as_deref(),
        Reporter::BuiltIn => None,
    };
    let staging = Staging::new(request.run, request.scratch, request.output.join("edits"), traceconv);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let running = Running {
        request,
        staging: &staging,
        embedded: Mutex::default(),
        workers: request.limits.jobs.unwrap_or(processors).clamp(1, jobs.len().max(1)),
        memory: request.limits.memory.unwrap_or_else(memory::budget),
        scratch: request
            .limits
            .scratch
            .unwrap_or_else(|| free_in(request.scratch.path())),
    };
    let mut record = opening(request, &running.limits(), |index| staging.is_mended(index));
    let earlier = earlier.filter(|_| request.resume);
    let made_otherwise = earlier
        .as_ref()
        .is_some_and(|earlier| earlier.reporter.options_sha256 != record.reporter.options_sha256);
    let kept = earlier.as_ref().map_or_else(BTreeMap::new, |earlier| {
        resume::kept(earlier, &mut record, jobs, request.output)
    });
    let mut waiting: BTreeSet<usize> = (0..jobs.len()).filter(|place| !kept.contains_key(place)).collect();
    let number_kept = kept.len();
    for job in kept.values() {
        (request.progress)(&job.row);
    }
    let cannot_write = || format!("cannot write the summary in {}", request.output.display());
    let ledger = Ledger::begin(record, kept, request.output, request.json_summary).with_context(cannot_write)?;
    let json_summary = ledger.json_path().to_owned();
    let finished = |place: usize, made: Made, started: String, time: Duration| {
        let job = &jobs[place];
        let record = running.record(job, made, started, time);
        (request.progress)(&record.row);
        let edits = job
            .traces
            .iter()
            .filter_map(|&index| Some((index, running.edits_of(index)?)));
        ledger.add(place, record, edits);
    };

    let model = CostModel::default();
    let copies = (0..request.run.traces.len()).map(|index| staging.copy_size(index));
    let mut schedule = Schedule::new(running.memory, running.scratch, copies.collect());
    waiting.retain(|&place| {
        let job = &jobs[place];
        let outcome = match &job.work {
            Work::Skip(reason) => Outcome::Skipped(reason.clone()),
            Work::Fail(reason) => Outcome::Failure(reason.clone()),
            _ => match schedule.add(place, running.demand(&model, job)) {
                Ok(()) => return true,
                Err(wanted) => Outcome::Failure(running.too_large(job, wanted)),
            },
        };
        finished(place, Made::without_trying(outcome), now(), Duration::ZERO);
        false
    });
    let needs = |model: &CostModel, place: usize| running.demand(model, &jobs[place]).memory;
    let discard = |trace: usize| staging.discard(trace);
    let pool = Pool::new(schedule, model, &needs, &discard);
    let work = || {
        while let Some(mut turn) = pool.next() {
            let (job, place) = (&jobs[turn.job], turn.job);
            let (started, start) = (now(), Instant::now());
            let made = running.perform(job);
            turn.seen = (made.peak > 0).then(|| Seen {
                program: job.tool(),
                raw: running.raw_bytes(job),
                peak: made.peak,
                succeeded: made.outcome == Outcome::Success,
            });
            drop(turn);
            finished(place, made, started, start.elapsed());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| ledger.keep_writing());
        // Closed even if a thread panics: nobody would write on for ever.
        let _closed = OnDrop(|| ledger.close());
        std::thread::scope(|scope| {
            for _ in 0..running.workers.min(waiting.len()) {
                scope.spawn(work);
            }
        });
    });
    let rows = ledger.finish(pool.peak_scratch()).with_context(cannot_write)?;
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
        kept: number_kept,
        made_otherwise,
    })
}

/// Shards that shared a folder would replace each other's summary.
fn refuse_other_shard(earlier: &Record, request: &Request) -> Result<()> {
    let shown = request.output.display();
    match (earlier.shard, request.shard) {
        (Some(ShardUse { index, of }), Some(_)) => {
            bail!("{shown} holds shard {index}/{of}; give each shard an output folder of its own, with -o")
        }
        (Some(ShardUse { index, of }), None) => {
            bail!("{shown} holds shard {index}/{of} of a run; choose another output folder, with -o")
        }
        (None, _) => Ok(()),
    }
}

/// Nine tenths of what is free on the file system of `folder`.
fn free_in(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(u64::MAX, |space| (space.f_bavail * space.f_frsize) / 10 * 9)
}

/// Calls a function at the end, whatever end that is.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
