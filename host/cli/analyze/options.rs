//! The options of `tracemend analyze`.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::limits::JobOptions;
use crate::cli::Policies;
use crate::reports::{Driver, Interpreter, Mode, Reporter};
use crate::scratch::Scratch;

#[derive(Debug, Args)]
pub struct Analyze {
    /// The run: a folder, or one trace
    #[arg(value_name = "RUN")]
    pub(super) root: PathBuf,
    /// Where reports go
    #[arg(short, long, value_name = "DIR", default_value = "tracelens_output")]
    pub(super) output_dir: PathBuf,
    /// Who makes the reports; by default TraceLens if --python (or TRACELENS_VENV) names one, else the embedded reporter
    #[arg(long, value_enum)]
    pub(super) reporter: Option<WhichReporter>,
    /// The interpreter of the environment that TraceLens is installed in, such as VENV/bin/python
    #[arg(long, value_name = "PYTHON")]
    pub(super) python: Option<PathBuf>,
    /// Leave PYTHONPATH as it is for TraceLens
    #[arg(long)]
    pub(super) keep_pythonpath: bool,
    /// Which reports to make
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) mode: WhichReports,
    /// Where the JSON summary goes, if not into the output folder
    #[arg(long, value_name = "FILE")]
    pub(super) json_summary: Option<PathBuf>,
    /// Where the page goes that shows the run at a glance, if not to index.html in the output folder
    #[arg(long, value_name = "FILE", conflicts_with = "no_html")]
    pub(super) html: Option<PathBuf>,
    /// Write no page
    #[arg(long)]
    pub(super) no_html: bool,
    #[command(flatten)]
    pub(super) policies: Policies,
    #[command(flatten)]
    pub(super) jobs: JobOptions,
    /// Print the JSON summary instead of text
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WhichReporter {
    /// TraceLens, by --python or TRACELENS_VENV
    Tracelens,
    /// The embedded reporter: kernels, GPU time, memory copies and collectives, as CSV
    Builtin,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum WhichReports {
    /// All
    Auto,
    /// Those on Kineto traces, the collective one included
    Pytorch,
    /// Those on rocprofv3 traces
    Rocprof,
    /// The collective ones only
    Collective,
}

impl Analyze {
    /// Who makes the reports.
    pub(super) fn reporter(&self, scratch: &Scratch) -> Result<Reporter> {
        let python = self.python.clone().or_else(python_of_venv);
        match (self.reporter, python) {
            (Some(WhichReporter::Builtin), _) | (None, None) => Ok(Reporter::BuiltIn),
            (_, Some(python)) => Ok(Reporter::TraceLens(Driver {
                interpreter: Interpreter::find(&python, self.keep_pythonpath, scratch.path())?,
            })),
            (Some(WhichReporter::Tracelens), None) => {
                bail!("--reporter tracelens needs --python VENV/bin/python, or TRACELENS_VENV in the environment")
            }
        }
    }

    /// Which reports are wanted.
    pub(super) fn mode(&self) -> Mode {
        match self.mode {
            WhichReports::Auto => Mode::Auto,
            WhichReports::Pytorch => Mode::Pytorch,
            WhichReports::Rocprof => Mode::Rocprof,
            WhichReports::Collective => Mode::Collective,
        }
    }
}

/// `$TRACELENS_VENV/bin/python3`, if it is there (facts/seed.md section 4.1).
fn python_of_venv() -> Option<PathBuf> {
    let venv = std::env::var_os("TRACELENS_VENV").filter(|venv| !venv.is_empty())?;
    Some(Path::new(&venv).join("bin").join("python3")).filter(|python| python.is_file())
}
