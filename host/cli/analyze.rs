//! `tracemend analyze`

mod limits;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table};

use self::limits::LimitOptions;
use super::findings::describe as describe_findings;
use super::gather::{Gathered, found, gather};
use super::ranks::describe as describe_conflict;
use super::text::{count, printable};
use super::{Global, Outcome, Policies};
use crate::bytes::Verdict;
use crate::reports::builtin::Kernel;
use crate::reports::{Interpreter, Mode, Report, Reporter, Request, Row, Status, folded_ranks, plan, run};
use crate::scratch::Scratch;

#[derive(Debug, Args)]
pub struct Analyze {
    /// The run: a folder, or one trace
    #[arg(value_name = "RUN")]
    root: PathBuf,
    /// Where reports go
    #[arg(short, long, value_name = "DIR", default_value = "tracelens_output")]
    output_dir: PathBuf,
    /// Who makes the reports; by default TraceLens if --python (or TRACELENS_VENV) names one, else the embedded reporter
    #[arg(long, value_enum)]
    reporter: Option<WhichReporter>,
    /// The interpreter of the environment that TraceLens is installed in, such as VENV/bin/python
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Leave PYTHONPATH as it is for TraceLens
    #[arg(long)]
    keep_pythonpath: bool,
    /// Which reports to make
    #[arg(long, value_enum, default_value = "auto")]
    mode: WhichReports,
    /// Where the JSON summary goes, if not into the output folder
    #[arg(long, value_name = "FILE")]
    json_summary: Option<PathBuf>,
    #[command(flatten)]
    policies: Policies,
    #[command(flatten)]
    limits: LimitOptions,
    /// Print the JSON summary instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhichReporter {
    /// TraceLens, by --python or TRACELENS_VENV
    Tracelens,
    /// The embedded reporter: kernels by name, as CSV
    Builtin,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WhichReports {
    /// All
    Auto,
    /// Those on Kineto traces, the collective one included
    Pytorch,
    /// Those on rocprofv3 traces
    Rocprof,
    /// The collective ones only
    Collective,
}

/// Places of damage shown for each trace; `tracemend scan` shows more.
const PLACES: usize = 3;
/// Kernels shown of the whole run.
const TOP_KERNELS: usize = 8;

impl Analyze {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let temporary = std::env::temp_dir();
        let scratch = Scratch::folder_in(&temporary, "tracemend-")
            .with_context(|| format!("cannot write to {} (set TMPDIR to another place)", temporary.display()))?;
        // Asked first: a wrong interpreter should not cost the pass over a large run.
        let reporter = self.reporter(&scratch)?;
        let output = std::path::absolute(&self.output_dir)?;
        let gathered = gather(&self.root, Some(&output), &self.policies, global)?;
        fs::create_dir_all(&output).with_context(|| format!("cannot make {}", self.output_dir.display()))?;

        let mut out = io::stdout().lock();
        let talk = !self.json && !global.quiet;
        if talk {
            before(&mut out, &gathered, &reporter)?;
        }
        let mode = match self.mode {
            WhichReports::Auto => Mode::Auto,
            WhichReports::Pytorch => Mode::Pytorch,
            WhichReports::Rocprof => Mode::Rocprof,
            WhichReports::Collective => Mode::Collective,
        };
        let plan = plan(
            &gathered.run,
            &gathered.assignment,
            mode,
            matches!(reporter, Reporter::TraceLens(_)),
        );
        let bar = super::text::progress_bar(global.quiet, "making reports");
        bar.set_length(plan.jobs.len() as u64);
        let report = run(&Request {
            run: &gathered.run,
            plan: &plan,
            reporter: &reporter,
            mode: mode.as_str(),
            output: &output,
            json_summary: self.json_summary.as_deref(),
            limits: self.limits.limits(),
            scratch: &scratch,
            progress: &|_| bar.inc(1),
        })?;
        bar.finish_and_clear();
        if self.json {
            io::copy(&mut fs::File::open(&report.json_summary)?, &mut out)?;
        } else {
            after(&mut out, &report, &self.output_dir, talk)?;
        }
        let failed = report.rows.iter().any(|row| row.status == Status::Failure);
        Ok(Outcome::bad_news_if(failed || gathered.failed_plugins > 0))
    }

    fn reporter(&self, scratch: &Scratch) -> Result<Reporter> {
        let python = self.python.clone().or_else(python_of_venv);
        match (self.reporter, python) {
            (Some(WhichReporter::Builtin), _) | (None, None) => Ok(Reporter::BuiltIn),
            (_, Some(python)) => Ok(Reporter::TraceLens(Interpreter::find(
                &python,
                self.keep_pythonpath,
                scratch.path(),
            )?)),
            (Some(WhichReporter::Tracelens), None) => {
                bail!("--reporter tracelens needs --python VENV/bin/python, or TRACELENS_VENV in the environment")
            }
        }
    }
}

/// `$TRACELENS_VENV/bin/python3`, if it is there (facts/seed.md section 4.1).
fn python_of_venv() -> Option<PathBuf> {
    let venv = std::env::var_os("TRACELENS_VENV").filter(|venv| !venv.is_empty())?;
    Some(Path::new(&venv).join("bin").join("python3")).filter(|python| python.is_file())
}

fn before(out: &mut dyn Write, gathered: &Gathered, reporter: &Reporter) -> Result<()> {
    let run = &gathered.run;
    writeln!(out, "{}", found(run))?;
    for trace in run
        .traces
        .iter()
        .filter(|trace| trace.findings.verdict != Verdict::Clean)
    {
        describe_findings(out, &trace.path, trace.kind, &trace.findings, PLACES)?;
    }
    if gathered.assignment.traces.iter().any(|trace| trace.by.is_some()) {
        writeln!(out, "\nRanks")?;
    }
    for group in gathered
        .assignment
        .groups
        .iter()
        .filter(|group| !group.ranks.is_empty())
    {
        let mut by: Vec<&str> = group
            .ranks
            .values()
            .flatten()
            .filter_map(|&index| gathered.assignment.traces[index].by.as_deref())
            .collect();
        by.sort_unstable();
        by.dedup();
        let missing = match group.missing.as_slice() {
            [] => String::new(),
            missing => format!("; missing: {}", folded_ranks(missing)),
        };
        let ranks: Vec<u32> = group.ranks.keys().copied().collect();
        writeln!(
            out,
            "  {}: {} by {}{missing}",
            printable(&group.name),
            folded_ranks(&ranks),
            by.join(", ")
        )?;
        for conflict in &group.conflicts {
            writeln!(out, "    conflict: {}", printable(&describe_conflict(run, conflict)))?;
        }
    }
    for (index, assigned) in gathered.assignment.traces.iter().enumerate() {
        if let (Some(role), true) = (&assigned.role, assigned.by.is_some()) {
            writeln!(
                out,
                "  {}: {}, of no rank",
                printable(&run.traces[index].display_path()),
                printable(role)
            )?;
        }
    }
    match reporter {
        Reporter::BuiltIn => writeln!(
            out,
            "\nReports by the embedded reporter (TraceLens: --python VENV/bin/python)"
        )?,
        Reporter::TraceLens(interpreter) => {
            let tracelens = &interpreter.tracelens;
            let version = tracelens.distribution.as_deref().unwrap_or("version unknown");
            let python = printable(&interpreter.python.to_string_lossy());
            writeln!(
                out,
                "\nReports by TraceLens ({version}, {}, Python {} at {python})",
                printable(&tracelens.path),
                interpreter.version
            )?;
        }
    }
    out.flush()?;
    Ok(())
}

fn after(out: &mut dyn Write, report: &Report, output: &Path, talk: bool) -> Result<()> {
    if talk && !report.rows.is_empty() {
        let mut table = Table::new();
        table
            .load_style(comfy_table::presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        for row in &report.rows {
            table.add_row(result(row));
        }
        writeln!(out, "{}", table.trim_fmt())?;
    }
    if talk && !report.kernels.is_empty() {
        kernels(out, &report.kernels)?;
    }
    let of = |status| report.rows.iter().filter(|row| row.status == status).count();
    let made = count(of(Status::Success), "report");
    let (failed, skipped) = (of(Status::Failure), of(Status::Skipped));
    let mended = report
        .rows
        .iter()
        .filter(|row| row.mended && row.status == Status::Success)
        .count();
    write!(out, "{made} made")?;
    if mended > 0 {
        write!(out, " ({mended} from mended copies)")?;
    }
    for (number, word) in [(failed, "failed"), (skipped, "skipped")] {
        if number > 0 {
            write!(out, ", {number} {word}")?;
        }
    }
    writeln!(out, "; all in {}", printable(&output.to_string_lossy()))?;
    Ok(())
}

fn result(row: &Row) -> [String; 3] {
    let what = match row.detail.as_str() {
        "" => format!(
            "{:.1} s{}",
            row.seconds,
            if row.mended { ", from a mended copy" } else { "" }
        ),
        detail => detail.to_owned(),
    };
    // A collective row's label does not say of which group it is.
    let of_group = row.rank.is_none() && row.trace_file.ends_with(" traces");
    let label = match of_group {
        true => format!("{} of {}", row.trace_file, row.group),
        false => row.trace_file.clone(),
    };
    [
        row.status.as_str().to_owned(),
        printable(&label),
        super::one_line(&what),
    ]
}

fn kernels(out: &mut dyn Write, kernels: &[Kernel]) -> Result<()> {
    writeln!(out, "\nKernels of the whole run")?;
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["share", "total ms", "count", "mean us", "kernel"]);
    for kernel in kernels.iter().take(TOP_KERNELS) {
        let name: String = kernel.name.chars().take(70).collect();
        table.add_row([
            format!("{:.1} %", kernel.share * 100.0),
            format!("{:.3}", kernel.total_us / 1000.0),
            kernel.count.to_string(),
            format!("{:.1}", kernel.mean_us),
            printable(&name),
        ]);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    if kernels.len() > TOP_KERNELS {
        writeln!(out, "and {} more", kernels.len() - TOP_KERNELS)?;
    }
    writeln!(out)?;
    Ok(())
}
