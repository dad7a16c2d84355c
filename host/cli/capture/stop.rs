//! `tracemend capture stop`

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::super::text::printable;
use super::super::{Global, Outcome};
use super::options::{DEFAULT_PORT, port, seconds};
use super::report::{self, ATTEMPTS, DAEMON, RESULT, TRIGGER_LOG};
use crate::capture::{
    Cancel, DAEMON_LOG, DaemonRecord, Ended, Identity, Manifest, State, TriggerResult, WaitOptions, newest_manifests,
    wait,
};

#[derive(Debug, Args)]
pub struct Stop {
    /// The daemon's port [DYNOLOG_PORT, else 1778]
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Where `start` remembers the capture
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// How long traces that are still being written are waited for
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    deadline: Duration,
    /// How long a process may take to end before it is killed
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    grace: Duration,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Stop {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let state = State::open(self.state.as_deref(), port(self.port)?.unwrap_or(DEFAULT_PORT))?;
        let _lock = state.lock()?;
        let say = |text: &str| {
            if !self.json && !global.quiet {
                let _ = writeln!(io::stdout().lock(), "{}", printable(text));
            }
        };
        let Some(record) = state.read::<DaemonRecord>(DAEMON) else {
            say("dynolog was not started - skipping");
            if self.json {
                writeln!(io::stdout().lock(), "{}", json!({"started": false}))?;
            }
            return Ok(Outcome::Done);
        };
        // The trigger first: it must not meet a daemon that goes.
        let trigger = record.trigger.map(|trigger| self.end("trace trigger", trigger, &say));
        let result = state.read::<TriggerResult>(RESULT);
        let attempts = state.tail(ATTEMPTS, usize::MAX).len();
        let manifests: Vec<Manifest> = newest_manifests(&record.output).unwrap_or_default();
        let own: Vec<Manifest> = manifests
            .into_iter()
            .filter(|manifest| manifest.captured_at >= record.started_at)
            .collect();
        let files = wait(&WaitOptions {
            manifests: &own,
            output: &record.output,
            deadline: self.deadline,
            cancel: &Cancel::default(),
            progress: &|gathered| say(&report::fate(gathered)),
        });
        let daemon = record.daemon.map(|daemon| self.end("dynolog daemon", daemon, &say));
        state.forget(DAEMON);
        let accepted = result
            .as_ref()
            .map(|result| result.result)
            .or((!own.is_empty()).then_some(crate::capture::Ending::Accepted));
        let lines = report::conclusion(
            accepted,
            u32::try_from(attempts).unwrap_or(u32::MAX),
            &files,
            &record.output,
        );
        let missing = files.is_empty() || files.iter().any(|file| !file.is_there());
        let bad = record.trigger.is_some() && missing;
        if self.json {
            let document = json!({
                "started": true, "trigger": trigger, "daemon": daemon, "result": accepted, "output": record.output,
                "traces": files, "summary": lines,
            });
            serde_json::to_writer_pretty(io::stdout().lock(), &document)?;
            writeln!(io::stdout().lock())?;
        }
        lines.iter().for_each(|line| say(line));
        if bad {
            for log in [TRIGGER_LOG, DAEMON_LOG] {
                for line in state.tail(log, 40) {
                    say(&format!("    {log}: {line}"));
                }
            }
        }
        say("dynolog cleanup complete");
        Ok(Outcome::bad_news_if(bad))
    }

    fn end(&self, name: &str, process: Identity, say: &dyn Fn(&str)) -> Ended {
        let ended = Ended::end(process, self.grace);
        let pid = process.pid;
        match ended {
            Ended::WasGone => say(&format!("{name} was no longer running (PID: {pid})")),
            Ended::Gracefully => say(&format!("{name} stopped (PID: {pid})")),
            Ended::Killed => say(&format!("{name} did not stop gracefully and was killed (PID: {pid})")),
        }
        ended
    }
}
