//! The `dyno` program: which flags it has, and one call of it.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::rpc::Address;
use crate::plugins::Call;
use crate::scratch::OnInterrupt;

/// The help text takes no connection, so a dyno that has not printed it by now never will, and may be killed.
const HELP_TIMEOUT: Duration = Duration::from_secs(20);
/// More output than this is not read.
const LONGEST_OUTPUT: u64 = 16 << 20;
/// How long a running request may still take once nobody wants its answer any more.
pub const LAST_CHANCE: Duration = Duration::from_secs(2);

/// A dyno, and what it knows.
#[derive(Debug, Clone)]
pub struct Dyno {
    program: PathBuf,
    /// What `dyno gputrace --help` prints; none if it could not say.
    help: Option<String>,
}

impl Dyno {
    /// Asks `program` (a path, or a name on PATH) once for its flags: dyno has no version of its own to ask for.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn find(program: PathBuf) -> Result<Dyno> {
        let mut command = Command::new(&program);
        command.args(["gputrace", "--help"]);
        let no_program = || {
            format!(
                "cannot start {}: dyno is not there (on PATH, or at --dyno FILE); --via rpc asks the daemon without it",
                program.display()
            )
        };
        let call = call(&mut command, HELP_TIMEOUT, 1, &|| false, TooLong::Kill).with_context(no_program)?;
        let text = String::from_utf8_lossy(&call.stdout).into_owned();
        let help = (call.exit_code == Some(0) && text.contains("--log-file")).then_some(text);
        Ok(Dyno { program, help })
    }

    /// Whether `dyno gputrace` knows `flag`. One that could not print its help is taken to know what every version does.
    pub fn has(&self, flag: &str) -> bool {
        let names_flag = |text: &str| {
            text.split(|c: char| c.is_whitespace() || c == ',')
                .any(|word| word == flag)
        };
        self.help.as_deref().is_some_and(names_flag)
    }

    /// One request. A dyno that does not come back within `timeout`, or is not wanted any more, is left alone (its id stands in
    /// `stderr` then): killed while it waits for its reply, it would take the daemon with it (facts/dynolog.md section 4).
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn request(
        &self,
        address: &Address,
        arguments: &[String],
        timeout: Duration,
        attempt: u32,
        unwanted: &dyn Fn() -> bool,
    ) -> io::Result<Call> {
        let mut command = Command::new(&self.program);
        command.args([
            "--hostname",
            &address.host,
            "--port",
            &address.port.to_string(),
            "gputrace",
        ]);
        command.args(arguments);
        call(&mut command, timeout, attempt, unwanted, TooLong::LeaveAlone)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum TooLong {
    Kill,
    LeaveAlone,
}

/// Output goes to files without a name, not pipes: a program that is left alone can write on, whoever is gone by then.
fn call(
    command: &mut Command,
    timeout: Duration,
    attempt: u32,
    unwanted: &dyn Fn() -> bool,
    too_long: TooLong,
) -> io::Result<Call> {
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        // Ctrl-C at the terminal must not reach it between request and reply.
        .process_group(0);
    let (mut child, interrupted) = OnInterrupt::spawn(|| command.spawn(), cut_off)?;
    let deadline = Instant::now() + timeout;
    let mut unwanted_since = None;
    let mut pause = Duration::from_millis(2);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if unwanted_since.is_none() && unwanted() {
            unwanted_since = Some(Instant::now());
        }
        if unwanted_since.is_some_and(|since| since.elapsed() > LAST_CHANCE) {
            cut_off(child.id());
            break child.try_wait()?;
        }
        if Instant::now() >= deadline {
            break None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    drop(interrupted);
    let mut errors = read(&mut stderr)?;
    if status.is_none() && too_long == TooLong::Kill {
        child.kill()?;
        child.wait()?;
    } else if status.is_none() {
        errors.extend(left_alone(&child).into_bytes());
    }
    Ok(Call {
        exit_code: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        timed_out: status.is_none(),
        stdout: read(&mut stdout)?,
        stderr: errors,
        attempt,
    })
}

fn left_alone(child: &Child) -> String {
    format!(
        "dyno (process {}) is left to end by itself: killing it now could kill the daemon\n",
        child.id()
    )
}

fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(LONGEST_OUTPUT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Ends a dyno in the middle of its request without harm to the daemon: its connection is told to reset on close first, which
/// dynolog survives. Where that cannot be done the program is left alone.
fn cut_off(pid: u32) {
    if let Err(error) = reset_and_kill(pid) {
        eprintln!(
            "tracemend: dyno (process {pid}) is left to end by itself, since killing it could kill the daemon: {error}"
        );
    }
}

#[cfg(target_os = "linux")]
fn reset_and_kill(pid: u32) -> Result<()> {
    use rustix::net::sockopt::set_socket_linger;
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open, pidfd_send_signal};

    let raw = i32::try_from(pid)?;
    let process = pidfd_open(
        Pid::from_raw(raw).ok_or_else(|| anyhow!("no process id"))?,
        PidfdFlags::empty(),
    )?;
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let entry = entry?;
        let is_socket = std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        if let (true, Ok(number)) = (is_socket, entry.file_name().to_string_lossy().parse()) {
            let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?;
            set_socket_linger(&socket, Some(Duration::ZERO))?;
            sockets.push(socket);
        }
    }
    pidfd_send_signal(&process, Signal::KILL)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn reset_and_kill(_pid: u32) -> Result<()> {
    Err(anyhow!("this system cannot reset another program's connection"))
}
