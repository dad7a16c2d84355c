//! SHA-256 of files.

use anyhow::Context;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

pub fn of_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One hash over the files below `folders` that `wanted` takes (it gets the path relative to `root`): their paths, sorted, and their
/// content. Hidden names other than `.cargo` are left out, as are folders named `target`, `built` and `__pycache__`.
pub fn of_tree(root: &Path, folders: &[PathBuf], wanted: impl Fn(&Path) -> bool) -> anyhow::Result<String> {
    let mut files = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &mut files)?;
    }
    let mut named = Vec::new();
    for file in files {
        let relative = file.strip_prefix(root)?.to_path_buf();
        if wanted(&relative) {
            let parts: Vec<String> = relative
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            named.push((parts.join("/"), file));
        }
    }
    named.sort();
    let mut hasher = Sha256::new();
    for (name, file) in named {
        let content = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        hasher.update(format!("{name}\0{}\0", content.len()));
        hasher.update(content);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if matches!(&*name, "target" | "built" | "__pycache__") || name.starts_with('.') && name != ".cargo" {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => collect(&entry.path(), files)?,
            false => files.push(entry.path()),
        }
    }
    Ok(())
}
