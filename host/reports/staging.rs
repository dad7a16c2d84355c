//! What TraceLens is given to read: a trace where it lies, a link with a name that fits its content, or a mended copy.
//!
//! TraceLens chooses its reader by the end of the name alone (facts/tracelens.md section 3). A mended copy is made just before
//! the first job that reads it and deleted after the last.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use super::pftrace;
use crate::bytes::{Container, Verdict, mend};
use crate::scratch::Scratch;
use crate::traces::{Kind, Run, only_the_suffix_misleads};

enum Copy {
    NotMade,
    BeingMade,
    Ready(PathBuf),
}

struct Slot {
    readers_left: usize,
    copy: Copy,
}

/// The staged traces of one run.
pub struct Staging<'a> {
    run: &'a Run,
    scratch: &'a Scratch,
    traceconv: Option<&'a Path>,
    slots: Mutex<Vec<Slot>>,
    changed: Condvar,
}

impl<'a> Staging<'a> {
    /// `readers[i]` says how many jobs will read trace `i`. Perfetto traces are converted by `traceconv`.
    pub fn new(run: &'a Run, scratch: &'a Scratch, traceconv: Option<&'a Path>, readers: Vec<usize>) -> Self {
        let slots = readers
            .into_iter()
            .map(|readers_left| Slot {
                readers_left,
                copy: Copy::NotMade,
            })
            .collect();
        Staging {
            run,
            scratch,
            traceconv,
            slots: Mutex::new(slots),
            changed: Condvar::new(),
        }
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether trace `index` is read through a mended copy.
    pub fn is_mended(&self, index: usize) -> bool {
        let findings = &self.run.traces[index].findings;
        findings.verdict == Verdict::Damaged && !only_the_suffix_misleads(findings)
    }

    /// The path under which TraceLens reads trace `index` as it should be.
    ///
    /// # Errors
    /// When the copy or link cannot be made, for example on a full disk: the broken original is never handed out instead.
    pub fn path_of(&self, index: usize) -> Result<PathBuf> {
        let mut slots = self.slots();
        loop {
            match &slots[index].copy {
                Copy::Ready(path) => return Ok(path.clone()),
                Copy::BeingMade => slots = self.changed.wait(slots).unwrap_or_else(PoisonError::into_inner),
                Copy::NotMade => break,
            }
        }
        slots[index].copy = Copy::BeingMade;
        drop(slots);
        let made = self.make(index);
        self.slots()[index].copy = match &made {
            Ok(path) => Copy::Ready(path.clone()),
            Err(_) => Copy::NotMade,
        };
        self.changed.notify_all();
        made
    }

    /// One reader of trace `index` less; the last one's copy is deleted.
    pub fn done_with(&self, index: usize) {
        let slot = &mut self.slots()[index];
        slot.readers_left = slot.readers_left.saturating_sub(1);
        if slot.readers_left > 0 {
            return;
        }
        let copy = std::mem::replace(&mut slot.copy, Copy::NotMade);
        if let Copy::Ready(path) = copy
            && path.starts_with(self.scratch.path())
        {
            // Whatever is left goes with the scratch folder.
            let _ = fs::remove_file(path);
        }
    }

    /// Trace `index` where it lies.
    pub fn original(&self, index: usize) -> PathBuf {
        self.run.root.join(&self.run.traces[index].path)
    }

    fn make(&self, index: usize) -> Result<PathBuf> {
        let trace = &self.run.traces[index];
        let original = self.original(index);
        if trace.kind == Kind::Pftrace {
            let traceconv = self.traceconv.context("there is no traceconv")?;
            let json = self.scratch.path().join(format!("pftrace{index}.json"));
            return match pftrace::to_json(traceconv, &original, &json) {
                Ok(()) => Ok(json),
                Err(error) => {
                    let _ = fs::remove_file(&json);
                    Err(error)
                }
            };
        }
        if !self.is_mended(index) {
            let ending = if trace.findings.container == Container::Gzip {
                ".json.gz"
            } else {
                ".json"
            };
            if original.as_os_str().as_encoded_bytes().ends_with(ending.as_bytes()) {
                return Ok(original);
            }
            let link = self.scratch.path().join(format!("trace{index}{ending}"));
            symlink(&original, &link)
                .with_context(|| format!("cannot make a link in {}", self.scratch.path().display()))?;
            return Ok(link);
        }
        let copy = self.scratch.path().join(format!("mended{index}.json"));
        if let Err(error) = write_mended(self.run, index, &copy) {
            let _ = fs::remove_file(&copy);
            return Err(error).with_context(|| {
                format!(
                    "cannot write the mended copy of {} to {} (set TMPDIR to a place with room)",
                    trace.display_path(),
                    self.scratch.path().display()
                )
            });
        }
        Ok(copy)
    }

    /// A new folder of links `rank<i>_trace.json[.gz]` to the given traces, in rank order.
    ///
    /// # Errors
    /// When a trace cannot be staged, or a link cannot be made.
    pub fn link_farm(&self, traces: &[usize]) -> Result<Scratch> {
        let farm = Scratch::folder_in(self.scratch.path(), "ranks-")?;
        for (rank, &index) in traces.iter().enumerate() {
            let path = self.path_of(index)?;
            let ending = if has_gzip_name(&path) { ".json.gz" } else { ".json" };
            symlink(&path, farm.path().join(format!("rank{rank}_trace{ending}")))?;
        }
        Ok(farm)
    }
}

/// Writes the mended bytes of trace `index` to the new file `copy`, decompressed: TraceLens reads them sooner, and compressing
/// 300 MB takes longer than everything else that is done to them.
pub(super) fn write_mended(run: &Run, index: usize, copy: &Path) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, fs::File::create_new(copy)?);
    mend(run.open(index)?, &run.traces[index].findings, &mut out, &mut |_| {})?;
    out.flush()
}

fn has_gzip_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}
