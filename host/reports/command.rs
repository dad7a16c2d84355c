//! The command lines of TraceLens's generators. Each gets only flags that it knows: an unknown one costs the whole report
//! (facts/tracelens.md section 1).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::generator::Generator;
use super::interpreter::Interpreter;
use super::job::{Job, Work};
use super::staging::Staging;
use crate::scratch::Scratch;

/// TraceLens in an interpreter's environment, and how it is to be used.
#[derive(Debug, Clone)]
pub struct Driver {
    /// The interpreter.
    pub interpreter: Interpreter,
}

/// One run of a generator and the outputs that it promises.
pub struct Invocation {
    /// The command, isolated, without its output redirected.
    pub command: Command,
    /// Files, and folders of CSV files, that must be there afterwards.
    pub promised: Vec<PathBuf>,
}

/// The runs of a generator that one job takes, and what they read.
pub struct Prepared {
    /// The runs, in order.
    pub invocations: Vec<Invocation>,
    _staged: Option<Scratch>,
}

/// Stages the traces of `job` and makes its command lines; outputs begin with the path `base`. `workers` bounds how many traces
/// a collective report has in memory at once.
///
/// # Errors
/// When a trace cannot be staged, or TraceLens has no report for the job.
pub fn prepare(
    driver: &Driver,
    scratch: &Path,
    staging: &Staging,
    job: &Job,
    workers: usize,
    base: &Path,
) -> Result<Prepared> {
    let mut staged = None;
    let invocations = match (&job.work, &job.traces[..]) {
        (Work::TraceLens(Generator::Pytorch), [index]) => pytorch(driver, scratch, &staging.path_of(*index)?, base),
        (Work::TraceLens(Generator::Rocprof), [index]) => rocprof(driver, scratch, &staging.path_of(*index)?, base),
        (Work::TraceLens(Generator::Collective), traces) => {
            let links = staged.insert(staging.link_farm(traces)?).path();
            collective(driver, scratch, links, traces.len(), workers, base)
        }
        (work, _) => bail!("TraceLens has no report for {work:?}"),
    };
    Ok(Prepared {
        invocations,
        _staged: staged,
    })
}

/// The report on one Kineto trace: workbook and CSVs in one run.
fn pytorch(driver: &Driver, scratch: &Path, trace: &Path, base: &Path) -> Vec<Invocation> {
    let (workbook, csvs) = (with(base, ".xlsx"), with(base, "_csv"));
    let mut command = driver.interpreter.command(Generator::Pytorch, scratch);
    command.arg("--profile_json_path").arg(trace);
    command
        .arg("--output_xlsx_path")
        .arg(&workbook)
        .arg("--output_csvs_dir")
        .arg(&csvs);
    command.arg("--enable_kernel_summary");
    vec![Invocation {
        command,
        promised: vec![workbook, csvs],
    }]
}

/// The report on one rocprofv3 trace. A CSV folder makes TraceLens drop the workbook without a word, so it runs twice.
fn rocprof(driver: &Driver, scratch: &Path, trace: &Path, base: &Path) -> Vec<Invocation> {
    [("--output_csvs_dir", "_csv"), ("--output_xlsx_path", ".xlsx")]
        .map(|(flag, ending)| {
            let output = with(base, ending);
            let mut command = driver.interpreter.command(Generator::Rocprof, scratch);
            command.arg("--profile_json_path").arg(trace).arg(flag).arg(&output);
            command.args(["--kernel_details", "--short_kernel_study"]);
            Invocation {
                command,
                promised: vec![output],
            }
        })
        .into()
}

/// The collective report on a folder of links named `rank<i>_trace.json[.gz]`, `i` from 0 to `world_size` - 1. `workers` bounds how
/// many traces are in memory at once.
fn collective(
    driver: &Driver,
    scratch: &Path,
    links: &Path,
    world_size: usize,
    workers: usize,
    base: &Path,
) -> Vec<Invocation> {
    let (workbook, csvs) = (with(base, ".xlsx"), with(base, "_csv"));
    let mut glob = glob_escape(links).into_os_string();
    glob.push("/rank*_trace.json*");
    let mut command = driver.interpreter.command(Generator::Collective, scratch);
    command
        .arg("--trace_glob")
        .arg(glob)
        .args(["--rank_regex", r"^rank(?P<rank>\d+)_trace\.json"]);
    command.arg("--world_size").arg(world_size.to_string());
    command
        .arg("--output_xlsx_path")
        .arg(&workbook)
        .arg("--output_csvs_dir")
        .arg(&csvs);
    if workers > 1 {
        command
            .arg("--use_multiprocessing")
            .arg("--max_workers")
            .arg(workers.to_string());
    }
    vec![Invocation {
        command,
        promised: vec![workbook, csvs],
    }]
}

fn with(base: &Path, ending: &str) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// `path` as a pattern of Python's glob that matches only it: `*`, `?` and `[` stand in brackets.
fn glob_escape(path: &Path) -> PathBuf {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut escaped = Vec::new();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'*' | b'?' | b'[' => escaped.extend([b'[', byte, b']']),
            _ => escaped.push(byte),
        }
    }
    std::ffi::OsString::from_vec(escaped).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_with_brackets_stays_one_folder() {
        assert_eq!(glob_escape(Path::new("/tmp/a[1]*")), Path::new("/tmp/a[[]1][*]"));
    }
}
