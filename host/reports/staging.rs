//! What TraceLens is given to read: a trace where it lies, a link with a name that fits its content, or a mended copy.
//!
//! TraceLens chooses its reader by the end of the name alone (facts/tracelens.md section 3). A mended copy is made just before
//! the first job that reads it and deleted after the last.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};

use super::pftrace;
use super::stem::Stems;
use crate::bytes::{Container, Verdict, mend, mend_logged};
use crate::scratch::Scratch;
use crate::traces::{Kind, Run, only_the_suffix_misleads};

enum Copy {
    NotMade,
    BeingMade,
    Ready(PathBuf),
}

struct Slot {
    copy: Copy,
    /// The log of the edits, once it is written.
    edits: Option<PathBuf>,
}

/// The staged traces of one run.
pub struct Staging<'a> {
    run: &'a Run,
    scratch: &'a Scratch,
    /// The folder of edit logs, and a name for that of each trace.
    edits: PathBuf,
    names: Vec<String>,
    traceconv: Option<&'a Path>,
    slots: Mutex<Vec<Slot>>,
    changed: Condvar,
}

impl<'a> Staging<'a> {
    /// Copies and links go to `scratch`, the logs of edits to the folder `edits`, which need not exist. Perfetto traces are
    /// converted by `traceconv`.
    pub fn new(run: &'a Run, scratch: &'a Scratch, edits: PathBuf, traceconv: Option<&'a Path>) -> Self {
        let mut stems = Stems::default();
        let slot = || Slot {
            copy: Copy::NotMade,
            edits: None,
        };
        Staging {
            run,
            scratch,
            edits,
            names: run
                .traces
                .iter()
                .map(|trace| stems.of_trace(&trace.path, [""]))
                .collect(),
            traceconv,
            slots: Mutex::new(run.traces.iter().map(|_| slot()).collect()),
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

    /// How many bytes the mended or converted copy of trace `index` takes at most; 0 where none is needed.
    pub fn copy_size(&self, index: usize) -> u64 {
        let findings = &self.run.traces[index].findings;
        if self.run.traces[index].kind == Kind::Pftrace {
            // For a moment twice: as traceconv wrote it, and mended.
            return 2 * pftrace::json_size(findings.size);
        }
        if self.is_mended(index) {
            // No mend of a flaw adds more than a few bytes, but for the brackets that close a file cut deep inside.
            findings.size + 8 * findings.flaws.count + 4096
        } else {
            0
        }
    }

    /// The log of the edits that mended trace `index`, if it was mended.
    pub fn edits_of(&self, index: usize) -> Option<PathBuf> {
        self.slots()[index].edits.clone()
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

    /// Deletes the copy of trace `index`, if there is one; it is made again if it is asked for again.
    pub fn discard(&self, index: usize) {
        let slot = &mut self.slots()[index];
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
        let written = fs::File::create_new(&copy)
            .map_err(anyhow::Error::from)
            .and_then(|file| self.write_copy(index, file));
        if let Err(error) = written {
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

    /// Writes the mended bytes of trace `index`, and the first time the log of its edits.
    fn write_copy(&self, index: usize, copy: File) -> Result<()> {
        let out = BufWriter::with_capacity(1 << 20, copy);
        if self.slots()[index].edits.is_some() {
            mend(
                self.run.open(index)?,
                &self.run.traces[index].findings,
                out,
                &mut |_| {},
            )?;
            return Ok(());
        }
        self.log_edits_of(index, out)
    }

    /// Writes the log of the edits that mend trace `index`, if it is mended and has none yet, without a copy.
    ///
    /// # Errors
    /// When the trace cannot be read or the log cannot be written.
    pub fn log_edits(&self, index: usize) -> Result<()> {
        if !self.is_mended(index) || self.slots()[index].edits.is_some() {
            return Ok(());
        }
        self.log_edits_of(index, io::sink())
    }

    fn log_edits_of(&self, index: usize, out: impl Write) -> Result<()> {
        let path = self.edits.join(format!("{}.jsonl", self.names[index]));
        let log = || -> Result<_> {
            fs::create_dir_all(&self.edits)?;
            Ok(Scratch::file_beside(&path)?)
        };
        let (file, scratch) = log().with_context(|| format!("cannot write {}", path.display()))?;
        let findings = &self.run.traces[index].findings;
        mend_logged(self.run.open(index)?, findings, out, BufWriter::new(file))?;
        scratch
            .persist(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.slots()[index].edits = Some(path);
        Ok(())
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
