//! `tracemend capture run`

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use super::super::text::printable;
use super::super::{Global, Outcome};
use super::options::{CaptureOptions, DaemonOptions, port, seconds};
use super::report::{self, ATTEMPTS};
use crate::capture::{
    Cancel, Daemon, Gathered, LogPath, Manifest, State, TriggerResult, WaitOptions, make_private, wait, write_hook,
};

#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    capture: CaptureOptions,
    #[command(flatten)]
    daemon: DaemonOptions,
    /// How long traces may take to come after they were asked for
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    deadline: Duration,
    /// How long the daemon may take to end before it is killed
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    grace: Duration,
    /// Put no start-up hook on PYTHONPATH: launchers register too, and iterations may not be counted
    #[arg(long)]
    no_hook: bool,
    /// Write what was captured as JSON into this file; standard output is the command's own
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Signals that go to the command, not to us.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
/// The longest path of a UNIX socket is 107 bytes (unix(7)), and libkineto's own name takes 53 of them.
const LONGEST_SOCKET_FOLDER: usize = 50;

type Captured = (Option<TriggerResult>, Vec<Gathered>);

/// Told on standard error: standard output is the command's.
fn told(quiet: bool) -> impl Fn(&str) + Sync + Copy {
    move |text: &str| {
        if !quiet {
            let _ = writeln!(io::stderr().lock(), "tracemend: {}", printable(text));
        }
    }
}

/// What the capture side has ready before the command starts.
struct Ready {
    state: State,
    _folder: crate::scratch::Scratch,
    daemon: Daemon,
    port: u16,
    output: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

impl Run {
    pub(super) fn run(mut self, global: &Global) -> Result<Outcome> {
        let say = told(global.quiet);
        let cancel = Arc::new(Cancel::default());
        let child_id: Arc<Mutex<Option<Pid>>> = Arc::default();
        pass_signals_on(&cancel, &child_id)?;
        // What the user asked for wrongly is said before anything runs; what fails later costs the capture, not the command.
        let output = self.capture.output_folder()?;
        let writable = LogPath::new(&output, "probe.json").map_or_else(|_| PathBuf::from("/tmp"), |_| output.clone());
        let allowed = std::env::var_os("KINETO_ONDEMAND_TRACE_DIR").map_or(writable, PathBuf::from);
        let wanted_port = port(self.capture.port)?;
        let checked = CaptureOptions {
            via: super::options::Via::Rpc,
            port: Some(wanted_port.unwrap_or(1)),
            ..self.capture.clone()
        };
        drop(checked.plan(Some(&allowed))?);
        let ready = match self.prepare(&output, &allowed, wanted_port, &cancel) {
            Ok(ready) => Some(ready),
            Err(error) => {
                say(&format!(
                    "no capture: {}",
                    super::super::one_line(&format!("{error:#}"))
                ));
                None
            }
        };
        if cancel.is_cancelled() {
            return Ok(Outcome::Code(130));
        }
        if let Some(ready) = &ready {
            self.capture.port = Some(ready.port);
            say(&format!(
                "dynolog daemon started (PID: {}, port: {})",
                ready.daemon.identity().pid,
                ready.port
            ));
        }
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        if let Some(ready) = &ready {
            command.envs(ready.environment.iter().map(|(name, value)| (name, value)));
        }
        let child = {
            let mut id = child_id.lock().unwrap_or_else(PoisonError::into_inner);
            let child = command
                .spawn()
                .with_context(|| format!("cannot start {}", self.command[0].display()))?;
            *id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            child
        };
        let Some(mut ready) = ready else {
            let status = wait_for(child, &child_id)?;
            return Ok(Outcome::Code(exit_code(status)));
        };
        say("trace trigger armed");
        let (status, (result, files)) = std::thread::scope(|scope| {
            let capturing = scope.spawn(|| self.capture_beside(global, &ready, &allowed, &cancel, say));
            let status = wait_for(child, &child_id);
            cancel.cancel();
            let captured = capturing.join().unwrap_or_else(|_| (None, Vec::new()));
            status.map(|status| (status, captured))
        })?;
        ready.daemon.stop(self.grace);
        let attempts = ready.state.tail(ATTEMPTS, usize::MAX).len();
        let ending = result.as_ref().map(|result| result.result);
        let lines = report::conclusion(
            ending,
            u32::try_from(attempts).unwrap_or(u32::MAX),
            &files,
            &ready.output,
        );
        lines.iter().for_each(|line| say(line));
        say("dynolog cleanup complete");
        if let Some(path) = &self.json {
            let document = json!({
                "exit_code": exit_code(status), "trigger": result, "output": ready.output, "traces": files, "summary": lines,
            });
            if let Err(error) = crate::capture::write_json(path, &document) {
                say(&format!("{error:#}"));
            }
        }
        Ok(Outcome::Code(exit_code(status)))
    }

    fn prepare(&self, output: &Path, allowed: &Path, wanted_port: Option<u16>, cancel: &Cancel) -> Result<Ready> {
        let (state, folder) = State::temporary()?;
        let port = match wanted_port {
            Some(port) => port,
            None => free_port()?,
        };
        let mut environment: Vec<(&'static str, OsString)> = vec![("KINETO_USE_DAEMON", "1".into())];
        environment.push(("KINETO_ONDEMAND_TRACE_DIR", allowed.into()));
        let sockets = state.path("ipc");
        let mut of_daemon = Vec::new();
        // Without a folder of its own, a daemon shares one name with all others of this machine.
        if std::env::var_os("KINETO_IPC_SOCKET_DIR").is_none() && sockets.as_os_str().len() <= LONGEST_SOCKET_FOLDER {
            make_private(&sockets)?;
            environment.push(("KINETO_IPC_SOCKET_DIR", sockets.clone().into()));
            of_daemon.push(("KINETO_IPC_SOCKET_DIR", sockets));
        }
        if !self.no_hook {
            environment.push(("PYTHONPATH", write_hook(&state, std::env::var_os("PYTHONPATH"))?));
        }
        let daemon = Daemon::start(
            &self.daemon.dynolog,
            port,
            &state,
            &of_daemon,
            self.daemon.ready_within,
            &|| cancel.is_cancelled(),
        )?;
        Ok(Ready {
            state,
            _folder: folder,
            daemon,
            port,
            output: output.to_owned(),
            environment,
        })
    }

    /// Trigger and wait, while the command runs. Once it has ended, there is nothing to wait for but files that are there.
    fn capture_beside(
        &self,
        global: &Global,
        ready: &Ready,
        allowed: &Path,
        cancel: &Cancel,
        say: impl Fn(&str) + Sync + Copy,
    ) -> Captured {
        let asked = || -> Result<(TriggerResult, Vec<Manifest>)> {
            let site = global.site()?;
            let mut plan = self.capture.plan(Some(allowed))?;
            report::trigger(&site, &self.capture, &mut plan, &ready.state, cancel, &say)
        };
        match asked() {
            Err(error) => {
                say(&format!(
                    "no capture: {}",
                    super::super::one_line(&format!("{error:#}"))
                ));
                (None, Vec::new())
            }
            Ok((result, manifests)) => {
                let files = wait(&WaitOptions {
                    manifests: &manifests,
                    output: &ready.output,
                    deadline: self.deadline,
                    cancel,
                    progress: &|gathered| say(&report::fate(gathered)),
                });
                (Some(result), files)
            }
        }
    }
}

/// A signal that a process sent to us goes to the command. One of the terminal has reached it already, and only ends our own waiting
/// if there is no command yet.
fn pass_signals_on(cancel: &Arc<Cancel>, child: &Arc<Mutex<Option<Pid>>>) -> Result<()> {
    let mut signals = SignalsInfo::<WithOrigin>::new(PASSED_ON).context("cannot watch for signals")?;
    let (cancel, child) = (Arc::clone(cancel), Arc::clone(child));
    std::thread::spawn(move || {
        for origin in &mut signals {
            let child = *child.lock().unwrap_or_else(PoisonError::into_inner);
            match (child, Signal::from_named_raw(origin.signal)) {
                (Some(child), Some(signal)) if !matches!(origin.cause, Cause::Kernel) => {
                    let _ = kill_process(child, signal);
                }
                (Some(_), _) => {}
                (None, _) => cancel.cancel(),
            }
        }
    });
    Ok(())
}

/// Waits, and forgets the id before it can be another's.
fn wait_for(mut child: Child, id: &Mutex<Option<Pid>>) -> io::Result<ExitStatus> {
    let mut pause = Duration::from_millis(1);
    let started = Instant::now();
    loop {
        {
            let mut id = id.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(status) = child.try_wait()? {
                *id = None;
                return Ok(status);
            }
        }
        std::thread::sleep(pause);
        pause = if started.elapsed() > Duration::from_secs(1) {
            Duration::from_millis(20)
        } else {
            (pause * 2).min(Duration::from_millis(10))
        };
    }
}

/// As shells have it: 128 and the signal's number.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// A port that nobody listens on now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("::", 0))
        .or_else(|_| TcpListener::bind(("127.0.0.1", 0)))?
        .local_addr()?
        .port())
}
