//! A program that is watched while it runs: its memory, its time, and every process that it starts.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, set_parent_process_death_signal, waitid,
};

use crate::scratch::ProcessGroup;

/// How a program ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// Its exit code, or the signal that ended it.
    pub status: ExitStatus,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// The most bytes of memory that it and its descendants had at once, as seen every 50 ms. Pages that they share count for each.
    pub peak: u64,
}

/// How often memory is looked at.
const INTERVAL: Duration = Duration::from_millis(50);
/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// Runs `command` as the leader of a process group and waits for it. After `time_limit` the whole group is asked to end, then
/// killed. Whatever is left of the group when the leader has ended is killed as well.
///
/// # Errors
/// When it does not start.
pub fn run(command: &mut Command, time_limit: Option<Duration>) -> io::Result<Ended> {
    run_with_grace(command, time_limit, GRACE)
}

fn run_with_grace(command: &mut Command, time_limit: Option<Duration>, grace: Duration) -> io::Result<Ended> {
    command.process_group(0);
    // SAFETY: between fork and exec only this one system call is made; nothing is allocated and no lock is taken.
    unsafe {
        // Whoever kills us with SIGKILL does not want a program of 15 GB to live on. It is tied to this thread, which waits for it.
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    let (mut child, group) = ProcessGroup::of(|| command.spawn())?;
    let pid = Pid::from_child(&child);
    let start = Instant::now();
    let (mut peak, mut timed_out) = (0, false);
    std::thread::scope(|scope| {
        let (tell, ended) = sync_channel(1);
        scope.spawn(move || {
            // The zombie stays: as long as it does, nobody else can get its number, or its group's.
            while let Err(rustix::io::Errno::INTR) =
                waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            {}
            let _ = tell.send(());
        });
        let mut signals = [
            (time_limit, Signal::TERM),
            (time_limit.map(|limit| limit.saturating_add(grace)), Signal::KILL),
        ]
        .into_iter();
        let mut due = signals.next();
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(INTERVAL) {
            peak = peak.max(memory_of(pid.as_raw_nonzero().get()));
            if let Some((Some(at), signal)) = due
                && start.elapsed() >= at
            {
                timed_out = true;
                let _ = kill_process_group(pid, signal);
                due = signals.next();
            }
        }
    });
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait()?;
    drop(group);
    Ok(Ended {
        status,
        timed_out,
        peak,
    })
}

/// Resident bytes of a process and its descendants; of the process alone also what it had in between, if that was more.
fn memory_of(pid: i32) -> u64 {
    let (mut sum, mut alone) = (0, 0);
    let mut pending = vec![pid];
    while let Some(pid) = pending.pop() {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let bytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field));
            line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
                .map_or(0, |kilobytes| kilobytes << 10)
        };
        sum += bytes("VmRSS:");
        alone = alone.max(bytes("VmHWM:"));
        for task in fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            pending.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<i32>().ok()),
            );
        }
    }
    sum.max(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn exit_codes_and_memory_are_seen() {
        let ended = run(
            &mut sh("x=$(head -c 30000000 /dev/zero | tr '\\0' x); sleep 0.5; exit 3"),
            None,
        )
        .unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert!(!ended.timed_out && ended.peak > 30_000_000, "{ended:?}");
    }

    #[test]
    fn a_group_whose_time_is_over_ends_whole() {
        for hardened in ["", "trap '' TERM;"] {
            let folder = tempfile::tempdir().unwrap();
            let pids = folder.path().join("pids");
            let script = format!("{hardened} sleep 600 & echo $! > {}; wait", pids.display());
            let limit = Some(Duration::from_millis(300));
            let ended = run_with_grace(&mut sh(&script), limit, Duration::from_millis(300)).unwrap();
            assert!(ended.timed_out && !ended.status.success());
            let grandchild: i32 = fs::read_to_string(pids).unwrap().trim().parse().unwrap();
            let gone = |pid: i32| match fs::read_to_string(format!("/proc/{pid}/stat")) {
                Ok(stat) => stat.contains(") Z "),
                Err(_) => true,
            };
            let deadline = Instant::now() + Duration::from_secs(30);
            while !gone(grandchild) {
                assert!(Instant::now() < deadline, "{grandchild} still runs");
                std::thread::yield_now();
            }
        }
    }
}
