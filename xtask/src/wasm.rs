//! The compiler of the tree's own guests.

use crate::step::Failed;
use crate::tree::{Tree, cargo_program};
use serde::{Deserialize, Serialize};
use std::process::Command;

pub use toolchain::TARGET;

/// What decides the bytes of a component besides its sources.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Compilers {
    rustc: String,
    standard_library: String,
    cargo: String,
    linker: String,
}

pub struct Toolchain {
    found: toolchain::Toolchain,
    pub compilers: Compilers,
}

impl Toolchain {
    pub fn find() -> Result<Self, Failed> {
        let refused = |what: String| Failed { code: 1, what };
        let found = toolchain::Toolchain::find(TARGET).map_err(|missing| refused(missing.to_string()))?;
        let linker = found.linker.as_ref().ok_or_else(|| {
            refused("no wasm-component-ld: it comes with the Rust that rustup installs (https://rustup.rs)".into())
        })?;
        let compilers = Compilers {
            rustc: toolchain::version_of(&found.rustc),
            standard_library: if found.std_source.is_some() {
                "built from source"
            } else {
                "as installed"
            }
            .into(),
            cargo: toolchain::version_of(cargo_program()),
            linker: toolchain::version_of(linker),
        };
        Ok(Toolchain { found, compilers })
    }

    /// One line about it, for people.
    pub fn summary(&self) -> String {
        format!(
            "{}, standard library {}",
            self.compilers.rustc, self.compilers.standard_library
        )
    }

    /// `cargo build` in a workspace of guests, such that the bytes depend on the sources and the compilers alone
    /// (facts/wasm.md section 6).
    pub fn build(&self, tree: &Tree, workspace: &str) -> Command {
        let mut cargo = tree.cargo_for_guests(workspace);
        cargo.args(["build", "--locked"]);
        self.found.configure(&mut cargo, &[(tree.root.clone(), "/build")]);
        cargo
    }
}
