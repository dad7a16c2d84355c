//! `tracemend completions`

use std::io::{self, Write};

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use super::{Cli, Outcome};

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell to write them for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<Outcome> {
        // Written whole, so that a reader which closes early is an error that is known, not a panic.
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "tracemend", &mut script);
        io::stdout().lock().write_all(&script)?;
        Ok(Outcome::Done)
    }
}
