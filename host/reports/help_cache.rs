//! What generators say of their flags, kept in the user's cache: asking takes a second and a half each (facts/tracelens.md
//! section 6). Anything doubtful is asked for again; the cache never fails a run.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::flags::Flags;
use super::generator::Generator;
use super::interpreter::Interpreter;

/// One file of the cache: that of one interpreter with one TraceLens.
#[derive(Debug)]
pub struct HelpCache {
    file: Option<PathBuf>,
}

impl HelpCache {
    /// The file for `interpreter` in `folder`, if there is a folder.
    pub fn of(interpreter: &Interpreter, folder: Option<&Path>) -> Self {
        let mut digest = Sha256::new();
        let found = &interpreter.tracelens;
        for part in [&Some(found.path.clone()), &found.distribution, &found.commit] {
            digest.update(part.as_deref().unwrap_or_default());
            digest.update([0]);
        }
        digest.update(interpreter.python.as_os_str().as_encoded_bytes());
        // An installation from a checkout changes without a new version.
        let modules = Generator::ALL.map(|generator| Path::new(&found.path).join(generator.module_file()));
        for path in modules.iter().chain([&interpreter.python]) {
            let stamp = fs::metadata(path).map(|meta| (meta.mtime(), meta.mtime_nsec(), meta.size()));
            digest.update(format!("{:?}\n", stamp.ok()));
        }
        let name: String = digest.finalize()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        HelpCache {
            file: folder.map(|folder| folder.join(format!("{name}.json"))),
        }
    }

    /// What is known.
    pub fn read(&self) -> BTreeMap<String, Flags> {
        let read = || serde_json::from_slice(&fs::read(self.file.as_deref()?).ok()?).ok();
        read().unwrap_or_default()
    }

    /// Keeps what is known now.
    pub fn write(&self, known: &BTreeMap<String, Flags>) {
        let write = |file: &Path| -> std::io::Result<()> {
            let folder = file.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder)?;
            let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut temporary, known)?;
            temporary.flush()?;
            temporary.persist(file)?;
            Ok(())
        };
        if let Some(file) = &self.file {
            // A cache that cannot be written costs time, nothing else.
            let _ = write(file);
        }
    }
}
