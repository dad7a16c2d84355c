//! `tracemend capture wait`

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::super::{Global, Outcome};
use super::options::seconds;
use super::report;
use crate::capture::{Cancel, WaitOptions, newest_manifests, wait};

#[derive(Debug, Args)]
pub struct Wait {
    /// The run's folder, where the manifest of the capture lies
    #[arg(value_name = "FOLDER", default_value = "torch_profiler_output")]
    run: PathBuf,
    /// How long to wait
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    deadline: Duration,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Wait {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let manifests = newest_manifests(&self.run)?;
        if manifests.is_empty() {
            bail!(
                "{} holds no capture manifest: nothing was accepted yet, or its traces go elsewhere",
                self.run.display()
            );
        }
        let print = |gathered: &_| {
            if !self.json && !global.quiet {
                let _ = writeln!(io::stdout().lock(), "{}", report::fate(gathered));
            }
        };
        let files = wait(&WaitOptions {
            manifests: &manifests,
            output: &self.run,
            deadline: self.deadline,
            cancel: &Cancel::default(),
            progress: &print,
        });
        let missing = files.iter().filter(|file| !file.is_there()).count();
        if self.json {
            serde_json::to_writer_pretty(
                io::stdout().lock(),
                &json!({"output": self.run, "missing": missing, "traces": files}),
            )?;
            writeln!(io::stdout().lock())?;
        }
        Ok(Outcome::bad_news_if(missing > 0))
    }
}
