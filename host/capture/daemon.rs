//! The life of a dynolog daemon.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::process::Identity;
use super::rpc::{Address, has_status};
use super::state::State;
use crate::scratch::ProcessGroup;

/// The daemon's output in the state folder.
pub const DAEMON_LOG: &str = "dynolog.log";
/// For a daemon that nobody has come to need.
const GRACE_OF_DROPPED: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What `capture start` leaves for `capture stop`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DaemonRecord {
    /// The daemon, if this capture started it.
    pub daemon: Option<Identity>,
    /// Its port.
    pub port: u16,
    /// The trigger that was armed.
    pub trigger: Option<Identity>,
    /// The run's folder.
    pub output: PathBuf,
    /// In seconds since 1970.
    pub started_at: f64,
}

/// How a process was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It no longer ran.
    WasGone,
    /// It ended when asked to.
    Gracefully,
    /// It had to be killed.
    Killed,
}

impl Ended {
    /// Asks `process` to end, and kills it if it does not within `grace`. Nobody else is touched, whoever has its id by then.
    pub fn end(process: Identity, grace: Duration) -> Ended {
        if !process.is_alive() {
            return Ended::WasGone;
        }
        process.signal(Signal::TERM);
        if gone_within(process, grace) {
            return Ended::Gracefully;
        }
        process.signal(Signal::KILL);
        gone_within(process, Duration::from_secs(10));
        Ended::Killed
    }
}

fn gone_within(process: Identity, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    loop {
        if !process.is_alive() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether a dynolog answers at `port` of this machine.
pub fn answers(port: u16, timeout: Duration) -> bool {
    has_status(
        &Address {
            host: "localhost".into(),
            port,
        },
        timeout,
    )
}

/// A daemon that this process started, and ends with unless it is left running.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    identity: Identity,
    group: Option<ProcessGroup>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.stop(GRACE_OF_DROPPED);
        }
    }
}

impl Daemon {
    /// Starts `program` and waits until it answers.
    ///
    /// # Errors
    /// When it cannot be started, ends, or does not answer within `timeout`; it is ended then, and its last words are told.
    pub fn start(
        program: &Path,
        port: u16,
        state: &State,
        environment: &[(&str, PathBuf)],
        timeout: Duration,
        unwanted: &dyn Fn() -> bool,
    ) -> Result<Daemon> {
        let log = state.new_file(DAEMON_LOG)?;
        let mut command = Command::new(program);
        command.args(["--enable_ipc_monitor", "--port", &port.to_string()]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        let (mut child, group) = ProcessGroup::of(|| command.spawn()).with_context(|| {
            format!(
                "cannot start {}: dynolog is not there (on PATH, or at --dynolog FILE)",
                program.display()
            )
        })?;
        let Some(identity) = Identity::of(child.id().into()) else {
            child.wait()?;
            bail!("the daemon ended at once{}", last_words(state));
        };
        let mut daemon = Daemon {
            child,
            identity,
            group: Some(group),
        };
        let deadline = Instant::now() + timeout;
        while !answers(port, Duration::from_secs(5)) {
            if let Some(status) = daemon.child.try_wait()? {
                bail!("the daemon ended at once ({status}){}", last_words(state));
            }
            if Instant::now() >= deadline || unwanted() {
                daemon.stop(Duration::from_secs(2));
                bail!(
                    "the daemon does not answer on port {port} after {} s{}",
                    timeout.as_secs_f64(),
                    last_words(state)
                );
            }
            std::thread::sleep(LOOK_EVERY);
        }
        // Another's daemon on the port: dynolog only logs that, and goes on without.
        if let Some(status) = daemon.child.try_wait()? {
            bail!(
                "the daemon ended at once ({status}), and another answers on port {port}{}",
                last_words(state)
            );
        }
        Ok(daemon)
    }

    /// Who it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Ends it.
    pub fn stop(&mut self, grace: Duration) -> Ended {
        let ended = Ended::end(self.identity, grace);
        let _: io::Result<_> = self.child.wait();
        ended
    }

    /// Lets it outlive this process.
    pub fn leave_running(mut self) -> Identity {
        self.group = None;
        self.identity
    }
}

fn last_words(state: &State) -> String {
    let lines = state.tail(DAEMON_LOG, 5);
    if lines.is_empty() {
        String::new()
    } else {
        format!(": {}", lines.join(" | "))
    }
}
