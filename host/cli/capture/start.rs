//! `tracemend capture start`

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use super::super::{Global, Outcome};
use super::options::{CaptureOptions, DEFAULT_PORT, DaemonOptions, port};
use super::report::{ATTEMPTS, DAEMON, RESULT, TRIGGER_LOG};
use crate::capture::{Daemon, DaemonRecord, Ended, Identity, State, answers, now};
use crate::scratch::ProcessGroup;

#[derive(Debug, Args)]
pub struct Start {
    #[command(flatten)]
    capture: CaptureOptions,
    #[command(flatten)]
    daemon: DaemonOptions,
    /// Start the daemon only
    #[arg(long)]
    no_trigger: bool,
    /// Where the capture is remembered, instead of this user's own folder
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl Start {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        // All that can be wrong with the request is told here, not in a log.
        let plan = self.capture.plan(None)?;
        let port = port(self.capture.port)?.unwrap_or(DEFAULT_PORT);
        let state = State::open(self.state.as_deref(), port)?;
        let _lock = state.lock()?;
        let known = state.read::<DaemonRecord>(DAEMON);
        let daemon = known
            .as_ref()
            .and_then(|record| record.daemon)
            .filter(|daemon| daemon.is_alive());
        let armed = known
            .as_ref()
            .and_then(|record| record.trigger)
            .filter(|trigger| trigger.is_alive());
        let mut lines = Vec::new();
        let mut fresh = None;
        let mut armed_now = None;
        let daemon = if let Some(daemon) = daemon {
            lines.push(format!(
                "dynolog daemon already runs (PID: {}, port: {port})",
                daemon.pid
            ));
            Some(daemon)
        } else if answers(port, Duration::from_secs(5)) {
            lines.push(format!(
                "a dynolog daemon that this capture did not start answers on port {port}; `stop` will leave it running"
            ));
            None
        } else {
            let started = Daemon::start(
                &self.daemon.dynolog,
                port,
                &state,
                &[],
                self.daemon.ready_within,
                &|| false,
            )?;
            let identity = started.identity();
            lines.push(format!("dynolog daemon started (PID: {}, port: {port})", identity.pid));
            fresh = Some(started);
            Some(identity)
        };
        let trigger = match armed {
            Some(trigger) => {
                lines.push(format!("trace trigger is armed already (PID: {})", trigger.pid));
                Some(trigger)
            }
            None if self.no_trigger => None,
            None => {
                let (trigger, group) = self.arm(&state, port)?;
                armed_now = Some(group);
                lines.push(format!("trace trigger armed (PID: {})", trigger.pid));
                Some(trigger)
            }
        };
        let record = DaemonRecord {
            daemon,
            port,
            trigger,
            output: plan.output.clone(),
            started_at: now(),
        };
        if let Err(error) = state.write(DAEMON, &record) {
            if let Some(trigger) = trigger.filter(|_| armed_now.is_some()) {
                Ended::end(trigger, Duration::from_secs(5));
            }
            return Err(error);
        }
        // Only now is it remembered, and may outlive this process.
        fresh.map(Daemon::leave_running);
        drop(armed_now);
        if self.json {
            serde_json::to_writer_pretty(
                io::stdout().lock(),
                &json!({"state": state.folder(), "capture": record, "notes": lines}),
            )?;
            writeln!(io::stdout().lock())?;
        } else if !global.quiet {
            for line in lines {
                writeln!(io::stdout().lock(), "{}", super::super::text::printable(&line))?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Starts `capture trigger` with the same options in the background.
    fn arm(&self, state: &State, port: u16) -> Result<(Identity, ProcessGroup)> {
        state.forget(RESULT);
        state.forget(ATTEMPTS);
        let log = state.new_file(TRIGGER_LOG)?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command
            .args(["capture", "trigger", "--state"])
            .arg(state.folder())
            .args(["--port", &port.to_string()]);
        // The options of both commands are the same ones; those of `start` alone are left out.
        command.args(own_arguments());
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        let (child, group) = ProcessGroup::of(|| command.spawn()).context("cannot start the trigger")?;
        let identity = Identity::of(child.id().into()).context("the trigger ended at once")?;
        Ok((identity, group))
    }
}

/// This command's own words without those that only `start` knows, the port, and the state folder.
fn own_arguments() -> Vec<std::ffi::OsString> {
    const WITH_VALUE: [&str; 4] = ["--dynolog", "--ready-within", "--state", "--port"];
    const ALONE: [&str; 2] = ["--no-trigger", "--json"];
    let mut words = std::env::args_os().skip(1).skip_while(|word| word != "start").skip(1);
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if WITH_VALUE.contains(&&*text) {
            words.next();
        } else if !ALONE.contains(&&*text) && !WITH_VALUE.iter().any(|name| text.starts_with(&format!("{name}="))) {
            kept.push(word);
        }
    }
    kept
}
