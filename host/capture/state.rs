//! The private folder in which one capture keeps what it must remember: never in /tmp under a fixed name, never through a link
//! (facts/seed.md D14).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::process::host_name;
use crate::scratch::Scratch;

/// No file of ours is longer.
const LONGEST: u64 = 16 << 20;

/// The folder.
#[derive(Debug, Clone)]
pub struct State {
    folder: PathBuf,
}

impl State {
    /// `folder`, or this user's own for the daemon on `port` of this host. Made if it is not there.
    ///
    /// # Errors
    /// When there is no place for it, or what lies there is a link, another user's, or open to others.
    pub fn open(folder: Option<&Path>, port: u16) -> Result<State> {
        let folder = match folder {
            Some(folder) => {
                let folder = std::path::absolute(folder)?;
                if let Some(parent) = folder.parent() {
                    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
                }
                folder
            }
            None => base()?.join(format!("{}-{port}", host_name())),
        };
        make_private(&folder)?;
        Ok(State { folder })
    }

    /// A new folder that goes with this process.
    ///
    /// # Errors
    /// As [`State::open`].
    pub fn temporary() -> Result<(State, Scratch)> {
        let base = base()?;
        let scratch =
            Scratch::folder_in(&base, "run-").with_context(|| format!("cannot write in {}", base.display()))?;
        Ok((
            State {
                folder: scratch.path().to_owned(),
            },
            scratch,
        ))
    }

    /// Where `name` lies in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Holds everyone else off until the file is dropped.
    ///
    /// # Errors
    /// When the lock cannot be made.
    pub fn lock(&self) -> Result<File> {
        let lock = self.file("lock", OpenOptions::new().write(true).create(true))?;
        flock(&lock, FlockOperation::LockExclusive).context("cannot lock the state folder")?;
        Ok(lock)
    }

    /// An empty file of that name to write to.
    ///
    /// # Errors
    /// When it cannot be made, or is a link.
    pub fn new_file(&self, name: &str) -> Result<File> {
        self.file(name, OpenOptions::new().write(true).create(true).truncate(true))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&self, name: &str, line: &impl Serialize) -> Result<()> {
        append_json_line(&self.path(name), line, 0o600)
    }

    /// Writes a file whole, or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, value: &impl Serialize) -> Result<()> {
        write_json(&self.path(name), value)
    }

    /// Reads what [`State::write`] wrote; none if there is nothing readable of that form.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        read_json(&self.path(name)).ok()
    }

    /// The last `count` lines of a log.
    pub fn tail(&self, name: &str, count: usize) -> Vec<String> {
        let bytes = self
            .file(name, OpenOptions::new().read(true))
            .and_then(|file| {
                let mut bytes = Vec::new();
                file.take(LONGEST).read_to_end(&mut bytes)?;
                Ok(bytes)
            })
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..]
            .iter()
            .map(|&line| line.to_owned())
            .collect()
    }

    /// Takes a file away.
    pub fn forget(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
    }

    fn file(&self, name: &str, options: &mut OpenOptions) -> Result<File> {
        open_no_link(&self.path(name), options.mode(0o600))
    }
}

/// Adds a JSON line in one write, so that lines of several processes stay whole.
///
/// # Errors
/// When it cannot be written, or is a link.
pub fn append_json_line(path: &Path, value: &impl Serialize, mode: u32) -> Result<()> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    let mut file = open_no_link(path, OpenOptions::new().append(true).create(true).mode(mode))?;
    file.write_all(&text)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn open_no_link(path: &Path, options: &mut OpenOptions) -> Result<File> {
    options
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .with_context(|| format!("cannot open {}", path.display()))
}

/// Writes a JSON document in one move.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let (mut file, scratch) = Scratch::file_beside(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    file.write_all(&text)
        .with_context(|| format!("cannot write {}", path.display()))?;
    scratch
        .persist(path)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Reads a JSON document from a regular file that is no link.
///
/// # Errors
/// When there is none of that form.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let open = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path);
    let file = open.with_context(|| format!("cannot read {}", path.display()))?;
    if !file.metadata()?.is_file() {
        bail!("{} is no regular file", path.display());
    }
    serde_json::from_reader(io::BufReader::new(file.take(LONGEST))).with_context(|| format!("{}", path.display()))
}

/// `$XDG_RUNTIME_DIR/tracemend`, else `$XDG_STATE_HOME/tracemend`, else `~/.local/state/tracemend` (XDG base directories).
fn base() -> Result<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let candidates = [
        variable("XDG_RUNTIME_DIR").filter(|folder| folder.is_dir()),
        variable("XDG_STATE_HOME"),
        variable("HOME").map(|home| home.join(".local/state")),
    ];
    let Some(parent) = candidates.into_iter().flatten().next() else {
        bail!("there is no place for the state folder: set XDG_STATE_HOME or HOME, or give --state DIR");
    };
    fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let base = parent.join("tracemend");
    make_private(&base)?;
    Ok(base)
}

/// Makes `folder` for this user only, or takes it if it is that already.
pub fn make_private(folder: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.with_context(|| format!("cannot make {}", folder.display())),
    }
    let meta = fs::symlink_metadata(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let shown = folder.display();
    if !meta.is_dir() {
        bail!("{shown} is a link or no folder, and state is not kept there: take it away, or give --state DIR");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        bail!("{shown} belongs to another user, and state is not kept there: give --state DIR");
    }
    if meta.permissions().mode() & 0o077 != 0 {
        bail!("{shown} is open to other users, and state is not kept there: `chmod 700` it, or give --state DIR");
    }
    Ok(())
}
