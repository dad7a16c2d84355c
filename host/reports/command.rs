//! The command lines of TraceLens's generators. Each gets only flags that it knows: an unknown one costs the whole report
//! (facts/tracelens.md section 1).

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::driver::{Driver, GPU_ARCH};
use super::generator::Generator;
use super::job::{Job, Work};
use super::staging::Staging;
use crate::scratch::Scratch;
use crate::traces::XPLANE_ENDING;

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
    let Work::TraceLens(generator) = job.work else {
        bail!("TraceLens has no report for {:?}", job.work)
    };
    let mut staged = None;
    let input = match (generator, &job.traces[..]) {
        (Generator::Collective, traces) => {
            let links = staged.insert(staging.link_farm(traces)?).path();
            collective_input(driver, links, traces.len(), workers, job.gpus_per_node)
        }
        (Generator::Jax, [index]) => {
            let folder = staged.insert(Scratch::folder_in(scratch, "xplane-")?).path();
            vec![
                generator.input_flag().into(),
                link_xplane(&staging.original(*index), folder)?.into(),
            ]
        }
        (_, [index]) => vec![generator.input_flag().into(), staging.path_of(*index)?.into()],
        _ => bail!("a report of {} reads one trace", generator.script()),
    };
    Ok(Prepared {
        invocations: invocations(driver, generator, scratch, &input, base),
        _staged: staged,
    })
}

/// A link to a JAX profile in a folder of its own: xprof writes what it makes of a profile beside it, under whatever name it was
/// opened, and TraceLens wants one certain ending.
fn link_xplane(original: &Path, folder: &Path) -> Result<PathBuf> {
    let link = folder.join(format!("trace{XPLANE_ENDING}"));
    symlink(original, &link).with_context(|| format!("cannot make a link in {}", folder.display()))?;
    Ok(link)
}

/// A folder of links named `rank<i>_trace.json[.gz]`, `i` from 0 to `world_size` - 1.
fn collective_input(
    driver: &Driver,
    links: &Path,
    world_size: usize,
    workers: usize,
    gpus_per_node: Option<usize>,
) -> Vec<OsString> {
    let mut glob = glob_escape(links).into_os_string();
    glob.push("/rank*_trace.json*");
    let mut words: Vec<OsString> = vec![Generator::Collective.input_flag().into(), glob];
    words.extend(["--rank_regex", r"^rank(?P<rank>\d+)_trace\.json"].map(OsString::from));
    words.extend(["--world_size".into(), world_size.to_string().into()]);
    let knows = |flag| driver.knows(Generator::Collective, flag);
    if let Some(gpus) = gpus_per_node.filter(|_| knows("--gpus_per_node")) {
        words.extend(["--gpus_per_node".into(), gpus.to_string().into()]);
    }
    if workers > 1 && knows("--use_multiprocessing") && knows("--max_workers") {
        words.extend(["--use_multiprocessing", "--max_workers"].map(OsString::from));
        words.push(workers.to_string().into());
    }
    words
}

/// The runs of `generator` that it takes to get all its outputs.
fn invocations(
    driver: &Driver,
    generator: Generator,
    scratch: &Path,
    input: &[OsString],
    base: &Path,
) -> Vec<Invocation> {
    let extra = driver.settings.extra.words_for(generator, driver.flags(generator));
    let runs = outputs(generator).iter().map(|outputs| {
        let known = outputs.iter().filter(|(flag, _)| driver.knows(generator, flag));
        known.collect::<Vec<_>>()
    });
    runs.filter(|outputs| !outputs.is_empty())
        .map(|outputs| {
            let mut command = driver.interpreter.command(generator, scratch);
            command.args(input);
            let mut promised = Vec::new();
            for (flag, ending) in outputs {
                let output = with(base, ending);
                command.arg(flag).arg(&output);
                promised.push(output);
            }
            command.args(options(driver, generator)).args(&extra);
            Invocation { command, promised }
        })
        .collect()
}

const XLSX: (&str, &str) = ("--output_xlsx_path", ".xlsx");
const CSVS: (&str, &str) = ("--output_csvs_dir", "_csv");
const MARKDOWN: (&str, &str) = ("--output_md_path", ".md");

/// The outputs of `generator` by run, as flag and ending. All but two drop the workbook without a word where they are given a
/// folder for CSVs, so they run twice (facts/tracelens.md section 1).
fn outputs(generator: Generator) -> &'static [&'static [(&'static str, &'static str)]] {
    match generator {
        Generator::Pytorch | Generator::Collective => &[&[XLSX, CSVS]],
        Generator::HipActivity => &[&[CSVS, MARKDOWN], &[XLSX]],
        Generator::Rocprof | Generator::HipApi | Generator::MemoryCopy | Generator::Jax => &[&[CSVS], &[XLSX]],
        Generator::Compare => &[],
    }
}

/// The options of `generator` besides its input and outputs, as far as it knows them.
fn options(driver: &Driver, generator: Generator) -> Vec<OsString> {
    let settings = &driver.settings;
    let with_value = |flag: &str, value: Option<OsString>| value.map(|value| vec![flag.into(), value]);
    let alone = |flag: &str| Some(vec![OsString::from(flag)]);
    let wanted = match generator {
        Generator::Pytorch => vec![
            alone("--enable_kernel_summary"),
            alone("--short_kernel_study").filter(|_| settings.short_kernel_study),
            with_value(GPU_ARCH, settings.gpu_arch.clone().map(Into::into)),
        ],
        Generator::Rocprof => vec![alone("--kernel_details"), alone("--short_kernel_study")],
        // The trace is JSON already; with this TraceLens has no reason ever to fetch one.
        Generator::HipActivity | Generator::HipApi | Generator::MemoryCopy => {
            vec![with_value("--traceconv", settings.traceconv.clone().map(Into::into))]
        }
        Generator::Jax => vec![with_value(GPU_ARCH, settings.gpu_arch.clone().map(Into::into))],
        Generator::Collective | Generator::Compare => Vec::new(),
    };
    let wanted = wanted.into_iter().flatten();
    wanted
        .filter(|words| words[0].to_str().is_some_and(|flag| driver.knows(generator, flag)))
        .flatten()
        .collect()
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
    OsString::from_vec(escaped).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_folder_with_brackets_stays_one_folder() {
        assert_eq!(glob_escape(Path::new("/tmp/a[1]*")), Path::new("/tmp/a[[]1][*]"));
    }
}
