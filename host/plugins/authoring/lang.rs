//! The languages in which a plugin can be written here.

use std::fmt;
use std::str::FromStr;

/// A language with a template and a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lang {
    /// Rust, built by cargo.
    Rust,
    /// Python, built by componentize-py.
    Python,
    /// JavaScript, built by componentize-qjs.
    Js,
    /// C, built by clang.
    C,
}

impl Lang {
    /// Every language.
    pub const ALL: [Lang; 4] = [Lang::Rust, Lang::Python, Lang::Js, Lang::C];

    /// Its name on the command line and in plugin.toml.
    pub fn as_str(self) -> &'static str {
        match self {
            Lang::Rust => "rust",
            Lang::Python => "python",
            Lang::Js => "js",
            Lang::C => "c",
        }
    }

    /// The file with the plugin's source, relative to its folder.
    pub fn source(self) -> &'static str {
        match self {
            Lang::Rust => "src/lib.rs",
            Lang::Python => "plugin.py",
            Lang::Js => "plugin.js",
            Lang::C => "plugin.c",
        }
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Lang {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Lang::ALL.into_iter().find(|lang| lang.as_str() == name);
        found.ok_or_else(|| format!("there is no language {name:?}: rust, python, js or c is wanted"))
    }
}
