//! Which plugins are wanted, from where, and in which order they are asked.

use std::borrow::Cow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::cache::hex;
use super::component::World;
use super::plugin::{Origin, Plugin, PluginHost};
use super::registry::{BUILT_IN, read};

/// Where a plugin is taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// This binary, under this name.
    BuiltIn(String),
    /// A file.
    File(PathBuf),
}

/// A plugin that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Where it is taken from.
    pub place: Place,
    /// The name that it must give itself; none takes any.
    pub name: Option<String>,
    /// The SHA-256 that its file must have, in lower-case hexadecimal; none takes any.
    pub sha256: Option<String>,
    /// The site's values of its settings.
    pub settings: Vec<(String, String)>,
}

impl Wanted {
    /// The built-in plugin `name`.
    pub fn built_in(name: &str) -> Self {
        Wanted {
            place: Place::BuiltIn(name.to_owned()),
            name: None,
            sha256: None,
            settings: Vec::new(),
        }
    }

    /// Whatever plugin is in `file`.
    pub fn file(file: impl Into<PathBuf>) -> Self {
        Wanted {
            place: Place::File(file.into()),
            name: None,
            sha256: None,
            settings: Vec::new(),
        }
    }

    /// Its name, as far as it is known before it is loaded: the one that it must have, else that of its place.
    pub fn name(&self) -> Cow<'_, str> {
        match (&self.name, &self.place) {
            (Some(name), _) | (None, Place::BuiltIn(name)) => name.into(),
            (None, Place::File(file)) => file.file_stem().unwrap_or_default().to_string_lossy(),
        }
    }

    /// Loads it as a plugin of `world`, without its settings.
    ///
    /// # Errors
    /// When it is not there, not what was pinned, no plugin of `world`, or calls itself by another name.
    pub fn load(&self, host: &PluginHost, world: World) -> Result<Plugin> {
        let (origin, wasm) = match &self.place {
            Place::BuiltIn(name) => {
                let built_in = BUILT_IN.iter().find(|(built_in, _)| built_in == name);
                let (_, wasm) = built_in.with_context(|| format!("there is no built-in plugin {name}"))?;
                (Origin::BuiltIn, Cow::Borrowed(*wasm))
            }
            Place::File(file) => (Origin::File(file.clone()), Cow::Owned(read(file)?)),
        };
        if let Some(pinned) = &self.sha256 {
            let found = hex(&Sha256::digest(&wasm));
            if found != *pinned {
                bail!(
                    "its SHA-256 is {found}, and the configuration pins {pinned}: put the file that was pinned back, or pin this one"
                );
            }
        }
        let plugin = host.load(origin, &wasm, Some(world))?;
        match &self.name {
            Some(name) if plugin.name() != name => {
                bail!(
                    "the configuration calls it {name}, and it calls itself {}: use its own name",
                    plugin.name()
                )
            }
            _ => Ok(plugin),
        }
    }
}

/// The plugins of a site, in the order in which they are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Naming policies.
    pub naming: Vec<Wanted>,
    /// The interpreter of what `dyno` says.
    pub interpreter: Wanted,
    /// The interpreter of what the daemon itself replies.
    pub rpc_interpreter: Wanted,
    /// The policy that is asked only where the user wants a guess.
    pub by_elimination: Wanted,
}

/// What proves a rank: what was noted when the trace was taken, then what the trace says of itself.
const PROOF: [&str; 2] = ["capture-manifest", "kineto-content"];
/// What only suggests one: the names that known programs give, then any name.
const HINTS: [&str; 2] = ["producers", "rank-in-name"];

impl Default for Order {
    /// The built-in order, of a site without a configuration.
    fn default() -> Self {
        Order {
            naming: PROOF.into_iter().chain(HINTS).map(Wanted::built_in).collect(),
            interpreter: Wanted::built_in("dyno-cli"),
            rpc_interpreter: Wanted::built_in("dynolog-rpc"),
            by_elimination: Wanted::built_in("by-elimination"),
        }
    }
}

impl Order {
    /// The naming policies of a run: `files` stand behind what proves a rank and before what suggests one; `by_elimination` adds
    /// the guess at the end.
    pub fn naming_with(&self, files: &[PathBuf], by_elimination: bool) -> Vec<Wanted> {
        let mut naming = self.naming.clone();
        let proves = |wanted: &Wanted| PROOF.iter().any(|name| wanted.name() == *name);
        let place = naming.iter().rposition(proves).map_or(0, |last| last + 1);
        naming.splice(place..place, files.iter().map(Wanted::file));
        let guess = &self.by_elimination;
        if by_elimination && !naming.iter().any(|wanted| wanted.name() == guess.name()) {
            naming.push(guess.clone());
        }
        naming
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_stand_between_proof_and_hints() {
        let names = |order: &Order, guess| -> Vec<String> {
            let naming = order.naming_with(&["site/slots.wasm".into()], guess);
            naming.iter().map(|wanted| wanted.name().into_owned()).collect()
        };
        let mut order = Order::default();
        assert_eq!(
            names(&order, true),
            [
                "capture-manifest",
                "kineto-content",
                "slots",
                "producers",
                "rank-in-name",
                "by-elimination"
            ]
        );
        order.naming.reverse();
        assert_eq!(
            names(&order, false),
            [
                "rank-in-name",
                "producers",
                "kineto-content",
                "capture-manifest",
                "slots"
            ]
        );
        order.naming = vec![Wanted::built_in("by-elimination")];
        assert_eq!(names(&order, true), ["slots", "by-elimination"]);
    }
}
