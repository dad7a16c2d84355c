//! `tracemend restore`

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use super::text::{one_line, printable};
use super::{Global, Outcome};
use crate::bytes::{RestoreError, open, restore};
use crate::scratch::Scratch;

#[derive(Debug, Args)]
pub struct Restore {
    /// The mended copy
    #[arg(value_name = "COPY")]
    copy: PathBuf,
    /// The log that `repair --log` wrote with it
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Where the original goes; it is replaced whole, or not touched
    #[arg(short, long, value_name = "ORIGINAL")]
    output: PathBuf,
}

impl Restore {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let copy = File::open(&self.copy).with_context(|| format!("cannot read {}", self.copy.display()))?;
        let (_, copy) = open(copy).with_context(|| format!("cannot read {}", self.copy.display()))?;
        let log = File::open(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        let (file, scratch) =
            Scratch::file_beside(&self.output).with_context(|| format!("cannot write {}", self.output.display()))?;
        match restore(copy, BufReader::new(log), BufWriter::with_capacity(1 << 20, file)) {
            Ok(_) => {}
            Err(RestoreError::Io(error)) => {
                return Err(error).with_context(|| format!("cannot write {}", self.output.display()));
            }
            Err(error) => {
                eprintln!("tracemend: nothing restored: {}", one_line(&error.to_string()));
                return Ok(Outcome::BadNews);
            }
        }
        scratch
            .persist(&self.output)
            .with_context(|| format!("cannot write {}", self.output.display()))?;
        if !global.quiet {
            writeln!(
                io::stdout().lock(),
                "{}: restored",
                printable(&self.output.to_string_lossy())
            )?;
        }
        Ok(Outcome::Done)
    }
}
