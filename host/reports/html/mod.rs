//! The run at a glance: one HTML file that needs nothing but itself.
//!
//! [`write()`] makes a view of what is in memory at the end of a run and fills the templates with it (`templates/`, askama).
//! Pictures are SVG made here; the style sheet and the small script are in the file, named by hash in its
//! Content-Security-Policy, which allows nothing else. All text from outside goes through `text`, which escapes it.

mod attention;
mod capture;
mod damage;
mod glance;
mod kernels;
mod outputs;
mod page;
mod ranks;
mod svg;
mod table;
mod text;
mod time;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::builtin::RunReport;
use super::job::Job;
use super::summary::Row;
use crate::ranks::Assignment;
use crate::scratch::Scratch;
use crate::traces::Run;

pub use glance::{Glance, RankLine, meaning};

/// What the page is made of.
pub struct Source<'a> {
    /// The run.
    pub run: &'a Run,
    /// The run as the user named it, for commands.
    pub named: &'a Path,
    /// Whose every trace is.
    pub assignment: &'a Assignment,
    /// The jobs of the run.
    pub jobs: &'a [Job],
    /// Their rows, in the same order.
    pub rows: &'a [Row],
    /// What the GPUs did, if that is known.
    pub figures: Option<&'a RunReport>,
    /// Who made the reports, for people.
    pub reporter: &'a str,
    /// The folder of the reports, absolute.
    pub output: &'a Path,
    /// When the run was analyzed, in seconds since 1970.
    pub made_at: u64,
}

/// Writes the page to `file`, absolute, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write(source: &Source, file: &Path) -> Result<()> {
    let html = page::render(source, file.parent().unwrap_or(Path::new("/")))?;
    let cannot = || format!("cannot write {}", file.display());
    let (mut out, scratch) = Scratch::file_beside(file).with_context(cannot)?;
    out.write_all(html.as_bytes()).with_context(cannot)?;
    scratch.persist(file).with_context(cannot)
}

/// `text`, which may hold anything, as HTML that shows it: markup escaped, what cannot be seen or reorders shown as escapes.
pub fn shown(text: &str) -> String {
    text::Shown::from(text).to_string()
}
