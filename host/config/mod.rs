//! Clusters: which plugins are asked, in which order, with which settings and limits. Read from `tracemend.toml`:
//!
//! ```toml
//! [limits]
//! call-seconds = 10
//!
//! [cluster.banff]
//! hosts = ["banff-*"]
//! naming = ["capture-manifest", "kineto-content", "banff-slots", "producers", "rank-in-name"]
//! interpreter = "dyno-cli"
//!
//! [cluster.banff.plugins.banff-slots]
//! path = "banff-slots.wasm"
//! sha256 = "..."
//! settings = { gpus-per-node = "8" }
//! ```
//!
//! No interpreter of Python and no extension of TraceLens is ever taken from here: those are not sandboxed.

mod choose;
mod lookup;
mod read;
mod section;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::plugins::{Limits, Order};

pub use choose::{Choice, host_name};
pub use lookup::{Looked, NAME, Source, find, places};

/// A file of clusters.
#[derive(Debug)]
pub struct Configuration {
    /// The file.
    pub path: PathBuf,
    /// Its clusters, in its order.
    pub clusters: Vec<Cluster>,
    /// Limits of a run outside every cluster.
    pub limits: Limits,
    /// What is wrong with the file outside every cluster.
    pub problems: Vec<Problem>,
}

/// One cluster of the configuration.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The name in `[cluster.NAME]`.
    pub name: String,
    /// Patterns of host names (`*`, `?`, `[...]`), as written.
    pub hosts: Vec<String>,
    /// Its plugins.
    pub order: Order,
    /// Its limits.
    pub limits: Limits,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// Something that makes no sense in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// One sentence.
    pub text: String,
}

/// A configuration larger than this is none.
const MAX_FILE: u64 = 1 << 20;

impl Configuration {
    /// Reads the file at `path`. What makes no sense in it is in `problems`, here and in its clusters.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let meta = std::fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
        if meta.len() > MAX_FILE {
            bail!(
                "{shown} is larger than {} MiB, which no configuration is",
                MAX_FILE >> 20
            );
        }
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
        let text = String::from_utf8(bytes)
            .ok()
            .with_context(|| format!("{shown} is no UTF-8 text"))?;
        Ok(read::read(path, &text))
    }

    /// The first problem of the file, and how many there are.
    pub fn check(&self) -> Result<()> {
        let all = self
            .clusters
            .iter()
            .flat_map(|cluster| &cluster.problems)
            .chain(&self.problems);
        let Some(first) = all.clone().min_by_key(|problem| problem.line) else {
            return Ok(());
        };
        let more = match all.count() - 1 {
            0 => String::new(),
            more => format!(" ({more} more: `tracemend clusters` lists all)"),
        };
        bail!("{}, line {}: {}{more}", self.path.display(), first.line, first.text)
    }

    /// The cluster named `name`.
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }
}
