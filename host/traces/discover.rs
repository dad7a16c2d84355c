//! One walk over a run's folder, and one pass over each trace found.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, FileType, MetadataExt};

use super::kind::{Kind, KindObserver};
use super::read::{Glance, glance};
use super::suffix::check_suffix;
use super::unsupported::{self, Unsupported};
use super::xplane::{self, XPLANE_ENDING, XPlane};
use crate::bytes::{Findings, Options, Verdict, scan};

/// Folders that hold programs, not a run's output.
const NOT_WALKED: [&str; 6] = [".git", "__pycache__", "node_modules", "site-packages", ".venv", "venv"];
/// A folder with this file holds reports that tracemend made, and is no part of a run.
pub const OUTPUT_MARK: &str = "tracemend_record.json";
/// Endings under which profilers write traces; such a file counts even where nothing in it can be recognised any more.
const TRACE_ENDINGS: [&str; 4] = [".json", ".json.gz", ".pftrace", XPLANE_ENDING];

/// What a capture notes of its attempts beside the traces: JSON lines, which no reader of traces takes.
const OWN_LOG: &[u8] = b"tracemend-attempts-";

/// A trace of a run.
#[derive(Debug, Clone)]
pub struct TraceFile {
    /// Path relative to the run's root.
    pub path: PathBuf,
    /// Size in bytes as stored.
    pub stored_size: u64,
    /// What it is, by its content.
    pub kind: Kind,
    /// Whether it holds events of a GPU; none where that cannot be told.
    pub gpu_events: Option<bool>,
    /// What the pass over its bytes found. A file that cannot be read is refused, with the reason.
    pub findings: Findings,
}

impl TraceFile {
    /// The path as text, '/' between folders; ill-formed sequences are U+FFFD.
    pub fn display_path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Its folder relative to the root, as text; `.` for the root itself.
    pub fn folder(&self) -> String {
        match self.path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_string_lossy().into_owned(),
            _ => ".".to_owned(),
        }
    }
}

/// Something in the run that was left out, and why.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// Path relative to the run's root.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
}

/// A run: a folder and the traces in it, sorted by path.
#[derive(Debug)]
pub struct Run {
    /// The folder, absolute, links resolved.
    pub root: PathBuf,
    /// The traces.
    pub traces: Vec<TraceFile>,
    /// What profilers left that no report can be made of, sorted by path.
    pub unsupported: Vec<Unsupported>,
    /// What was left out.
    pub skipped: Vec<Skipped>,
    pub(super) dir: Dir,
}

/// Finds the traces of the run in `root` (a folder, or one file) and passes once over each, in parallel. Nothing outside `root`
/// is reached, links included. The folder `output` is not entered. `progress` is told of each trace once it is done: how many
/// are, and of how many.
///
/// # Errors
/// When `root` is missing or cannot be listed. What cannot be read inside it is listed in the run instead.
pub fn discover(
    root: &Path,
    output: Option<&Path>,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Run> {
    let shown = root.display();
    let root = root.canonicalize().with_context(|| format!("no run at {shown}"))?;
    let only = if root.is_file() {
        root.file_name().map(OsStr::to_owned)
    } else {
        None
    };
    let root = if only.is_some() {
        root.parent().unwrap_or(&root).to_owned()
    } else {
        root
    };
    let dir = Dir::open_ambient_dir(&root, ambient_authority()).with_context(|| format!("cannot list {shown}"))?;
    let output = output.and_then(|output| output.canonicalize().ok());
    let output = output.and_then(|output| output.strip_prefix(&root).ok().map(Path::to_owned));
    if output.as_deref() == Some(Path::new("")) {
        bail!("the output folder is the run itself, {shown}; choose another with --output-dir");
    }

    let mut walk = Walk {
        dir: &dir,
        output,
        seen: HashSet::new(),
        candidates: Vec::new(),
        unsupported: Vec::new(),
        skipped: Vec::new(),
    };
    match only {
        Some(name) => match unsupported::reason(Path::new(&name)) {
            Some(reason) => walk.unsupported.push(Unsupported {
                path: name.into(),
                reason,
            }),
            None => walk.candidates.push(Candidate {
                path: name.into(),
                asked_for: true,
            }),
        },
        None => walk
            .folder(&dir, Path::new(""), 0)
            .with_context(|| format!("cannot list {shown}"))?,
    }
    let Walk {
        mut candidates,
        mut unsupported,
        mut skipped,
        ..
    } = walk;
    candidates.sort_by(|a, b| a.path.cmp(&b.path));
    unsupported.sort_by(|a, b| a.path.cmp(&b.path));
    skipped.sort_by(|a, b| a.path.cmp(&b.path));
    let traces = examine_all(&dir, &candidates, options, progress);
    Ok(Run {
        root,
        traces,
        unsupported,
        skipped,
        dir,
    })
}

struct Candidate {
    path: PathBuf,
    /// Named by the user, so listed whatever it is.
    asked_for: bool,
}

struct Walk<'a> {
    dir: &'a Dir,
    output: Option<PathBuf>,
    /// Device and inode of each file, so that a file reached twice counts once.
    seen: HashSet<(u64, u64)>,
    candidates: Vec<Candidate>,
    unsupported: Vec<Unsupported>,
    skipped: Vec<Skipped>,
}

/// Deeper folders are not a run's; a walk needs an end on a file system that has none.
const MAX_DEPTH: usize = 64;

impl Walk<'_> {
    fn folder(&mut self, folder: &Dir, path: &Path, depth: usize) -> io::Result<()> {
        let mut entries: Vec<DirEntry> = folder.entries()?.collect::<io::Result<_>>()?;
        // Files before links: of two ways to one file the plain one is kept.
        let is_link = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
        entries.sort_by_cached_key(|entry| (is_link(entry), entry.file_name()));
        for entry in entries {
            let name = entry.file_name();
            let path = path.join(&name);
            if let Err(error) = entry
                .file_type()
                .and_then(|kind| self.entry(folder, &name, &path, kind, depth))
            {
                self.skipped.push(Skipped {
                    path,
                    reason: why(&error),
                });
            }
        }
        Ok(())
    }

    fn entry(&mut self, folder: &Dir, name: &OsStr, path: &Path, kind: FileType, depth: usize) -> io::Result<()> {
        if kind.is_dir() {
            let program = NOT_WALKED.iter().any(|other| name == *other);
            if program || depth >= MAX_DEPTH || self.output.as_deref() == Some(path) {
                return Ok(());
            }
            let inner = folder.open_dir(name)?;
            if inner.exists(OUTPUT_MARK) {
                self.skipped.push(Skipped {
                    path: path.to_owned(),
                    reason: format!("reports of tracemend, not looked into (it holds {OUTPUT_MARK})"),
                });
                return Ok(());
            }
            return self.folder(&inner, path, depth + 1);
        }
        if kind.is_symlink() {
            let target = self.dir.metadata(path)?;
            if !target.is_file() {
                return Ok(());
            }
        } else if !kind.is_file() {
            return Ok(());
        }
        if name.as_encoded_bytes().starts_with(OWN_LOG) {
            return Ok(());
        }
        if let Some(reason) = unsupported::reason(path) {
            self.unsupported.push(Unsupported {
                path: path.to_owned(),
                reason,
            });
            return Ok(());
        }
        let looks_like_one = || glance(self.dir, path).is_ok_and(|glance| glance != Glance::NoTrace);
        if is_named_like_a_trace(path) || looks_like_one() {
            let meta = self.dir.metadata(path)?;
            if self.seen.insert((meta.dev(), meta.ino())) {
                self.candidates.push(Candidate {
                    path: path.to_owned(),
                    asked_for: false,
                });
            }
        }
        Ok(())
    }
}

fn is_named_like_a_trace(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    TRACE_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()))
}

fn why(error: &io::Error) -> String {
    if error.to_string().contains("outside of the filesystem") {
        "a link that leads out of the run; give tracemend the folder it leads to".to_owned()
    } else {
        format!("cannot be read: {error}")
    }
}

fn examine_all(
    dir: &Dir,
    candidates: &[Candidate],
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<TraceFile> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found: Mutex<Vec<(usize, TraceFile)>> = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(candidates.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, candidate)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    candidates.get(index).map(|candidate| (index, candidate))
                } {
                    let trace = examine(dir, candidate, options);
                    if let Some(trace) = trace {
                        found
                            .lock()
                            .unwrap_or_else(|poisoned| poisoned.into_inner())
                            .push((index, trace));
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, candidates.len());
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, trace)| trace).collect()
}

/// The facts of one candidate; none where it proves to be no trace, such as a configuration file.
fn examine(dir: &Dir, candidate: &Candidate, options: &Options) -> Option<TraceFile> {
    let path = &candidate.path;
    let stored_size = dir.metadata(path).map_or(0, |meta| meta.len());
    let binary = match glance(dir, path) {
        Ok(Glance::Pftrace) => Some(Kind::Pftrace),
        Ok(Glance::XPlane) => Some(Kind::XPlane),
        _ if path.as_os_str().as_encoded_bytes().ends_with(XPLANE_ENDING.as_bytes()) => Some(Kind::XPlane),
        _ => None,
    };
    let mut observer = KindObserver::default();
    let (mut findings, kind, gpu_events) = match binary {
        Some(Kind::XPlane) => {
            let (findings, gpu_events) = examine_xplane(dir, path);
            (findings, Kind::XPlane, gpu_events)
        }
        Some(kind) => (Findings::default(), kind, None),
        None => {
            let scanned = dir.open(path).and_then(|file| scan(file, options, &mut observer));
            let mut findings = scanned.unwrap_or_else(|error| Findings::unread(format!("cannot be read: {error}")));
            check_suffix(path, &mut findings);
            let gpu_events = observer.gpu_events(&findings);
            (findings, observer.kind(), gpu_events)
        }
    };
    if binary.is_some() {
        findings.size = stored_size;
    }
    // Kept in memory for every trace of a run: only what is asked for later.
    findings.head = Vec::new();
    findings.tail = Vec::new();
    let listed = candidate.asked_for
        || kind != Kind::Other
        || observer.is_array_of_events()
        || observer.is_manifest()
        // A log that begins with a bracket is no trace lost.
        || (findings.verdict == Verdict::Refused && is_named_like_a_trace(path));
    listed.then(|| TraceFile {
        path: path.clone(),
        stored_size,
        kind,
        gpu_events,
        findings,
    })
}

/// The findings on a JAX profile, and whether it holds GPU events.
fn examine_xplane(dir: &Dir, path: &Path) -> (Findings, Option<bool>) {
    match dir.open(path).and_then(xplane::examine) {
        Ok(XPlane {
            refused: Some(reason), ..
        }) => (Findings::unread(reason), None),
        Ok(found) => (Findings::default(), Some(found.accelerators)),
        Err(error) => (Findings::unread(format!("cannot be read: {error}")), None),
    }
}
