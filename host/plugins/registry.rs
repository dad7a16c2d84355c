//! From what is wanted to what is loaded.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::component::World;
use super::order::{Place, Wanted};
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
    /// Loads `wanted`, plugins of `world`, in order.
    ///
    /// # Errors
    /// When a setting is none of its plugin's. A plugin that is refused is listed in `refused` instead: the run goes on without it.
    pub fn load(host: &PluginHost, wanted: &[Wanted], world: World) -> Result<Self> {
        let mut registry = Registry::default();
        for wanted in wanted {
            match wanted.load(host, world) {
                Ok(mut plugin) => {
                    plugin.configure(wanted.settings.clone())?;
                    registry.plugins.push(plugin);
                }
                Err(error) => {
                    let path = match &wanted.place {
                        Place::BuiltIn(name) => name.into(),
                        Place::File(file) => file.clone(),
                    };
                    registry.refused.push((path, error));
                }
            }
        }
        Ok(registry)
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
    host.load(Origin::File(file.to_owned()), &read(file)?, wanted)
}

/// The bytes of `file`, if it may be a component at all.
pub(super) fn read(file: &Path) -> Result<Vec<u8>> {
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
    Ok(wasm)
}
