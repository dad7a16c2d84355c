//! From an assignment to jobs.

use super::collective::collective_jobs;
use super::discovered::{Discovered, UNSUPPORTED, discovered, row_kind};
use super::generator::Generator;
use super::job::{Job, Work};
use super::stem::Stems;
use crate::bytes::Verdict;
use crate::ranks::{Assigned, Assignment};
use crate::traces::{Kind, Run, TraceFile};

/// Which reports are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All.
    Auto,
    /// Those on single Kineto traces.
    Pytorch,
    /// Those on rocprofv3 traces.
    Rocprof,
    /// Those on Perfetto traces.
    Pftrace,
    /// Those on JAX profiles.
    Jax,
    /// The collective ones only.
    Collective,
}

impl Mode {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Auto => "auto",
            Mode::Pytorch => "pytorch",
            Mode::Rocprof => "rocprof",
            Mode::Pftrace => "pftrace",
            Mode::Jax => "jax",
            Mode::Collective => "collective",
        }
    }

    /// Whether reports on single traces of this kind are wanted.
    fn wants(self, kind: Kind) -> bool {
        match kind {
            Kind::Kineto => matches!(self, Mode::Auto | Mode::Pytorch),
            Kind::Rocprof => matches!(self, Mode::Auto | Mode::Rocprof),
            Kind::Pftrace => matches!(self, Mode::Auto | Mode::Pftrace),
            Kind::XPlane => matches!(self, Mode::Auto | Mode::Jax),
            Kind::ExecutionTrace | Kind::Other => false,
        }
    }

    fn wants_collective(self) -> bool {
        matches!(self, Mode::Auto | Mode::Collective)
    }

    /// The generators that this mode may need.
    pub fn generators(self) -> Vec<Generator> {
        let wanted = [Kind::Kineto, Kind::Rocprof, Kind::Pftrace, Kind::XPlane];
        let wanted = wanted.into_iter().filter(|&kind| self.wants(kind));
        let mut generators: Vec<Generator> = wanted.flat_map(|kind| generators_of(kind).iter().copied()).collect();
        generators.extend(self.wants_collective().then_some(Generator::Collective));
        generators
    }
}

/// What is to be planned.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Which reports.
    pub mode: Mode,
    /// Whether TraceLens makes them; else the embedded reporter does, which makes no collective report.
    pub tracelens: bool,
    /// Whether there is a traceconv for Perfetto traces.
    pub traceconv: bool,
    /// At most this many traces of each kind get a report of their own, in natural order of their paths. Collective reports do
    /// not count: a rank left out would cost them.
    pub max_traces: Option<usize>,
}

/// The jobs of a run, in the order of their rows.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// What the run holds, within the limit on traces of one kind.
    pub discovered: Discovered,
}

impl Plan {
    /// The generators that the jobs need.
    pub fn generators(&self) -> Vec<Generator> {
        let mut generators: Vec<Generator> = self.jobs.iter().filter_map(Job::runs).collect();
        generators.sort_unstable();
        generators.dedup();
        generators
    }
}

/// Makes the jobs for a run.
pub fn plan(run: &Run, assignment: &Assignment, wanted: &Wanted) -> Plan {
    let (mut jobs, mut stems) = (Vec::new(), Stems::default());
    let discovered = discovered(run, assignment, wanted.max_traces);
    for &index in &discovered.traces {
        if wanted.mode.wants(run.traces[index].kind) {
            jobs.extend(jobs_of(run, index, &assignment.traces[index], wanted, &mut stems));
        }
    }
    // Always told, whatever the mode.
    jobs.extend(discovered.unsupported.iter().map(|file| Job {
        label: file.path.to_string_lossy().into_owned(),
        kind: UNSUPPORTED,
        generator: None,
        work: match file.is_lost {
            true => Work::Fail(file.reason.clone()),
            false => Work::Skip(file.reason.clone()),
        },
        traces: file.index.into_iter().collect(),
        group: String::new(),
        rank: None,
        gpus_per_node: None,
        stem: stems.of_trace(&file.path, [""]),
    }));
    if wanted.mode.wants_collective() && wanted.tracelens {
        jobs.extend(collective_jobs(run, assignment, &mut stems));
    }
    Plan { jobs, discovered }
}

/// The generators whose reports a trace of this kind gets, a row each.
fn generators_of(kind: Kind) -> &'static [Generator] {
    match kind {
        Kind::Kineto => &[Generator::Pytorch],
        Kind::Rocprof => &[Generator::Rocprof],
        Kind::Pftrace => &[Generator::HipActivity, Generator::HipApi, Generator::MemoryCopy],
        Kind::XPlane => &[Generator::Jax],
        Kind::ExecutionTrace | Kind::Other => &[],
    }
}

fn jobs_of(run: &Run, index: usize, assigned: &Assigned, wanted: &Wanted, stems: &mut Stems) -> Vec<Job> {
    let trace = &run.traces[index];
    let job = |generator: Option<Generator>, stem: String| Job {
        label: trace.display_path(),
        kind: row_kind(trace.kind),
        generator,
        work: work(trace, assigned.role.as_deref(), generator, wanted),
        traces: vec![index],
        group: assigned.rank.map(|_| assigned.group.clone()).unwrap_or_default(),
        rank: assigned.rank,
        gpus_per_node: None,
        stem,
    };
    match generators_of(trace.kind) {
        generators if wanted.tracelens && !generators.is_empty() => {
            let base = stems.of_trace(&trace.path, generators.iter().map(|generator| generator.stem_ending()));
            let jobs = generators
                .iter()
                .map(|generator| job(Some(*generator), format!("{base}{}", generator.stem_ending())));
            jobs.collect()
        }
        _ => vec![job(None, stems.of_trace(&trace.path, [""]))],
    }
}

fn work(trace: &TraceFile, role: Option<&str>, generator: Option<Generator>, wanted: &Wanted) -> Work {
    let findings = &trace.findings;
    if findings.verdict == Verdict::Refused {
        let reason = findings.reason.as_deref().unwrap_or("it cannot be mended");
        return Work::Fail(format!("refused: {reason}"));
    }
    match (trace.kind, generator) {
        (Kind::Pftrace, None) => Work::Skip(
            "the embedded reporter reads no Perfetto protobufs; give --python VENV/bin/python for TraceLens, or open it in ui.perfetto.dev".into(),
        ),
        (Kind::Pftrace, Some(_)) if !wanted.traceconv => Work::Skip(
            "there is no traceconv to convert it: get https://get.perfetto.dev/traceconv, chmod +x, and give --traceconv PATH".into(),
        ),
        (Kind::XPlane, None) => Work::Skip(
            "the embedded reporter reads no JAX profiles; give --python VENV/bin/python for TraceLens".into(),
        ),
        _ if trace.gpu_events == Some(false) => Work::Skip(match role {
            Some("launcher") => "no GPU activity: the torchrun launcher registers with dynolog as well and gets a trace of its own".into(),
            _ => "no GPU activity in the trace (a launcher, a CPU-only process, or a capture window without kernels)".into(),
        }),
        (_, Some(generator)) => Work::TraceLens(generator),
        (_, None) => Work::BuiltIn,
    }
}
