//! The capture manifest, format 1: who was triggered. Its description is plugins/capture-manifest/README.md, where the policy
//! reads it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::log_path::trace_file;
use super::outcome::NotedAttempt;
use super::process::{Identity, Snapshot, host_name};
use super::registration::Registered;
use super::state::read_json;
use super::target::Target;
use crate::scratch::Scratch;

/// The format's version.
const VERSION: u32 = 1;
/// Processes a file: the contract hands over no more than 64 KiB of `processes`.
const PROCESSES_A_FILE: usize = 100;
/// Attempts a file, for the same reason.
const MOST_ATTEMPTS: usize = 100;

/// One manifest: what one host's daemon triggered at one time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The format's version.
    pub tracemend_manifest: u32,
    /// The host's name.
    pub host: String,
    /// The same for all manifests and attempts of one `capture`; none in those written before there was such a thing.
    #[serde(default)]
    pub capture: Option<String>,
    /// When the request was accepted, in seconds since 1970.
    pub captured_at: f64,
    /// The attempts up to this one, the newest ones if they are many.
    #[serde(default)]
    pub attempts: Vec<NotedAttempt>,
    /// Whether the processes ran where the manifest was written: only then is anything known of them but their ids.
    pub local: bool,
    /// Those that were triggered.
    pub processes: Vec<TracedProcess>,
}

/// One triggered process. What is not known is null.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TracedProcess {
    pub pid: i64,
    #[serde(default)]
    pub ns_pids: Vec<u32>,
    pub rank: Option<u32>,
    pub local_rank: Option<u32>,
    pub world_size: Option<u32>,
    pub slurm_procid: Option<u32>,
    pub slurm_ntasks: Option<u32>,
    pub ompi_comm_world_rank: Option<u32>,
    pub ompi_comm_world_size: Option<u32>,
    pub pmi_rank: Option<u32>,
    pub pmi_size: Option<u32>,
    pub start_time: Option<f64>,
    pub has_gpu: Option<bool>,
    pub trace: String,
    /// Where Kineto writes it, absolute.
    pub trace_path: PathBuf,
    /// The process as it was when it was triggered.
    pub identity: Option<Identity>,
    /// LOCAL_WORLD_SIZE: how many ranks this host has.
    pub local_world_size: Option<u32>,
    /// KINETO_ONDEMAND_TRACE_DIR of its environment.
    pub trace_dir: Option<PathBuf>,
}

impl Manifest {
    /// Notes who was triggered at `target`: later nobody can tell.
    pub fn of(target: &Target, capture: &str, attempts: &[NotedAttempt], triggered: &[Registered]) -> Manifest {
        let local = target.address.is_local();
        let note = |process: &Registered| {
            let trace = trace_file(target.log_path.as_str(), process.pid);
            TracedProcess::noted(process.pid, &process.at, trace)
        };
        Manifest {
            tracemend_manifest: VERSION,
            host: match local {
                true => host_name(),
                false => target.address.host.clone(),
            },
            capture: Some(capture.to_owned()),
            captured_at: now(),
            attempts: attempts[attempts.len().saturating_sub(MOST_ATTEMPTS)..].to_vec(),
            local,
            processes: triggered.iter().map(note).collect(),
        }
    }

    /// Writes it into `folder` under a name that is free, and says which. A manifest of an earlier capture stays: its traces may.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for processes in self.processes.chunks(PROCESSES_A_FILE) {
            let part = Manifest {
                processes: processes.to_vec(),
                ..self.clone()
            };
            written.push(part.write_one(folder)?);
        }
        Ok(written)
    }

    fn write_one(&self, folder: &Path) -> Result<PathBuf> {
        let in_folder = || format!("cannot write the manifest into {}", folder.display());
        let text = serde_json::to_vec_pretty(self)?;
        let safe = in_a_file_name(&self.host);
        for number in 1..10_000 {
            let name = match number {
                1 => format!("tracemend-manifest-{safe}.json"),
                _ => format!("tracemend-manifest-{safe}-{number}.json"),
            };
            let path = folder.join(name);
            let (mut file, scratch) = Scratch::file_beside(&path).with_context(in_folder)?;
            std::io::Write::write_all(&mut file, &text).with_context(in_folder)?;
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o644)).with_context(in_folder)?;
            // A link to a name that is taken fails, and nothing is replaced.
            match fs::hard_link(scratch.path(), &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(_) if !path.exists() => {
                    scratch.persist(&path).with_context(in_folder)?;
                    return Ok(path);
                }
                Err(_) => {}
            }
        }
        bail!("{} holds too many manifests", folder.display())
    }
}

impl TracedProcess {
    fn noted(pid: i64, at: &Snapshot, trace_path: String) -> TracedProcess {
        TracedProcess {
            pid,
            ns_pids: at.ns_pids.clone(),
            rank: at.number("RANK"),
            local_rank: at.number("LOCAL_RANK"),
            world_size: at.number("WORLD_SIZE"),
            slurm_procid: at.number("SLURM_PROCID"),
            slurm_ntasks: at.number("SLURM_NTASKS"),
            ompi_comm_world_rank: at.number("OMPI_COMM_WORLD_RANK"),
            ompi_comm_world_size: at.number("OMPI_COMM_WORLD_SIZE"),
            pmi_rank: at.number("PMI_RANK"),
            pmi_size: at.number("PMI_SIZE"),
            start_time: at.start_time,
            has_gpu: at.has_gpu,
            trace: trace_path.rsplit('/').next().unwrap_or(&trace_path).to_owned(),
            trace_path: PathBuf::from(trace_path),
            identity: at.identity,
            local_world_size: at.number("LOCAL_WORLD_SIZE"),
            trace_dir: at.environment.get("KINETO_ONDEMAND_TRACE_DIR").map(PathBuf::from),
        }
    }
}

/// A host's name with only letters, digits, `.`, `_` and `-`.
fn in_a_file_name(host: &str) -> String {
    host.chars()
        .map(|c| match c.is_ascii_alphanumeric() || "._-".contains(c) {
            true => c,
            false => '_',
        })
        .collect()
}

/// The name of the file beside the traces that has one JSON line an attempt made on this host.
pub fn attempts_file_name() -> String {
    format!("tracemend-attempts-{}.jsonl", in_a_file_name(&host_name()))
}

/// The manifests of the newest capture of each host in `folder`. A capture that asked again for late ranks has several.
///
/// # Errors
/// When the folder cannot be read.
pub fn newest_manifests(folder: &Path) -> Result<Vec<Manifest>> {
    let mut by_host: BTreeMap<String, Vec<Manifest>> = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !(name.starts_with("tracemend-manifest-") && name.ends_with(".json")) {
            continue;
        }
        if let Ok(manifest) = read_json::<Manifest>(&entry.path()) {
            by_host.entry(manifest.host.clone()).or_default().push(manifest);
        }
    }
    let newest_of = |mut manifests: Vec<Manifest>| {
        manifests.sort_by(|a, b| a.captured_at.total_cmp(&b.captured_at));
        let newest = manifests
            .last()
            .map(|newest| (newest.capture.clone(), newest.captured_at));
        let (capture, at) = newest.unwrap_or_default();
        manifests.retain(|manifest| match &capture {
            Some(_) => manifest.capture == capture,
            None => manifest.captured_at == at,
        });
        manifests
    };
    Ok(by_host.into_values().flat_map(newest_of).collect())
}

/// Seconds since 1970.
pub fn now() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}
