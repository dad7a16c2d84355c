//! The options of `tracemend analyze`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::limits::JobOptions;
use crate::cli::Policies;
use crate::cli::tracelens::TraceLensOptions;
use crate::reports::{Generator, Mode, Reporter, Wanted};
use crate::scratch::Scratch;

#[derive(Debug, Args)]
pub struct Analyze {
    /// The run: a folder, or one trace; the current folder if not given
    #[arg(value_name = "RUN", conflicts_with = "root")]
    run: Option<PathBuf>,
    /// The same as RUN
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Where reports go
    #[arg(short, long, value_name = "DIR", default_value = "tracelens_output")]
    pub(super) output_dir: PathBuf,
    /// Who makes the reports; by default TraceLens if --python (or TRACELENS_VENV) names one, else the embedded reporter
    #[arg(long, value_enum)]
    reporter: Option<WhichReporter>,
    #[command(flatten)]
    pub(super) tracelens: TraceLensOptions,
    /// Which reports to make
    #[arg(long, value_enum, default_value = "auto")]
    mode: WhichReports,
    /// Make reports of at most this many traces of each kind; 0 is no limit. Collective reports are made all the same
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_traces: usize,
    /// Perfetto's converter, for .pftrace files; else the one beside the interpreter, else the one on PATH
    #[arg(long, value_name = "PROGRAM")]
    traceconv: Option<PathBuf>,
    /// The GPU of rooflines, by TraceLens's name for it, such as MI300X
    #[arg(long, value_name = "NAME")]
    gpu_arch: Option<String>,
    /// Add a study of short kernels to the reports on Kineto traces
    #[arg(long)]
    short_kernel_study: bool,
    /// The generators that the words after -- are for; all that know them if not given
    #[arg(
        long,
        value_enum,
        value_name = "GENERATOR",
        value_delimiter = ',',
        requires = "extra"
    )]
    extra_for: Vec<WhichGenerators>,
    /// Where the JSON summary goes, if not into the output folder
    #[arg(long, value_name = "FILE")]
    pub(super) json_summary: Option<PathBuf>,
    /// Where the page goes that shows the run at a glance, if not to index.html in the output folder
    #[arg(long, value_name = "FILE", conflicts_with = "no_html")]
    pub(super) html: Option<PathBuf>,
    /// Write no page
    #[arg(long)]
    pub(super) no_html: bool,
    /// List the traces, kind and path, and make no reports
    #[arg(long)]
    pub(super) discover_only: bool,
    /// Compare reports of TraceLens instead; like `tracemend compare`
    #[arg(long, value_name = "REPORT", num_args = 1..)]
    pub(super) compare: Vec<PathBuf>,
    /// The workbook of --compare
    #[arg(long, value_name = "FILE", default_value = crate::cli::compare::OUTPUT)]
    pub(super) compare_output: PathBuf,
    /// What the reports of --compare are called, one name each
    #[arg(long, value_name = "TAG", num_args = 1..)]
    pub(super) compare_names: Vec<String>,
    #[command(flatten)]
    pub(super) policies: Policies,
    #[command(flatten)]
    pub(super) jobs: JobOptions,
    /// Print the JSON summary instead of text
    #[arg(long)]
    pub(super) json: bool,
    /// Options handed to those of TraceLens's generators that know them
    #[arg(last = true, value_name = "EXTRA")]
    extra: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhichReporter {
    /// TraceLens, by --python or TRACELENS_VENV
    Tracelens,
    /// The embedded reporter: kernels, GPU time, memory copies and collectives, as CSV
    Builtin,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WhichReports {
    /// All
    Auto,
    /// Those on single Kineto traces
    Pytorch,
    /// Those on rocprofv3 traces
    Rocprof,
    /// Those on Perfetto traces
    Pftrace,
    /// Those on JAX profiles
    Jax,
    /// Those on the ranks of a job together
    Collective,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhichGenerators {
    Pytorch,
    Rocprof,
    /// All three on Perfetto traces
    Pftrace,
    PftraceHipActivity,
    PftraceHipApi,
    PftraceMemoryCopy,
    Jax,
    Collective,
    Compare,
}

impl WhichGenerators {
    fn generators(self) -> &'static [Generator] {
        match self {
            WhichGenerators::Pytorch => &[Generator::Pytorch],
            WhichGenerators::Rocprof => &[Generator::Rocprof],
            WhichGenerators::Pftrace => &[Generator::HipActivity, Generator::HipApi, Generator::MemoryCopy],
            WhichGenerators::PftraceHipActivity => &[Generator::HipActivity],
            WhichGenerators::PftraceHipApi => &[Generator::HipApi],
            WhichGenerators::PftraceMemoryCopy => &[Generator::MemoryCopy],
            WhichGenerators::Jax => &[Generator::Jax],
            WhichGenerators::Collective => &[Generator::Collective],
            WhichGenerators::Compare => &[Generator::Compare],
        }
    }
}

impl Analyze {
    /// The run, as the user wrote it.
    pub(super) fn run_folder(&self) -> &Path {
        self.run.as_deref().or(self.root.as_deref()).unwrap_or(Path::new("."))
    }

    /// Who makes the reports.
    ///
    /// # Errors
    /// When TraceLens is asked for and not to be had, or would refuse what is asked of it.
    pub(super) fn reporter(&self, scratch: &Scratch) -> Result<Reporter> {
        let named = self.tracelens.python();
        if self.reporter == Some(WhichReporter::Builtin) || (self.reporter.is_none() && named.is_none()) {
            let unused = [
                (self.gpu_arch.is_some(), "--gpu-arch"),
                (self.traceconv.is_some(), "--traceconv"),
                (self.short_kernel_study, "--short-kernel-study"),
                (!self.extra.is_empty(), "the words after --"),
            ];
            for (_, option) in unused.iter().filter(|(given, _)| *given) {
                eprintln!("tracemend: no use for {option}: reports come from the embedded reporter");
            }
            return Ok(Reporter::BuiltIn);
        }
        if named.is_none() {
            bail!("--reporter tracelens needs --python VENV/bin/python, or TRACELENS_VENV in the environment")
        }
        let mut driver = self
            .tracelens
            .driver(&self.extra, self.extra_generators(), scratch.path())?;
        let settings = &mut driver.settings;
        settings.gpu_arch = self.gpu_arch.clone().filter(|name| !name.is_empty());
        settings.short_kernel_study = self.short_kernel_study;
        settings.traceconv = crate::reports::find_traceconv(self.traceconv.as_deref(), &driver.interpreter.python)?;
        let mut concerned = Vec::new();
        if settings.gpu_arch.is_some() {
            concerned.extend([Generator::Pytorch, Generator::Jax]);
        }
        if !settings.extra.is_empty() {
            concerned.extend(self.mode().generators());
        }
        self.tracelens.learn(&mut driver, &concerned, scratch.path());
        driver.check(&self.mode().generators())?;
        Ok(Reporter::TraceLens(Box::new(driver)))
    }

    /// The generators that the words after `--` are for.
    fn extra_generators(&self) -> Vec<Generator> {
        self.extra_for
            .iter()
            .flat_map(|which| which.generators())
            .copied()
            .collect()
    }

    /// The words after `--`, and whom they are for.
    pub(super) fn extra(&self) -> (&[OsString], Vec<Generator>) {
        (&self.extra, self.extra_generators())
    }

    /// Which reports are wanted of `reporter`.
    pub(super) fn wanted(&self, reporter: &Reporter) -> Wanted {
        let driver = match reporter {
            Reporter::TraceLens(driver) => Some(driver),
            Reporter::BuiltIn => None,
        };
        Wanted {
            mode: self.mode(),
            tracelens: driver.is_some(),
            traceconv: driver.is_some_and(|driver| driver.settings.traceconv.is_some()),
            max_traces: self.max_traces(),
        }
    }

    /// The limit on traces of one kind.
    pub(super) fn max_traces(&self) -> Option<usize> {
        Some(self.max_traces).filter(|max| *max > 0)
    }

    /// Which reports are wanted.
    pub(super) fn mode(&self) -> Mode {
        match self.mode {
            WhichReports::Auto => Mode::Auto,
            WhichReports::Pytorch => Mode::Pytorch,
            WhichReports::Rocprof => Mode::Rocprof,
            WhichReports::Pftrace => Mode::Pftrace,
            WhichReports::Jax => Mode::Jax,
            WhichReports::Collective => Mode::Collective,
        }
    }
}
