//! The capture manifest, format 1: who was triggered. Its description is plugins/capture-manifest/README.md, where the policy
//! reads it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::log_path::trace_file;
use super::process::{Identity, Snapshot, host_name};
use super::state::read_json;
use super::target::Target;
use crate::scratch::Scratch;

/// The format's version.
const VERSION: u32 = 1;
/// Processes a file: the contract hands over no more than 64 KiB of `processes`.
const PROCESSES_A_FILE: usize = 100;

/// One manifest: what one host's daemon triggered at one time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// The format's version.
    pub tracemend_manifest: u32,
    /// The host's name.
    pub host: String,
    /// When the request was accepted, in seconds since 1970.
    pub captured_at: f64,
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
    /// Notes what /proc says of `triggered` now: later nobody can tell.
    pub fn of(target: &Target, triggered: &[i64]) -> Manifest {
        let local = target.address.is_local();
        let note = |&pid: &i64| {
            let at = if local {
                Snapshot::of_registered(pid)
            } else {
                Snapshot::default()
            };
            TracedProcess::noted(pid, &at, trace_file(target.log_path.as_str(), pid))
        };
        Manifest {
            tracemend_manifest: VERSION,
            host: if local {
                host_name()
            } else {
                target.address.host.clone()
            },
            captured_at: now(),
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
        let safe: String = self
            .host
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "._-".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .collect();
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

/// The manifests of the newest capture of each host in `folder`.
///
/// # Errors
/// When the folder cannot be read.
pub fn newest_manifests(folder: &Path) -> Result<Vec<Manifest>> {
    let mut newest: BTreeMap<String, Vec<Manifest>> = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !(name.starts_with("tracemend-manifest-") && name.ends_with(".json")) {
            continue;
        }
        let Ok(manifest) = read_json::<Manifest>(&entry.path()) else {
            continue;
        };
        let of_host = newest.entry(manifest.host.clone()).or_default();
        match of_host
            .first()
            .map(|other| other.captured_at.total_cmp(&manifest.captured_at))
        {
            Some(std::cmp::Ordering::Greater) => {}
            Some(std::cmp::Ordering::Equal) => of_host.push(manifest),
            _ => *of_host = vec![manifest],
        }
    }
    Ok(newest.into_values().flatten().collect())
}

/// Seconds since 1970.
pub fn now() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}
