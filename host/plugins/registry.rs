//! Which plugins a command uses, in which order.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::component::World;
use super::plugin::{Origin, Plugin, PluginHost};

macro_rules! built_in {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../plugins/built/", $name, ".wasm")))
    };
}

/// The components embedded in this binary.
pub const BUILT_IN: [(&str, &[u8]); 7] = [
    built_in!("capture-manifest"),
    built_in!("kineto-content"),
    built_in!("producers"),
    built_in!("rank-in-name"),
    built_in!("by-elimination"),
    built_in!("dyno-cli"),
    built_in!("dynolog-rpc"),
];

/// What proves a rank: what was noted when the trace was taken, then what the trace says of itself.
const BEFORE_SITE: [&str; 2] = ["capture-manifest", "kineto-content"];
/// What only suggests one: the names that known programs give, then any name.
const AFTER_SITE: [&str; 2] = ["producers", "rank-in-name"];
/// The guess that is made only when asked for.
const BY_ELIMINATION: &str = "by-elimination";

/// A component larger than this is refused unread: the largest toolchain known (Python's) makes 18 MB (facts/wasm.md section 4).
const MAX_FILE: u64 = 256 << 20;

/// The plugins of one command, and those that could not be used.
#[derive(Default)]
pub struct Registry {
    /// Usable plugins in the order in which they are asked.
    pub plugins: Vec<Plugin>,
    /// Plugins that were asked for and refused, each with the reason.
    pub refused: Vec<(PathBuf, anyhow::Error)>,
}

impl Registry {
    /// The naming policies of a run: the built-in ones, with the plugins of `files` after what proves a rank and before what
    /// suggests one; `by_elimination` adds the guess from what differs between names.
    ///
    /// # Errors
    /// When a built-in plugin does not load. A refused file is listed in `refused` instead: the run goes on without it.
    pub fn naming(host: &PluginHost, files: &[PathBuf], by_elimination: bool) -> Result<Self> {
        let mut registry = Registry::default();
        for name in BEFORE_SITE {
            registry.plugins.push(built_in(host, name)?);
        }
        for file in files {
            match from_file(host, file, Some(World::TraceNaming)) {
                Ok(plugin) => registry.plugins.push(plugin),
                Err(error) => registry.refused.push((file.clone(), error)),
            }
        }
        for name in AFTER_SITE.into_iter().chain(by_elimination.then_some(BY_ELIMINATION)) {
            registry.plugins.push(built_in(host, name)?);
        }
        Ok(registry)
    }

    /// The interpreter of dyno's answers: `file`, or the built-in `dyno-cli`.
    ///
    /// # Errors
    /// When it cannot be loaded.
    pub fn interpreter(host: &PluginHost, file: Option<&Path>) -> Result<Plugin> {
        match file {
            Some(file) => from_file(host, file, Some(World::DynoInterpreter)),
            None => built_in(host, "dyno-cli"),
        }
    }
}

/// Loads the embedded plugin `name`.
///
/// # Errors
/// When there is none of that name, or it does not load.
pub fn built_in(host: &PluginHost, name: &str) -> Result<Plugin> {
    let Some((_, wasm)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) else {
        bail!("there is no built-in plugin {name}");
    };
    host.load(Origin::BuiltIn, wasm, None)
        .with_context(|| format!("the built-in plugin {name}"))
}

/// Loads the plugin in `file`.
///
/// # Errors
/// When the file cannot be read, or is no plugin of world `wanted`.
pub fn from_file(host: &PluginHost, file: &Path, wanted: Option<World>) -> Result<Plugin> {
    let mut wasm = Vec::new();
    let opened = File::open(file).with_context(|| "it cannot be opened".to_owned())?;
    if !opened.metadata().is_ok_and(|meta| meta.is_file()) {
        bail!("it is no regular file");
    }
    opened
        .take(MAX_FILE + 1)
        .read_to_end(&mut wasm)
        .context("it cannot be read")?;
    if wasm.len() as u64 > MAX_FILE {
        bail!("it is larger than {} MiB", MAX_FILE >> 20);
    }
    host.load(Origin::File(file.to_owned()), &wasm, wanted)
}
