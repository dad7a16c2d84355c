//! Builds the workspaces of guests into components that are kept in the tree, and checks that those come from the sources beside them.

use crate::hash;
use crate::step::{Failed, step};
use crate::tree::Tree;
use crate::wasm::{Compilers, TARGET, Toolchain};
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with a workspace of guests each, relative to the root.
pub const WORKSPACES: [&str; 2] = ["plugins", "tests/guests"];
const CONTRACT: &str = "wit/0.1.0";

/// `built/manifest.json`: what the components beside it were made of.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// SHA-256 over the workspace's sources and the contract.
    sources: String,
    compilers: Compilers,
    /// By file name.
    components: BTreeMap<String, Fingerprint>,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct Fingerprint {
    sha256: String,
    size: u64,
}

impl Fingerprint {
    fn of(bytes: &[u8]) -> Self {
        Fingerprint {
            sha256: hash::of_bytes(bytes),
            size: bytes.len() as u64,
        }
    }
}

/// Components by file name.
type Components = BTreeMap<String, Vec<u8>>;

/// `cargo xtask plugins`.
pub fn build(tree: &Tree) -> anyhow::Result<()> {
    let toolchain = Toolchain::find()?;
    for workspace in WORKSPACES {
        let components = compile(tree, &toolchain, workspace)?;
        store(tree, workspace, &toolchain, &components)?;
        for (name, bytes) in &components {
            eprintln!("xtask: {workspace}/built/{name}: {} bytes", bytes.len());
        }
    }
    Ok(())
}

/// `cargo xtask plugins --check`.
pub fn check(tree: &Tree) -> anyhow::Result<()> {
    // Before anything is built: a forgotten `cargo xtask plugins` is told at once.
    let records = WORKSPACES
        .iter()
        .map(|workspace| check_record(tree, workspace))
        .collect::<Result<Vec<_>, _>>()?;
    let toolchain = Toolchain::find()?;
    for (workspace, recorded) in WORKSPACES.into_iter().zip(records) {
        let components = compile(tree, &toolchain, workspace)?;
        let rebuilt: BTreeMap<_, _> = components
            .iter()
            .map(|(name, bytes)| (name.clone(), Fingerprint::of(bytes)))
            .collect();
        if recorded.components == rebuilt {
            eprintln!("xtask: {workspace}/built is what {workspace}/ gives, byte for byte");
        } else if recorded.compilers == toolchain.compilers {
            return Err(outdated(workspace).into());
        } else {
            store(tree, workspace, &toolchain, &components)?;
            eprintln!(
                "xtask: {workspace}/built came from other compilers: replaced by what {} gives",
                toolchain.summary()
            );
        }
    }
    Ok(())
}

fn outdated(workspace: &str) -> Failed {
    Failed {
        code: 1,
        what: format!("{workspace}/built is not built from {workspace}/: run `cargo xtask plugins` and commit"),
    }
}

/// The manifest, if sources and components are those that it records.
fn check_record(tree: &Tree, workspace: &str) -> anyhow::Result<Manifest> {
    let built = tree.root.join(workspace).join("built");
    let manifest = fs::read(built.join("manifest.json"))
        .ok()
        .and_then(|json| serde_json::from_slice::<Manifest>(&json).ok());
    let manifest = manifest.ok_or_else(|| outdated(workspace))?;
    let kept = manifest
        .components
        .iter()
        .all(|(name, recorded)| fs::read(built.join(name)).is_ok_and(|bytes| Fingerprint::of(&bytes) == *recorded));
    match kept && manifest.sources == sources_hash(tree, workspace)? {
        true => Ok(manifest),
        false => Err(outdated(workspace).into()),
    }
}

fn sources_hash(tree: &Tree, workspace: &str) -> anyhow::Result<String> {
    let is_source = |path: &Path| {
        // The examples are no guests of the workspace: the tests build them as a site would.
        !path.starts_with("plugins/examples")
            && path.extension().is_some_and(|kind| {
                ["lock", "rs", "toml", "txt", "wit"]
                    .iter()
                    .any(|source| kind == *source)
            })
    };
    hash::of_tree(&tree.root, &[workspace.into(), CONTRACT.into()], is_source)
}

fn compile(tree: &Tree, toolchain: &Toolchain, workspace: &str) -> anyhow::Result<Components> {
    step(
        &format!("build {workspace} with {}", toolchain.summary()),
        &mut toolchain.build(tree, workspace),
    )?;
    let out = tree.guests_target().join(TARGET).join("release");
    let mut components = Components::new();
    for name in members(&tree.root.join(workspace))? {
        let wasm = out.join(format!("{}.wasm", name.replace('-', "_")));
        let bytes = fs::read(&wasm).with_context(|| format!("cannot read {}", wasm.display()))?;
        components.insert(format!("{name}.wasm"), bytes);
    }
    Ok(components)
}

/// The names of a workspace's crates: its folders with a manifest.
fn members(workspace: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace).with_context(|| format!("cannot read {}", workspace.display()))? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

/// Puts components and manifest into `built/` and takes away what is no longer built.
fn store(tree: &Tree, workspace: &str, toolchain: &Toolchain, components: &Components) -> anyhow::Result<()> {
    let built = tree.root.join(workspace).join("built");
    fs::create_dir_all(&built).with_context(|| format!("cannot make {}", built.display()))?;
    for (name, bytes) in components {
        replace(&built.join(name), bytes)?;
    }
    for entry in fs::read_dir(&built)? {
        let path = entry?.path();
        let stale = path.extension().is_some_and(|kind| kind == "wasm")
            && path
                .file_name()
                .is_some_and(|name| !components.contains_key(&*name.to_string_lossy()));
        if stale {
            fs::remove_file(path)?;
        }
    }
    let manifest = Manifest {
        sources: sources_hash(tree, workspace)?,
        compilers: toolchain.compilers.clone(),
        components: components
            .iter()
            .map(|(name, bytes)| (name.clone(), Fingerprint::of(bytes)))
            .collect(),
    };
    replace(
        &built.join("manifest.json"),
        format!("{}\n", serde_json::to_string_pretty(&manifest)?).as_bytes(),
    )
}

/// Writes a file in one move, and only if it changes: its time decides what cargo builds again.
fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".tmp");
    let partial = PathBuf::from(partial);
    fs::write(&partial, bytes)
        .and_then(|()| fs::rename(&partial, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
