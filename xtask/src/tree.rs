//! Where the sources lie and where results go.

use anyhow::Context;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use toolchain::cargo_program;

pub struct Tree {
    /// The root of the repository, absolute.
    pub root: PathBuf,
    /// Cargo's target folder, absolute: `$CARGO_TARGET_DIR`, else `target` in the root.
    pub target: PathBuf,
}

impl Tree {
    /// The tree that cargo started this program from.
    pub fn at_hand() -> anyhow::Result<Self> {
        let xtask = env::var_os("CARGO_MANIFEST_DIR").context("start this program as `cargo xtask`")?;
        let root = Path::new(&xtask)
            .parent()
            .context("xtask/ lies in no repository")?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
            Some(dir) => std::path::absolute(dir)?,
            None => root.join("target"),
        };
        Ok(Tree { root, target })
    }

    /// cargo, to be run in the root.
    pub fn cargo(&self) -> Command {
        let mut cargo = Command::new(cargo_program());
        cargo.current_dir(&self.root);
        cargo
    }

    /// cargo, to be run in a workspace of guests, with a target folder that all of them share.
    pub fn cargo_for_guests(&self, workspace: &str) -> Command {
        let mut cargo = Command::new(cargo_program());
        cargo
            .current_dir(self.root.join(workspace))
            .env("CARGO_TARGET_DIR", self.guests_target());
        cargo
    }

    pub fn guests_target(&self) -> PathBuf {
        self.target.join("guests")
    }
}
