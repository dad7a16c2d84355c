//! The record of a run: what was made, from what, by what. Its format is described in docs/record.md.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::interpreter::TraceLens;
use super::summary::Row;
use crate::plugins::{Origin, Plugin};
use crate::traces::{OUTPUT_MARK, Run, TraceFile};

/// The version of the format. It changes when a member changes its meaning or goes; new ones may come at any time.
pub const RECORD_VERSION: u32 = 1;

/// What is known of a run of `analyze`, and of each of its jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// The version of the format.
    pub tracemend_record: u32,
    /// The version of the program that wrote it.
    pub tracemend: String,
    /// Whether the run came to its end.
    pub finished: bool,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// When it ended.
    pub ended: Option<String>,
    /// The machine.
    pub host: String,
    /// The command line, ill-formed bytes as U+FFFD.
    pub command_line: Vec<String>,
    /// The run's folder.
    pub root: String,
    /// The folder for reports; all names of outputs, logs and edits are relative to it.
    pub output_dir: String,
    /// The mode, as on the command line.
    pub mode: String,
    /// Who made the reports.
    pub reporter: ReporterUse,
    /// The cluster whose configuration was used.
    pub cluster: Option<ClusterUse>,
    /// The naming policies, in the order in which they were asked.
    pub plugins: Vec<PluginUse>,
    /// What the jobs were allowed to use together.
    pub limits: LimitsUse,
    /// The most bytes of mended copies that there were at once, once the run has ended.
    pub peak_scratch_bytes: u64,
    /// SHA-256 over paths, sizes and times of all traces of the run: shards of one run agree on it.
    pub traces_sha256: String,
    /// The part of the run that this is.
    pub shard: Option<ShardUse>,
    /// Of a merged record: the shards that it was made without, or that did not come to their end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_shards: Vec<u32>,
    /// How many traces of each kind the run holds.
    pub discovered: BTreeMap<String, usize>,
    /// The traces of the jobs.
    pub traces: Vec<TraceRecord>,
    /// The jobs that are over, in the order of the plan.
    pub jobs: Vec<JobRecord>,
}

/// Who made the reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReporterUse {
    /// `tracelens` or `builtin`.
    pub name: String,
    /// The interpreter.
    pub python: Option<String>,
    /// Its version.
    pub python_version: Option<String>,
    /// The TraceLens in it.
    pub tracelens: Option<TraceLens>,
    /// SHA-256 over all of that, tracemend's version, and all options that change a report: `--resume` keeps a report only if it
    /// is the same.
    pub options_sha256: String,
}

/// A cluster's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterUse {
    /// Its name.
    pub name: String,
    /// The file it was read from.
    pub config: Option<String>,
}

/// A plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginUse {
    /// Its own name for itself.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of its file.
    pub sha256: String,
    /// `built in`, or the file.
    pub origin: String,
}

impl From<&Plugin> for PluginUse {
    fn from(plugin: &Plugin) -> Self {
        PluginUse {
            name: plugin.name().to_owned(),
            version: plugin.description.version.clone(),
            sha256: plugin.sha256.clone(),
            origin: match &plugin.origin {
                Origin::BuiltIn => "built in".to_owned(),
                Origin::File(path) => path.to_string_lossy().into_owned(),
            },
        }
    }
}

/// What the jobs were allowed to use together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitsUse {
    /// Jobs at once.
    pub jobs: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of mended copies.
    pub scratch_bytes: u64,
    /// How long one program could take.
    pub job_timeout_seconds: Option<f64>,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardUse {
    /// Which, from 0.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

/// A trace that a job reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Which file it is, and in which state.
    #[serde(flatten)]
    pub identity: Identity,
    /// What it is by its content.
    pub kind: String,
    /// `plain` or `gzip`.
    pub container: String,
    /// `clean`, `damaged` or `refused`.
    pub verdict: String,
    /// Why it was refused.
    pub reason: Option<String>,
    /// How many flaws of each kind it has.
    pub flaws: BTreeMap<String, u64>,
    /// The group in which it was compared.
    pub group: String,
    /// Its rank.
    pub rank: Option<u32>,
    /// The policy that said so.
    pub by: Option<String>,
    /// Whether a mended copy was read.
    pub mended: bool,
    /// The log of the edits, relative to the output folder.
    pub edits: Option<String>,
}

/// A file in a certain state: what changes it changes one of these.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Its path, relative to the run; ill-formed bytes as U+FFFD.
    pub path: String,
    /// The path's bytes in base64, where they are no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// Bytes as stored.
    pub size: u64,
    /// When it was changed last, RFC 3339, UTC.
    pub modified: Option<String>,
}

impl Identity {
    /// Of `trace` as it lies in `run`.
    pub fn of(run: &Run, trace: &TraceFile) -> Self {
        let bytes = trace.path.as_os_str().as_bytes();
        let modified = fs::metadata(run.root.join(&trace.path)).and_then(|meta| meta.modified());
        Identity {
            path: trace.display_path(),
            path_base64: std::str::from_utf8(bytes)
                .is_err()
                .then(|| BASE64_STANDARD.encode(bytes)),
            size: trace.stored_size,
            modified: modified
                .ok()
                .map(|time| humantime::format_rfc3339_nanos(time).to_string()),
        }
    }
}

/// A job that is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Its row in the summary.
    #[serde(flatten)]
    pub row: Row,
    /// Paths of the traces that it read.
    pub traces: Vec<String>,
    /// The name that its outputs begin with.
    pub stem: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// What it made: files and folders.
    pub outputs: Vec<String>,
    /// Whether it is an earlier run's, kept by `--resume`.
    pub kept: bool,
    /// In a merged record, the folder that outputs, logs and edits are relative to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_dir: Option<String>,
}

impl Record {
    /// Where the record of the reports in `output` is.
    pub fn path_in(output: &Path) -> PathBuf {
        output.join(OUTPUT_MARK)
    }

    /// Reads the record of the reports in `output`; none if there is none.
    ///
    /// # Errors
    /// When it cannot be read, is no record, or is of another version.
    pub fn read(output: &Path) -> Result<Option<Record>> {
        let path = Record::path_in(output);
        let shown = path.display();
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.with_context(|| format!("cannot read {shown}"))?,
        };
        #[derive(Deserialize)]
        struct Version {
            tracemend_record: u32,
        }
        let document: serde_json::Value =
            serde_json::from_reader(BufReader::new(file)).with_context(|| format!("{shown} is no record of a run"))?;
        let version = Version::deserialize(&document)
            .with_context(|| format!("{shown} is no record of a run"))?
            .tracemend_record;
        if version != RECORD_VERSION {
            bail!("{shown} is a record of version {version}; this tracemend reads version {RECORD_VERSION}");
        }
        let record = Record::deserialize(document).with_context(|| format!("{shown} is no record of a run"))?;
        Ok(Some(record))
    }
}

/// Now, RFC 3339, UTC.
pub fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// SHA-256 over the identities of all traces, whatever their order.
pub fn traces_sha256<'a>(identities: impl Iterator<Item = &'a Identity>) -> String {
    let mut lines: Vec<String> = identities
        .map(|identity| {
            let path = identity.path_base64.as_ref().unwrap_or(&identity.path);
            format!(
                "{path}\0{}\0{}\n",
                identity.size,
                identity.modified.as_deref().unwrap_or_default()
            )
        })
        .collect();
    lines.sort_unstable();
    sha256(lines.concat().as_bytes())
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
