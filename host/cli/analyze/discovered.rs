//! `tracemend analyze --discover-only`: one line a trace, `KIND<TAB>PATH` (facts/seed.md section 2.7).

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::cli::text::printable;
use crate::reports::{Discovered, Unreported, row_kind};
use crate::traces::Run;

/// The JSON, and the lines' content.
#[derive(Serialize)]
pub(super) struct Listing<'a> {
    discovered: &'a BTreeMap<&'static str, usize>,
    unsupported: Vec<UnsupportedFile>,
}

#[derive(Serialize)]
struct UnsupportedFile {
    path: String,
    reason: String,
}

impl<'a> Listing<'a> {
    /// Paths keep the root as the user wrote it.
    pub(super) fn of(found: &'a Discovered, root: &Path) -> Self {
        let file = |file: &Unreported| UnsupportedFile {
            path: root.join(&file.path).to_string_lossy().into_owned(),
            reason: file.reason.clone(),
        };
        Listing {
            discovered: &found.counts,
            unsupported: found.unsupported.iter().map(file).collect(),
        }
    }
}

/// Writes the lines. Paths are bytes as they are, for programs; on a terminal, and where they would break the line, as text.
pub(super) fn list(out: &mut dyn Write, run: &Run, found: &Discovered, root: &Path) -> Result<()> {
    let to_terminal = std::io::stdout().is_terminal();
    let mut line = |kind: &str, path: &Path, reason: Option<&str>| -> std::io::Result<()> {
        let path = root.join(path);
        let bytes = path.as_os_str().as_bytes();
        write!(out, "{kind}\t")?;
        match to_terminal || bytes.iter().any(u8::is_ascii_control) {
            true => out.write_all(printable(&path.to_string_lossy()).as_bytes())?,
            false => out.write_all(bytes)?,
        }
        match reason {
            Some(reason) => writeln!(out, "\t{}", printable(reason)),
            None => writeln!(out),
        }
    };
    for &index in &found.traces {
        line(row_kind(run.traces[index].kind), &run.traces[index].path, None)?;
    }
    for file in &found.unsupported {
        line("unsupported", &file.path, Some(&file.reason))?;
    }
    Ok(())
}
