//! What the threads of a run share, and what each does with a job.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use indicatif::HumanBytes;

use super::builtin::{self, RunTally, Source};
use super::discovered::row_kind;
use super::generator::Generator;
use super::job::{Job, Work};
use super::make::{Made, Maker};
use super::memory::CostModel;
use super::outcome::Outcome;
use super::pftrace::json_size;
use super::record::{JobRecord, LimitsUse};
use super::run::{Reporter, Request};
use super::schedule::Demand;
use super::staging::Staging;
use super::summary::{Row, Status};
use crate::traces::Kind;

/// What the threads that run jobs share.
pub struct Running<'a> {
    /// What is to be run.
    pub request: &'a Request<'a>,
    /// Its traces.
    pub staging: &'a Staging<'a>,
    /// What the embedded reporter found in them.
    pub embedded: Mutex<RunTally>,
    /// How many jobs may run at once.
    pub workers: usize,
    /// Bytes of memory that they may use together.
    pub memory: u64,
    /// The most bytes of mended copies at once.
    pub scratch: u64,
}

/// What the embedded reporter needs at most: the names, and a window of the trace.
const EMBEDDED: u64 = 32 << 20;

impl Running<'_> {
    /// What the jobs are allowed to use, for the record.
    pub fn limits(&self) -> LimitsUse {
        LimitsUse {
            jobs: self.workers,
            memory_bytes: self.memory,
            scratch_bytes: self.scratch,
            job_timeout_seconds: self.request.limits.time.map(|time| time.as_secs_f64()),
        }
    }

    /// Bytes of traces that a job has in memory at once, decompressed.
    pub fn raw_bytes(&self, job: &Job) -> u64 {
        match job.work {
            Work::TraceLens(Generator::Collective) => self.largest(job) * self.collective_workers(job) as u64,
            _ => self.sizes(job).sum(),
        }
    }

    fn sizes(&self, job: &Job) -> impl Iterator<Item = u64> {
        job.traces.iter().map(|&index| {
            let trace = &self.request.run.traces[index];
            match trace.kind {
                Kind::Pftrace => json_size(trace.findings.size),
                _ => trace.findings.size,
            }
        })
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

    /// What a job needs, by the model.
    pub fn demand(&self, model: &CostModel, job: &Job) -> Demand {
        if job.work == Work::BuiltIn {
            return Demand {
                memory: EMBEDDED,
                copies: Vec::new(),
            };
        }
        let is_copied = |index: &usize| self.staging.copy_size(*index) > 0;
        Demand {
            memory: model.needs(job.tool(), self.raw_bytes(job)),
            copies: job.traces.iter().copied().filter(is_copied).collect(),
        }
    }

    /// Why `wanted` bytes of mended copies are too much for `job`.
    pub fn too_large(&self, job: &Job, wanted: u64) -> String {
        let copies = match self.demand(&CostModel::default(), job).copies.len() {
            1 if job.kind == row_kind(Kind::Pftrace) => "its JSON".to_owned(),
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

    /// Makes the report of `job`.
    pub fn perform(&self, job: &Job) -> Made {
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
    pub fn edits_of(&self, index: usize) -> Option<String> {
        let log = self.staging.edits_of(index)?;
        Some(
            log.strip_prefix(self.request.output)
                .ok()?
                .to_string_lossy()
                .into_owned(),
        )
    }

    /// The record of a job that is over.
    pub fn record(&self, job: &Job, made: Made, started: String, time: Duration) -> JobRecord {
        let (status, detail) = match made.outcome {
            Outcome::Success => (Status::Success, String::new()),
            Outcome::Skipped(reason) => (Status::Skipped, reason),
            Outcome::Failure(reason) => (Status::Failure, reason),
        };
        let (run, output) = (self.request.run, self.request.output);
        let row = Row {
            trace_file: job.label.clone(),
            kind: job.kind.to_owned(),
            tracelens_tool: job.tool().to_owned(),
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
        };
        JobRecord {
            row,
            traces: job
                .traces
                .iter()
                .map(|&index| run.traces[index].display_path())
                .collect(),
            stem: job.stem.clone(),
            started,
            outputs: made.outputs,
            kept: false,
            output_dir: None,
        }
    }
}
