//! Where the configuration lies.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;

/// The configuration's file name.
pub const NAME: &str = "tracemend.toml";

/// What led to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `--config`.
    Option,
    /// `$TRACEMEND_CONFIG`.
    Variable,
    /// The current folder.
    CurrentFolder,
    /// `$XDG_CONFIG_HOME/tracemend`, or `~/.config/tracemend`.
    User,
    /// `/etc/tracemend`.
    System,
}

impl Source {
    /// For people: what named the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Option => "--config",
            Source::Variable => "$TRACEMEND_CONFIG",
            Source::CurrentFolder => "the current folder",
            Source::User => "the user's configuration",
            Source::System => "the system's configuration",
        }
    }
}

/// A place where a configuration may lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Looked {
    /// The file.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// What led there.
    pub source: Source,
    /// Whether a file is there.
    pub there: bool,
}

fn lossy<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Every place, in the order in which they are looked at; a file that is named, by `given` or the variable, is the only place.
pub fn places(given: Option<&Path>) -> Vec<Looked> {
    let looked = |path: PathBuf, source| Looked {
        there: path.exists(),
        path,
        source,
    };
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(given) = given {
        return vec![looked(given.to_owned(), Source::Option)];
    }
    if let Some(named) = variable("TRACEMEND_CONFIG") {
        return vec![looked(named, Source::Variable)];
    }
    let user = variable("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| variable("HOME").map(|home| home.join(".config")));
    let mut places = vec![looked(NAME.into(), Source::CurrentFolder)];
    places.extend(user.map(|user| looked(user.join("tracemend").join(NAME), Source::User)));
    places.push(looked(Path::new("/etc/tracemend").join(NAME), Source::System));
    places
}

/// The first of `places` that is there; none means the built-in order.
///
/// # Errors
/// When a file that is named is not there.
pub fn find(places: &[Looked]) -> Result<Option<&Looked>> {
    let found = places.iter().find(|place| place.there);
    match (found, places) {
        (None, [named]) => bail!(
            "{} names {}, which is not there",
            named.source.as_str(),
            named.path.display()
        ),
        _ => Ok(found),
    }
}
