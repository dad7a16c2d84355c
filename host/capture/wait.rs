//! Getting every file that Kineto writes: per process, until its final name exists, and into the run's folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use super::cancel::Cancel;
use super::log_path::redirected_file;
use super::manifest::{Manifest, TracedProcess};
use super::process::{Identity, host_name};
use crate::scratch::Scratch;

/// Clocks of a host and of its file server differ by less than this, usually.
const CLOCK_SLACK: f64 = 2.0;
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What became of one triggered process's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The file is there under its final name.
    Written,
    /// The file is there, where Kineto writes when it does not like the path that was asked for.
    Redirected,
    /// The process ended, and no file came.
    ProcessDied,
    /// At the deadline it was still being written.
    TooLate,
    /// At the deadline there was nothing.
    Nothing,
}

/// One process and its file.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs)]
pub struct Gathered {
    pub host: String,
    pub pid: i64,
    pub rank: Option<u32>,
    pub fate: Fate,
    /// The file, where it lies now.
    pub path: Option<PathBuf>,
    /// Where it was expected.
    pub expected: PathBuf,
    /// Why it could not be brought into the run's folder.
    pub problem: Option<String>,
}

impl Gathered {
    /// Whether the run has this trace.
    pub fn is_there(&self) -> bool {
        matches!(self.fate, Fate::Written | Fate::Redirected) && self.problem.is_none()
    }
}

/// What to wait for.
#[allow(missing_docs)]
pub struct WaitOptions<'a> {
    pub manifests: &'a [Manifest],
    /// The run's folder.
    pub output: &'a Path,
    pub deadline: Duration,
    pub cancel: &'a Cancel,
    /// Told of each process as its fate is known.
    pub progress: &'a dyn Fn(&Gathered),
}

/// Waits for all, and gathers what comes.
pub fn wait(options: &WaitOptions) -> Vec<Gathered> {
    let own_host = host_name();
    let until = Instant::now() + options.deadline;
    let mut open: Vec<(usize, &Manifest, &TracedProcess)> = options
        .manifests
        .iter()
        .flat_map(|manifest| manifest.processes.iter().map(move |process| (manifest, process)))
        .enumerate()
        .map(|(place, (manifest, process))| (place, manifest, process))
        .collect();
    let mut known: Vec<(usize, Gathered)> = Vec::new();
    loop {
        let last = Instant::now() >= until || options.cancel.is_cancelled();
        open.retain(|&(place, manifest, process)| {
            let here = manifest.local && manifest.host == own_host;
            match fate(manifest, process, here, last) {
                None => true,
                Some((fate, file)) => {
                    let gathered = gather(options.output, manifest, process, fate, file);
                    (options.progress)(&gathered);
                    known.push((place, gathered));
                    false
                }
            }
        });
        if open.is_empty() || last {
            break;
        }
        options
            .cancel
            .sleep(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
    }
    if known.iter().all(|(_, gathered)| gathered.is_there()) {
        known
            .iter()
            .for_each(|(_, gathered)| remove_own_folder(&gathered.expected));
    }
    known.sort_by_key(|(place, _)| *place);
    known.into_iter().map(|(_, gathered)| gathered).collect()
}

fn fate(manifest: &Manifest, process: &TracedProcess, here: bool, last: bool) -> Option<(Fate, Option<PathBuf>)> {
    // Before the files: one that appears after this look belongs to a process that was alive at it.
    let died = here && !process.identity.is_some_and(Identity::is_alive);
    let fresh = |path: &Path| is_fresh(path, manifest.captured_at);
    if fresh(&process.trace_path) {
        return Some((Fate::Written, Some(process.trace_path.clone())));
    }
    let redirected = redirected_file(process.pid);
    if here && fresh(&redirected) {
        return Some((Fate::Redirected, Some(redirected)));
    }
    if died {
        return Some((Fate::ProcessDied, None));
    }
    if !last {
        return None;
    }
    let mut partial = process.trace_path.clone().into_os_string();
    partial.push(".tmp");
    let writing = fresh(Path::new(&partial));
    Some((if writing { Fate::TooLate } else { Fate::Nothing }, None))
}

/// Whether a regular file lies there that is not older than the capture: an earlier run's process may have had the same id.
fn is_fresh(path: &Path, captured_at: f64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| {
        let modified = meta
            .modified()
            .ok()
            .and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        meta.is_file() && modified.is_some_and(|at| at.as_secs_f64() >= captured_at - CLOCK_SLACK)
    })
}

fn gather(output: &Path, manifest: &Manifest, process: &TracedProcess, fate: Fate, file: Option<PathBuf>) -> Gathered {
    let (path, problem) = match file {
        None => (None, None),
        Some(file) => match bring(&file, output, &process.trace) {
            Ok(path) => (Some(path), None),
            Err(error) => {
                let problem = format!("{} cannot be brought to {}: {error}", file.display(), output.display());
                (Some(file), Some(problem))
            }
        },
    };
    Gathered {
        host: manifest.host.clone(),
        pid: process.pid,
        rank: process.rank,
        fate,
        path,
        expected: process.trace_path.clone(),
        problem,
    }
}

/// Moves `file` to `output/name`, or, where that name is taken, to the same name in a numbered folder below: under its own name
/// the manifest still knows it.
fn bring(file: &Path, output: &Path, name: &str) -> io::Result<PathBuf> {
    if file.parent().is_some_and(|folder| is_same(folder, output)) {
        return Ok(file.to_owned());
    }
    for number in 1..10_000 {
        let folder = match number {
            1 => output.to_owned(),
            _ => output.join(format!("capture-{number}")),
        };
        fs::create_dir_all(&folder)?;
        let target = folder.join(name);
        if fs::symlink_metadata(&target).is_ok() {
            continue;
        }
        let moved = match fs::hard_link(file, &target) {
            // Another file system: copied whole beside its place first.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => copy(file, &target),
            linked => linked,
        };
        match moved {
            Ok(()) => {
                fs::remove_file(file)?;
                return Ok(target);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many captures lie there"))
}

/// The folder that the trigger made for Kineto, once it is empty.
fn remove_own_folder(expected: &Path) {
    let folder = expected.parent();
    let is_own = |folder: &Path| {
        folder
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("tracemend-"))
    };
    if let Some(folder) = folder.filter(|folder| is_own(folder)) {
        let _ = fs::remove_dir(folder);
    }
}

fn copy(file: &Path, target: &Path) -> io::Result<()> {
    let (mut to, scratch) = Scratch::file_beside(target)?;
    io::copy(&mut fs::File::open(file)?, &mut to)?;
    to.sync_all()?;
    if fs::symlink_metadata(target).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    scratch.persist(target)
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_not_replaced() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(to.path().join("x_1.json"), "old").unwrap();
        for (text, place) in [("new", "capture-2/x_1.json"), ("newer", "capture-3/x_1.json")] {
            let file = from.path().join("t.json");
            fs::write(&file, text).unwrap();
            let brought = bring(&file, to.path(), "x_1.json").unwrap();
            assert_eq!(brought, to.path().join(place));
            assert_eq!(fs::read_to_string(brought).unwrap(), text);
            assert!(!file.exists());
        }
        assert_eq!(fs::read_to_string(to.path().join("x_1.json")).unwrap(), "old");
    }

    #[test]
    fn a_file_of_an_earlier_run_is_not_this_captures() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x_1.json");
        fs::write(&file, "{}").unwrap();
        let now = super::super::manifest::now();
        assert!(is_fresh(&file, now));
        assert!(!is_fresh(&file, now + 3600.0));
        assert!(!is_fresh(folder.path(), now));
    }
}
