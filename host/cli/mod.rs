//! The commands: arguments in, text or JSON out.

mod analyze;
mod capture;
mod checks;
mod clusters;
mod compare;
mod completions;
mod doctor;
mod explain;
mod findings;
mod gather;
mod interpret;
mod merge;
mod plugin;
mod ranks;
mod repair;
mod restore;
mod scan;
mod serve;
mod show;
mod site;
mod text;
mod tracelens;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::plugins::{Cache, Level, Limits, PluginHost};
use crate::scratch::clean_up_on_signals;

pub use text::one_line;

/// Makes every GPU trace of a run survive the way from capture to report. Original files are never changed.
#[derive(Debug, Parser)]
#[command(
    name = "tracemend",
    version,
    propagate_version = true,
    after_help = "Exit codes: 0 done; 1 done, with bad news (damage found, a trace refused, a report or a plugin failed, nothing captured); 2 could not run."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

/// What every command understands.
#[derive(Debug, Args)]
struct Global {
    /// Say no more than the result and errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Show what plugins log, and how they failed in detail
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// The cluster whose plugins, settings and limits are used, instead of the one that this host's name tells
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    cluster: Option<String>,
    /// The file that describes clusters, instead of the first tracemend.toml found; /dev/null for none
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    config: Option<PathBuf>,
    /// End a plugin that computes longer than this in one call (default: 5)
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds, hide_short_help = true)]
    plugin_timeout: Option<f64>,
    /// End a plugin that wants more memory than this (default: 256)
    #[arg(long, global = true, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4096), hide_short_help = true)]
    plugin_memory: Option<u32>,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("seconds, more than 0 and at most 86400, are wanted".to_owned()),
    }
}

fn setting(text: &str) -> Result<(String, String, String), String> {
    let parts = text
        .split_once('=')
        .and_then(|(name, value)| Some((name.split_once('.')?, value)));
    match parts {
        Some(((plugin, setting), value)) if !plugin.is_empty() && !setting.is_empty() => {
            Ok((plugin.to_owned(), setting.to_owned(), value.to_owned()))
        }
        _ => Err("PLUGIN.SETTING=VALUE is wanted, for example gpu-slot.gpus-per-node=8".to_owned()),
    }
}

impl Global {
    /// A host with the built-in limits, whatever the cluster.
    fn plugin_host(&self) -> Result<PluginHost> {
        self.plugin_host_with(Limits::default())
    }

    /// A host with `limits`, except where the command line has its own.
    fn plugin_host_with(&self, mut limits: Limits) -> Result<PluginHost> {
        if let Some(seconds) = self.plugin_timeout {
            limits.time = Duration::from_secs_f64(seconds);
            limits.run_time = limits.run_time.max(limits.time);
        }
        if let Some(mib) = self.plugin_memory {
            limits.memory = (mib as usize) << 20;
        }
        let verbose = self.verbose;
        let log = move |plugin: &str, level: Level, message: &str| {
            if verbose || level == Level::Warn {
                eprintln!("tracemend: plugin {plugin}: {}", text::printable(message));
            }
        };
        PluginHost::new(Cache::of_user(), limits, Box::new(log))
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say which traces are damaged, where, and what to do about it
    Scan(scan::Scan),
    /// Write a mended copy of a trace
    Repair(repair::Repair),
    /// Make the original again from a mended copy and its log
    Restore(restore::Restore),
    /// Say whose trace is whose
    Ranks(ranks::Ranks),
    /// Make reports of a run: mend, rank, report
    Analyze(Box<analyze::Analyze>),
    /// Compare reports of TraceLens
    Compare(compare::Compare),
    /// Open the page that `analyze` wrote, or serve it
    Show(show::Show),
    /// Put the summaries of shards together (analyze --shard)
    Merge(merge::Merge),
    /// Ask dynolog for a capture, understand the answer, get every file
    #[command(subcommand)]
    Capture(Box<capture::CaptureCommand>),
    /// Say what recorded answers of dyno mean
    Interpret(interpret::Interpret),
    /// Say what of the programs and places that tracemend needs is there, and what to do about the rest
    Doctor(Box<doctor::Doctor>),
    /// Print a script that completes commands and options in a shell
    Completions(completions::Completions),
    /// Look at plugins
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Show the clusters of the configuration, which one is used and why, and what is wrong with each
    Clusters(clusters::Clusters),
}

/// How a command that could run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1: it ran, and there is bad news.
    BadNews,
    /// The exit code of a command that was run.
    Code(u8),
}

impl Outcome {
    fn bad_news_if(bad: bool) -> Self {
        if bad { Outcome::BadNews } else { Outcome::Done }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::BadNews => ExitCode::from(1),
            Outcome::Code(code) => ExitCode::from(code),
        }
    }
}

/// Runs one command.
///
/// # Errors
/// When it could not run: exit code 2. A reader that closed standard output early is no error.
pub fn run(cli: Cli) -> Result<Outcome> {
    if !matches!(&cli.command, Command::Capture(command) if command.handles_signals()) {
        clean_up_on_signals()?;
    }
    let global = &cli.global;
    let outcome = match cli.command {
        Command::Scan(command) => command.run(global),
        Command::Repair(command) => command.run(global),
        Command::Restore(command) => command.run(global),
        Command::Ranks(command) => command.run(global),
        Command::Analyze(command) => command.run(global),
        Command::Compare(command) => command.run(global),
        Command::Show(command) => command.run(global),
        Command::Merge(command) => command.run(global),
        Command::Capture(command) => command.run(global),
        Command::Interpret(command) => command.run(global),
        Command::Doctor(command) => command.run(global),
        Command::Completions(command) => command.run(),
        Command::Plugin(command) => command.run(global),
        Command::Clusters(command) => command.run(global),
    };
    match outcome {
        Err(error) if is_closed_pipe(&error) => Ok(Outcome::Done),
        outcome => outcome,
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// The naming policies of a run.
#[derive(Debug, Args)]
struct Policies {
    /// A naming plugin, asked after what the content proves and before what the name suggests; may be given several times
    #[arg(long = "plugin", value_name = "FILE.wasm")]
    plugins: Vec<PathBuf>,
    /// Your last word: a CSV of path pattern, rank (or - for none), and world size if known
    #[arg(long, value_name = "FILE.csv")]
    map: Option<PathBuf>,
    /// Where nothing else tells, take the only number that differs between the names of a folder, if it counts 0, 1, 2 ...
    #[arg(long)]
    by_elimination: bool,
    /// A plugin's setting; may be given several times
    #[arg(long = "set", value_name = "PLUGIN.SETTING=VALUE", value_parser = setting)]
    settings: Vec<(String, String, String)>,
    /// How many ranks the job has, where the traces do not say or are wrong; 0 is not known
    #[arg(long, value_name = "N")]
    world_size: Option<u32>,
}
