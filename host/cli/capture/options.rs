//! What a capture is, from options and from the variables that the scripts before tracemend read (facts/seed.md section 8.2).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use super::hosts;
use crate::capture::{Dyno, LogPath, Patience, Request, Target, Transport, Window, parse_job_id, parse_pids};
use crate::scratch::Scratch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Via {
    /// The dyno program
    Dyno,
    /// The daemon's own protocol
    Rpc,
}

/// Which capture is asked for, and how patiently. Each option's variable is its default.
#[derive(Debug, Clone, Args)]
pub struct CaptureOptions {
    /// Where the traces and the manifest go [TORCH_PROFILE_OUTPUT_DIR, else torch_profiler_output]
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// The traces' name; Kineto puts the process id before .json [TORCH_PROFILE_LOG_FILE, else libkineto_trace.json]
    #[arg(long, value_name = "NAME.json")]
    pub log_file: Option<String>,
    /// Where Kineto writes, if not into the output folder; the traces are gathered from there [TORCH_PROFILE_KINETO_DIR]
    #[arg(long, value_name = "FOLDER")]
    pub kineto_dir: Option<PathBuf>,
    /// How to ask
    #[arg(long, value_enum, default_value = "dyno")]
    pub via: Via,
    /// The dyno program
    #[arg(long, value_name = "FILE", default_value = "dyno")]
    pub dyno: PathBuf,
    /// An interpreter plugin to ask instead of the built-in one
    #[arg(long, value_name = "FILE.wasm")]
    pub interpreter: Option<PathBuf>,
    /// The daemon's port [DYNOLOG_PORT, else 1778]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// Daemons to ask at once: HOST[:PORT],... or @FILE with one a line, or `slurm` for the nodes of SLURM_JOB_NODELIST
    #[arg(long, value_name = "HOSTS")]
    pub hosts: Option<String>,
    /// The job whose processes are meant [TORCH_PROFILE_JOB_ID, else SLURM_JOB_ID, else 0]
    #[arg(long, value_name = "N")]
    pub job_id: Option<String>,
    /// Only these processes and their children
    #[arg(long, value_name = "PID,...")]
    pub pids: Option<String>,
    /// How many processes to trace on a host at most [TORCH_PROFILE_PROCESS_LIMIT, else 64]
    #[arg(long, value_name = "N")]
    pub process_limit: Option<String>,
    /// Training iterations to trace; 0: go by time [TORCH_PROFILE_ITERATIONS, else 5]
    #[arg(long, value_name = "N")]
    pub iterations: Option<String>,
    /// Begin at an iteration that this divides
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub iteration_roundup: u32,
    /// Milliseconds to trace where it goes by time [TORCH_PROFILE_DURATION_MS, else 500]
    #[arg(long, value_name = "MS")]
    pub duration_ms: Option<String>,
    /// Input shapes [TORCH_PROFILE_RECORD_SHAPES, else 1]
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    pub record_shapes: Option<String>,
    /// Python stacks [TORCH_PROFILE_WITH_STACKS, else 1]
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    pub with_stacks: Option<String>,
    /// Modules [TORCH_PROFILE_WITH_MODULES, else 1]
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    pub with_modules: Option<String>,
    /// Flops [TORCH_PROFILE_WITH_FLOPS, else 0]
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    pub with_flops: Option<String>,
    /// Memory, by time only [TORCH_PROFILE_PROFILE_MEMORY, else 0]
    #[arg(long, value_name = "0|1", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    pub profile_memory: Option<String>,
    /// Seconds before the first request [TORCH_PROFILE_WARMUP_S, else 60]
    #[arg(long, value_name = "SECONDS")]
    pub warmup: Option<String>,
    /// Seconds for which nobody new may register before those that have are asked for without the rest of their host's ranks; 0: at once
    /// [TORCH_PROFILE_STABLE_S, else 5]
    #[arg(long, value_name = "SECONDS")]
    pub stable: Option<String>,
    /// Ranks of each host: fewer are not all, whatever their environment says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub expect: Option<u32>,
    /// Seconds between requests [TORCH_PROFILE_RETRY_INTERVAL_S, else 15]
    #[arg(long, value_name = "SECONDS")]
    pub retry_interval: Option<String>,
    /// Requests at most [TORCH_PROFILE_MAX_ATTEMPTS, else 40]
    #[arg(long, value_name = "N")]
    pub max_attempts: Option<String>,
    /// No request starts later than this after the first
    #[arg(long, value_name = "SECONDS")]
    pub at_most: Option<String>,
    /// Requests without an answer in a row after which a daemon is given up
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub unreachable_attempts: u32,
    /// How long one request may take; after that it is left alone, since ending it could end the daemon
    #[arg(long, value_name = "SECONDS", default_value = "120")]
    pub request_timeout: String,
    /// From the request to the common start, where several hosts trace by time
    #[arg(long, value_name = "SECONDS", default_value = "15")]
    pub start_delay: String,
}

/// The daemon that a capture starts for itself.
#[derive(Debug, Clone, Args)]
pub struct DaemonOptions {
    /// The dynolog program
    #[arg(long, value_name = "FILE", default_value = "dynolog")]
    pub dynolog: PathBuf,
    /// How long the daemon may take until it answers
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = seconds)]
    pub ready_within: Duration,
}

/// A variable that is set to something.
pub fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var_os(name).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value.trim().to_owned()).filter(|value| !value.is_empty())),
        Some(Err(value)) => bail!("{name} is {value:?}, which is not UTF-8"),
    }
}

/// The option, else the variable, else the default; a value that `parse` does not take is refused under the name it came by.
fn setting<T>(
    (option, name): (&Option<String>, &str),
    variable_name: &str,
    default: T,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<T> {
    let refused = |name: &str, value: &str, why: String| anyhow!("{name} cannot be {value:?}: {why}");
    if let Some(value) = option {
        return parse(value).map_err(|why| refused(name, value, why));
    }
    match variable(variable_name)? {
        Some(value) => parse(&value).map_err(|why| refused(variable_name, &value, why)),
        None => Ok(default),
    }
}

fn whole(range: std::ops::RangeInclusive<i32>) -> impl Fn(&str) -> Result<i32, String> {
    move |text| {
        let number = text.parse::<i32>().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("a whole number from {} to {} is wanted", range.start(), range.end()))
    }
}

pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e7).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("seconds, 0 or more, are wanted".to_owned()),
    }
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err("0 or 1 is wanted".to_owned()),
    }
}

/// The port of option or variable.
pub fn port(option: Option<u16>) -> Result<Option<u16>> {
    match option {
        Some(0) => bail!("--port cannot be 0"),
        Some(port) => Ok(Some(port)),
        None => {
            let port = setting((&None, ""), "DYNOLOG_PORT", 0, whole(1..=65_535))?;
            Ok(u16::try_from(port).ok().filter(|&port| port > 0))
        }
    }
}

pub const DEFAULT_PORT: u16 = 1778;

/// What is asked of whom.
pub struct Plan {
    pub request: Request,
    pub patience: Patience,
    pub targets: Vec<Target>,
    pub output: PathBuf,
    /// A folder made for Kineto, which goes unless a request is accepted.
    pub kineto_scratch: Option<Scratch>,
    /// What was put right, and what to know.
    pub notes: Vec<String>,
}

impl CaptureOptions {
    /// The run's folder, absolute, made if it is not there.
    pub fn output_folder(&self) -> Result<PathBuf> {
        let folder = match &self.output {
            Some(folder) => folder.clone(),
            None => variable("TORCH_PROFILE_OUTPUT_DIR")?
                .unwrap_or_else(|| "torch_profiler_output".into())
                .into(),
        };
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        folder
            .canonicalize()
            .with_context(|| format!("cannot read {}", folder.display()))
    }

    /// Everything checked before anything is asked. `allowed` is the KINETO_ONDEMAND_TRACE_DIR that the job has, if that is known.
    pub fn plan(&self, allowed: Option<&Path>) -> Result<Plan> {
        let mut notes = Vec::new();
        let addresses = hosts::addresses(self.hosts.as_deref(), port(self.port)?.unwrap_or(DEFAULT_PORT))?;
        let several = addresses.len() > 1;
        let request = self.request(addresses.len(), &mut notes)?;
        let patience = self.patience(addresses.len())?;
        let output = self.output_folder()?;
        let (kineto_dir, kineto_scratch) = self.kineto_folder(&output, allowed, &mut notes)?;
        let name = setting(
            (&self.log_file, "--log-file"),
            "TORCH_PROFILE_LOG_FILE",
            "libkineto_trace.json".to_owned(),
            |name| Ok(name.to_owned()),
        )?;
        let mut places = Vec::new();
        for address in addresses {
            // Process ids of different hosts may be equal.
            let name = match (several, name.split_once('.')) {
                (false, _) | (_, None) => name.clone(),
                (true, Some((stem, rest))) => format!(
                    "{stem}_{}.{rest}",
                    address.host.replace([':', '%'], "-").replace(".json", "-json")
                ),
            };
            let log_path = LogPath::new(&kineto_dir, &name).map_err(|why| anyhow!(why))?;
            places.push((address, log_path));
        }
        let transport = match self.via {
            Via::Rpc => Transport::Rpc,
            Via::Dyno => Transport::Dyno(Dyno::find(self.dyno.clone())?),
        };
        let targets: Vec<Target> = places
            .into_iter()
            .map(|(address, log_path)| Target {
                address,
                transport: transport.clone(),
                log_path,
            })
            .collect();
        if let Some(missing) = targets
            .first()
            .map(|target| target.missing_flags(&request))
            .filter(|flags| !flags.is_empty())
        {
            notes.push(format!(
                "this dyno does not know {}, and is asked without",
                missing.join(", ")
            ));
        }
        Ok(Plan {
            request,
            patience,
            targets,
            output,
            kineto_scratch,
            notes,
        })
    }

    fn request(&self, hosts: usize, notes: &mut Vec<String>) -> Result<Request> {
        let iterations_given = self.iterations.is_some();
        let iterations = setting(
            (&self.iterations, "--iterations"),
            "TORCH_PROFILE_ITERATIONS",
            5,
            whole(-1..=1_000_000),
        )?;
        let duration = setting(
            (&self.duration_ms, "--duration-ms"),
            "TORCH_PROFILE_DURATION_MS",
            500,
            whole(1..=86_400_000),
        )?;
        let by_time =
            iterations < 1 || self.duration_ms.is_some() && !iterations_given || hosts > 1 && !iterations_given;
        if by_time && iterations >= 1 && hosts > 1 {
            notes.push(
                "several hosts are traced by time, from one moment on; --iterations N goes by iterations".to_owned(),
            );
        }
        let window = match by_time {
            true => Window::Duration(duration.unsigned_abs()),
            false => Window::Iterations {
                count: iterations.unsigned_abs(),
                roundup: self.iteration_roundup,
            },
        };
        let flag =
            |option: &Option<String>, name, variable, default| setting((option, name), variable, default, switch);
        let profile_memory = flag(
            &self.profile_memory,
            "--profile-memory",
            "TORCH_PROFILE_PROFILE_MEMORY",
            false,
        )?;
        if profile_memory && !by_time {
            bail!(
                "memory is profiled by time only: give --duration-ms, or TORCH_PROFILE_ITERATIONS=0, or leave the memory out"
            );
        }
        if profile_memory {
            notes.push("with memory, newer PyTorch writes /tmp/memory_snapshot_PID.pickle and no trace".to_owned());
        }
        let slurm = variable("SLURM_JOB_ID")?;
        let job_id = match (&self.job_id, variable("TORCH_PROFILE_JOB_ID")?, slurm) {
            (None, None, Some(id)) => parse_job_id(&id).map_err(|why| anyhow!("SLURM_JOB_ID: {why}"))?,
            _ => setting((&self.job_id, "--job-id"), "TORCH_PROFILE_JOB_ID", 0, parse_job_id)?,
        };
        Ok(Request {
            job_id,
            pids: self
                .pids
                .as_deref()
                .map_or(Ok(Vec::new()), parse_pids)
                .map_err(|why| anyhow!("--pids: {why}"))?,
            process_limit: setting(
                (&self.process_limit, "--process-limit"),
                "TORCH_PROFILE_PROCESS_LIMIT",
                64,
                whole(1..=i32::MAX),
            )?,
            window,
            start_time_ms: 0,
            record_shapes: flag(
                &self.record_shapes,
                "--record-shapes",
                "TORCH_PROFILE_RECORD_SHAPES",
                true,
            )?,
            with_stacks: flag(&self.with_stacks, "--with-stacks", "TORCH_PROFILE_WITH_STACKS", true)?,
            with_modules: flag(&self.with_modules, "--with-modules", "TORCH_PROFILE_WITH_MODULES", true)?,
            with_flops: flag(&self.with_flops, "--with-flops", "TORCH_PROFILE_WITH_FLOPS", false)?,
            profile_memory,
        })
    }

    fn patience(&self, hosts: usize) -> Result<Patience> {
        let plain = |name, text: &str| seconds(text).map_err(|why| anyhow!("{name} cannot be {text:?}: {why}"));
        let attempts = setting(
            (&self.max_attempts, "--max-attempts"),
            "TORCH_PROFILE_MAX_ATTEMPTS",
            40,
            whole(1..=1_000_000),
        )?;
        let start_delay = plain("--start-delay", &self.start_delay)?;
        if hosts > 1 && start_delay < Duration::from_secs(11) {
            bail!(
                "--start-delay must be 11 s or more: a process fetches the request within 5 s, and warms up for 5 s after that"
            );
        }
        Ok(Patience {
            warmup: setting(
                (&self.warmup, "--warmup"),
                "TORCH_PROFILE_WARMUP_S",
                Duration::from_secs(60),
                seconds,
            )?,
            stable: setting(
                (&self.stable, "--stable"),
                "TORCH_PROFILE_STABLE_S",
                Duration::from_secs(5),
                seconds,
            )?,
            expect: self.expect,
            interval: setting(
                (&self.retry_interval, "--retry-interval"),
                "TORCH_PROFILE_RETRY_INTERVAL_S",
                Duration::from_secs(15),
                seconds,
            )?,
            attempts: attempts.unsigned_abs(),
            at_most: self
                .at_most
                .as_deref()
                .map(|text| plain("--at-most", text))
                .transpose()?,
            unreachable: self.unreachable_attempts,
            request_timeout: plain("--request-timeout", &self.request_timeout)?,
            start_delay: (hosts > 1).then_some(start_delay),
        })
    }

    /// Where Kineto is asked to write: the folder given, else the output folder if Kineto writes there, else a new one below /tmp.
    fn kineto_folder(
        &self,
        output: &Path,
        allowed: Option<&Path>,
        notes: &mut Vec<String>,
    ) -> Result<(PathBuf, Option<Scratch>)> {
        let from_environment = variable("KINETO_ONDEMAND_TRACE_DIR")?.map(PathBuf::from);
        let allowed = allowed
            .map(Path::to_owned)
            .or(from_environment)
            .unwrap_or_else(|| "/tmp".into());
        let probe = |folder: &Path| LogPath::new(folder, "probe.json").map(|path| path.is_allowed(Some(&allowed)));
        let given = match &self.kineto_dir {
            Some(folder) => Some(folder.clone()),
            None => variable("TORCH_PROFILE_KINETO_DIR")?.map(PathBuf::from),
        };
        if let Some(folder) = given {
            if !probe(&folder).map_err(|why| anyhow!(why))? {
                bail!(
                    "Kineto only writes below {}, and would redirect the traces from {} to /tmp: choose a folder there, or set \
                     KINETO_ONDEMAND_TRACE_DIR for the job and here",
                    allowed.display(),
                    folder.display()
                );
            }
            std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            return Ok((folder, None));
        }
        match probe(output) {
            Ok(true) => Ok((output.to_owned(), None)),
            reason => {
                let scratch = Scratch::folder_in(&allowed, "tracemend-")
                    .with_context(|| format!("cannot make a folder in {}", allowed.display()))?;
                // tempfile's random names may hold no more than letters and digits, so this is a path that Kineto takes.
                let folder = scratch.path().to_owned();
                let why = reason
                    .err()
                    .unwrap_or_else(|| format!("Kineto only writes below {}", allowed.display()));
                let (folder_shown, output) = (folder.display(), output.display());
                notes.push(format!("{why}: the traces are asked for in {folder_shown}, and `tracemend capture wait` brings them to {output}"));
                Ok((folder, Some(scratch)))
            }
        }
    }
}
