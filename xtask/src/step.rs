//! Running other programs, one told step at a time.

use std::process::{Command, ExitStatus, Stdio};

pub use toolchain::first_line;

/// A step that did not succeed, and the exit code that xtask ends with for it.
#[derive(Debug)]
pub struct Failed {
    pub code: u8,
    pub what: String,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failed {}

/// Says `what` is done and the command that does it, then runs it with this program's own output.
pub fn step(what: &str, command: &mut Command) -> anyhow::Result<()> {
    eprintln!("xtask: {what}: {}", shown(command));
    let status = command.status().map_err(|e| Failed {
        code: 127,
        what: format!("{what}: {}: {e}", shown(command)),
    })?;
    if status.success() {
        return Ok(());
    }
    let code = exit_code(status);
    Err(Failed {
        code,
        what: format!("{what} failed with exit code {code}: {}", shown(command)),
    }
    .into())
}

/// Whether a command runs and succeeds; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The exit code as a shell tells it: 128 + N for signal N.
fn exit_code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(1);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
