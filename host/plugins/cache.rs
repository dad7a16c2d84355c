//! Native code of plugins, kept on disk between runs.
//!
//! Loading damaged native code is undefined behaviour (facts/wasm.md, finding 3), so each file begins with the SHA-256 of the
//! rest, and the folder is used only while it is ours alone. Anything doubtful is compiled again; the cache never fails a run.

use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::Engine;

const DIGEST: usize = 32;

/// A private folder of native code, or none where there is no such place.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: Option<PathBuf>,
}

/// The user's folder for what can be made again: `$XDG_CACHE_HOME/tracemend`, else `~/.cache/tracemend`.
pub fn user_cache() -> Option<PathBuf> {
    let home = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = home("XDG_CACHE_HOME").or_else(|| home("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("tracemend"))
}

impl Cache {
    /// The user's cache: `$XDG_CACHE_HOME/tracemend/components`, else `~/.cache/tracemend/components`.
    pub fn of_user() -> Self {
        Cache {
            folder: user_cache().map(|folder| folder.join("components")),
        }
    }

    /// A cache in `folder`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Cache {
            folder: Some(folder.into()),
        }
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Name of the native code of `wasm` under `engine`: both the plugin's bytes and all that shapes its compilation count.
    pub(super) fn key(engine: &Engine, wasm: &[u8]) -> String {
        struct Update<'a>(&'a mut Sha256);
        impl std::hash::Hasher for Update<'_> {
            fn finish(&self) -> u64 {
                0
            }
            fn write(&mut self, bytes: &[u8]) {
                self.0.update(bytes);
            }
        }
        let mut digest = Sha256::new();
        digest.update(Sha256::digest(wasm));
        std::hash::Hash::hash(&engine.precompile_compatibility_hash(), &mut Update(&mut digest));
        hex(&digest.finalize())
    }

    /// The native code stored under `key`, if it is there and whole.
    pub(super) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let folder = self.folder.as_deref().filter(|folder| is_private(folder))?;
        let mut file = fs::read(folder.join(key)).ok()?;
        if file.len() <= DIGEST || Sha256::digest(&file[DIGEST..])[..] != file[..DIGEST] {
            return None;
        }
        file.drain(..DIGEST);
        Some(file)
    }

    /// Stores `code` under `key`. A cache that cannot be written costs time, nothing else.
    pub(super) fn put(&self, key: &str, code: &[u8]) {
        let Some(folder) = self.folder.as_deref() else { return };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        if made.is_err() || !is_private(folder) {
            return;
        }
        let store = || -> std::io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            file.persist(folder.join(key))?;
            Ok(())
        };
        // Another process may have removed the folder, or the disk is full.
        let _ = store();
    }
}

/// Only we may write there: native code from a folder that others can write to would be theirs to choose.
fn is_private(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
    })
}

/// Lower-case hexadecimal digits of `bytes`.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_code_is_not_given_out() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().join("components"));
        assert_eq!(cache.get("key"), None);
        cache.put("key", b"native code");
        assert_eq!(cache.get("key").unwrap(), b"native code");

        let file = folder.path().join("components/key");
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&file, bytes).unwrap();
        assert_eq!(cache.get("key"), None);
    }

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().join("components"));
        cache.put("key", b"native code");
        fs::set_permissions(folder.path().join("components"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(cache.get("key"), None);
        cache.put("other", b"native code");
        assert!(!folder.path().join("components/other").exists());
    }
}
