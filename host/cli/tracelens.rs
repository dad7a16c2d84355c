//! The options by which a command finds TraceLens.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::plugins::user_cache;
use crate::reports::{Driver, Extra, Generator, Interpreter, Settings};

#[derive(Debug, Args)]
pub(super) struct TraceLensOptions {
    /// The interpreter of the environment that TraceLens is installed in, such as VENV/bin/python
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Leave PYTHONPATH as it is for TraceLens
    #[arg(long)]
    keep_pythonpath: bool,
}

impl TraceLensOptions {
    /// The interpreter that is named, by the option or by TRACELENS_VENV.
    pub(super) fn python(&self) -> Option<PathBuf> {
        self.python.clone().or_else(python_of_venv)
    }

    /// The interpreter that is named.
    ///
    /// # Errors
    /// When none is, or it has no TraceLens.
    pub(super) fn interpreter(&self, scratch: &Path) -> Result<Interpreter> {
        let Some(python) = self.python() else {
            anyhow::bail!("TraceLens is wanted: give --python VENV/bin/python, or set TRACELENS_VENV")
        };
        Interpreter::find(&python, self.keep_pythonpath, scratch)
    }

    /// TraceLens, with the options that the user hands on to `only_for`.
    ///
    /// # Errors
    /// When there is none, or the options are no options.
    pub(super) fn driver(&self, extra: &[OsString], only_for: Vec<Generator>, scratch: &Path) -> Result<Driver> {
        let settings = Settings {
            extra: Extra::parse(extra, only_for)?,
            ..Settings::default()
        };
        Ok(Driver::new(self.interpreter(scratch)?, settings))
    }

    /// Finds out which flags `generators` know.
    pub(super) fn learn(&self, driver: &mut Driver, generators: &[Generator], scratch: &Path) {
        let cache = user_cache().map(|folder| folder.join("tracelens"));
        driver.learn(generators, cache.as_deref(), scratch);
    }
}

/// `$TRACELENS_VENV/bin/python3`, if it is there; spaces around the value do not count (facts/seed.md section 4.1).
fn python_of_venv() -> Option<PathBuf> {
    let venv = std::env::var_os("TRACELENS_VENV")?;
    let venv = OsString::from_vec(venv.as_bytes().trim_ascii().to_vec());
    let python = Path::new(&venv).join("bin").join("python3");
    (!venv.is_empty() && python.is_file()).then_some(python)
}
