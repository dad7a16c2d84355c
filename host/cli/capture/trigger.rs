//! `tracemend capture trigger`

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::super::text::printable;
use super::super::{Global, Outcome};
use super::options::{CaptureOptions, DEFAULT_PORT, port};
use super::report;
use crate::capture::{Cancel, Ending, HostOutcome, State};

#[derive(Debug, Args)]
pub struct TriggerCommand {
    #[command(flatten)]
    capture: CaptureOptions,
    /// Where the attempts are recorded, instead of this user's own folder
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl TriggerCommand {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let mut plan = self.capture.plan(None)?;
        let state = State::open(self.state.as_deref(), port(self.capture.port)?.unwrap_or(DEFAULT_PORT))?;
        let (json, quiet) = (self.json, global.quiet);
        let say = move |text: &str| {
            if json && !quiet {
                eprintln!("tracemend: {}", printable(text));
            } else if !quiet {
                // A reader that is gone stops no capture.
                let _ = writeln!(io::stdout().lock(), "{}", printable(text));
            }
        };
        let site = global.site()?;
        let (result, manifests) = report::trigger(&site, &self.capture, &mut plan, &state, &Cancel::default(), &say)?;
        if self.json {
            let document = json!({
                "result": result.result, "hosts": result.hosts, "manifests": manifests, "output": plan.output,
                "state": state.folder(),
            });
            serde_json::to_writer_pretty(io::stdout().lock(), &document)?;
            writeln!(io::stdout().lock())?;
        }
        // Ranks that the user did not name may be missing for good reasons: those are told, no more.
        let is_whole = |host: &HostOutcome| {
            host.result == Ending::Accepted && (host.ranks_missing == 0 || self.capture.expect.is_none())
        };
        Ok(Outcome::bad_news_if(!result.hosts.iter().all(is_whole)))
    }
}
