//! What must not outlive the process: temporary files and folders, and the programs that were started. Ctrl-C and SIGTERM end
//! and remove them all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// Exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

#[derive(Default)]
struct Live {
    paths: BTreeSet<PathBuf>,
    groups: BTreeSet<i32>,
    undone: BTreeMap<u32, fn(u32)>,
}

static LIVE: Mutex<Live> = Mutex::new(Live {
    paths: BTreeSet::new(),
    groups: BTreeSet::new(),
    undone: BTreeMap::new(),
});

fn live() -> MutexGuard<'static, Live> {
    LIVE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// From now on, SIGINT, SIGTERM and SIGHUP clean up before they end the process.
///
/// # Errors
/// When the handler cannot be installed.
pub fn clean_up_on_signals() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        // Held to the end: whoever makes something new now waits, and is gone with the process.
        let live = live();
        for (&child, end) in &live.undone {
            end(child);
        }
        let groups: Vec<Pid> = live.groups.iter().filter_map(|&pid| Pid::from_raw(pid)).collect();
        for signal in [Signal::TERM, Signal::KILL] {
            for &group in &groups {
                let _ = kill_process_group(group, signal);
            }
            for _ in 0..20 {
                if !groups.iter().any(|&group| test_kill_process_group(group).is_ok()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(25));
            }
        }
        for path in &live.paths {
            remove(path);
        }
        eprintln!("tracemend: interrupted; temporary files are removed");
        std::process::exit(INTERRUPTED);
    })?;
    Ok(())
}

/// Threads of this process may still be writing below `path`: try again.
fn remove(path: &Path) {
    for _ in 0..3 {
        let gone = if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(Duration::from_millis(20)),
            _ => return,
        }
    }
}

/// A path that is removed when this is dropped, or when the process is interrupted.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new folder in `parent`, for this user only.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder_in(parent: &Path, prefix: &str) -> io::Result<Scratch> {
        let mut live = live();
        let path = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?.keep();
        live.paths.insert(path.clone());
        Ok(Scratch { path })
    }

    /// A new folder for what lives no longer than this process, in TMPDIR.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn for_this_run() -> anyhow::Result<Scratch> {
        let temporary = std::env::temp_dir();
        Scratch::folder_in(&temporary, "tracemend-")
            .with_context(|| format!("cannot write to {} (set TMPDIR to another place)", temporary.display()))
    }

    /// A new, empty file in the folder of `target`, open for reading and writing, to be renamed to `target` by [`Scratch::persist`].
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn file_beside(target: &Path) -> io::Result<(fs::File, Scratch)> {
        let parent = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut live = live();
        let (file, path) = tempfile::Builder::new()
            .prefix(".tracemend-")
            .tempfile_in(parent)?
            .keep()?;
        live.paths.insert(path.clone());
        Ok((file, Scratch { path }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there for good.
    pub fn keep(self) -> PathBuf {
        live().paths.remove(&self.path);
        let mut this = std::mem::ManuallyDrop::new(self);
        std::mem::take(&mut this.path)
    }

    /// Gives the file its final name, replacing what was there, with the permissions that a new file gets.
    ///
    /// # Errors
    /// When it cannot be renamed; the file is gone then.
    pub fn persist(self, target: &Path) -> io::Result<()> {
        fs::set_permissions(
            &self.path,
            std::os::unix::fs::PermissionsExt::from_mode(0o666 & !umask()),
        )?;
        fs::rename(&self.path, target)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
        live().paths.remove(&self.path);
    }
}

/// The process's file mode mask, read without changing it (proc(5), since Linux 4.7); the usual one where that is not to be had.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o022)
}

/// A process group that ends with us when we are interrupted.
#[derive(Debug)]
pub struct ProcessGroup {
    leader: i32,
}

impl ProcessGroup {
    /// Runs `spawn`, which must start a child as the leader of a group of its own, and watches over the group. No signal comes
    /// between the two.
    ///
    /// # Errors
    /// Those of `spawn`.
    pub fn of(
        spawn: impl FnOnce() -> io::Result<std::process::Child>,
    ) -> io::Result<(std::process::Child, ProcessGroup)> {
        let mut live = live();
        let child = spawn()?;
        let leader = i32::try_from(child.id()).map_err(io::Error::other)?;
        live.groups.insert(leader);
        Ok((child, ProcessGroup { leader }))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        live().groups.remove(&self.leader);
    }
}

/// A child that is ended in a way of its own when we are interrupted, not by a signal to its group.
#[derive(Debug)]
pub struct OnInterrupt {
    child: u32,
}

impl OnInterrupt {
    /// Runs `spawn`; from then on until this is dropped, an interrupt calls `end` with the child's process id. No signal comes
    /// between the two.
    ///
    /// # Errors
    /// Those of `spawn`.
    pub fn spawn(
        spawn: impl FnOnce() -> io::Result<std::process::Child>,
        end: fn(u32),
    ) -> io::Result<(std::process::Child, OnInterrupt)> {
        let mut live = live();
        let child = spawn()?;
        live.undone.insert(child.id(), end);
        let guard = OnInterrupt { child: child.id() };
        Ok((child, guard))
    }
}

impl Drop for OnInterrupt {
    fn drop(&mut self) {
        live().undone.remove(&self.child);
    }
}
