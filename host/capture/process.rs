//! Processes, as /proc knows them (proc(5)).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// A process for certain: its id may be another's tomorrow, its id and start time may not (facts/seed.md D11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot: field 22 of /proc/PID/stat.
    pub start_ticks: u64,
}

/// Where both ends of libkineto's sockets lie, if not in the abstract name space.
const SOCKETS: &str = "KINETO_IPC_SOCKET_DIR";

struct Stat {
    state: u8,
    parent: i64,
    start_ticks: u64,
}

fn stat(pid: i64) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name may hold anything, blanks and brackets too.
    let after_name = text.iter().rposition(|&b| b == b')')? + 1;
    let rest = std::str::from_utf8(&text[after_name..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(17)?.parse().ok()?;
    Some(Stat {
        state,
        parent,
        start_ticks,
    })
}

impl Identity {
    /// The process that has this id now, zombies excepted.
    pub fn of(pid: i64) -> Option<Identity> {
        let stat = stat(pid).filter(|stat| !matches!(stat.state, b'Z' | b'X'))?;
        let (pid, start_ticks) = (i32::try_from(pid).ok()?, stat.start_ticks);
        Some(Identity { pid, start_ticks })
    }

    /// Whether it still runs. A zombie does not.
    pub fn is_alive(self) -> bool {
        Identity::of(self.pid.into()) == Some(self)
    }

    /// Sends a signal, if it still runs.
    pub fn signal(self, signal: Signal) {
        if let (true, Some(pid)) = (self.is_alive(), Pid::from_raw(self.pid)) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// What is noted of a process when it is triggered. What cannot be read is not known.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Its identity.
    pub identity: Option<Identity>,
    /// Its environment, as far as it is text.
    pub environment: BTreeMap<String, String>,
    /// Its command line, word by word.
    pub command: Vec<String>,
    /// Its ids in nested pid namespaces, outermost first.
    pub ns_pids: Vec<u32>,
    /// Seconds since 1970.
    pub start_time: Option<f64>,
    /// Whether it had a GPU device open.
    pub has_gpu: Option<bool>,
}

impl Snapshot {
    /// Reads what /proc says of `pid` now.
    pub fn of(pid: i64) -> Snapshot {
        let identity = Identity::of(pid);
        if identity.is_none() {
            return Snapshot::default();
        }
        Snapshot {
            identity,
            environment: environment(pid),
            command: command(pid),
            ns_pids: ns_pids(pid),
            start_time: identity.and_then(|identity| start_time(identity.start_ticks)),
            has_gpu: has_gpu(pid),
        }
    }

    /// The process that registered as `pid`. Inside a container that is its id there: if the process of this id here knows nothing
    /// of Kineto's daemon, the only one that has the id in its own namespace and does is meant.
    pub fn of_registered(pid: i64) -> Snapshot {
        let direct = Snapshot::of(pid);
        if direct.knows_daemon() {
            return direct;
        }
        let others = fs::read_dir("/proc").into_iter().flatten().flatten();
        let others = others.filter_map(|entry| entry.file_name().to_str()?.parse::<i64>().ok());
        let is_inner = |other: &i64| {
            let ids = ns_pids(*other);
            ids.len() > 1 && ids.last().is_some_and(|&inner| i64::from(inner) == pid)
        };
        let inner = others.filter(|&other| other != pid).filter(is_inner).map(Snapshot::of);
        let inner: Vec<Snapshot> = inner.filter(Snapshot::knows_daemon).collect();
        // Of several containers, the one whose daemon is ours.
        let own_sockets = std::env::var(SOCKETS).ok();
        let of_ours = |at: &&Snapshot| at.environment.get(SOCKETS) == own_sockets.as_ref();
        let ours: Vec<&Snapshot> = inner.iter().filter(of_ours).collect();
        match (&inner[..], &ours[..]) {
            ([only], _) => only.clone(),
            (_, &[only]) => only.clone(),
            _ => direct,
        }
    }

    fn knows_daemon(&self) -> bool {
        ["KINETO_USE_DAEMON", "TRACEMEND_KINETO_USE_DAEMON"]
            .iter()
            .any(|name| self.environment.contains_key(*name))
    }

    /// A variable that holds a whole number.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.environment.get(name)?.trim().parse().ok()
    }

    /// A variable that begins with one and goes on with `(`, if at all, as Slurm's counts do: `4(x2)`. Counts that differ from node to
    /// node, `4,2`, are none.
    pub fn leading_number(&self, name: &str) -> Option<u32> {
        let text = self.environment.get(name)?.trim();
        let number = text.split_once('(').map_or(text, |(number, _)| number);
        number.parse().ok().filter(|_| !text.contains(','))
    }

    /// Whether it only starts the processes that train: by the program's name or module, never by the script's own arguments.
    pub fn is_launcher(&self) -> bool {
        let program = |word: &String| word.rsplit('/').next().is_some_and(|name| LAUNCHERS.contains(&name));
        let is_module = |word: &str| {
            LAUNCHER_MODULES.iter().any(|module| {
                word.strip_prefix(module)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        };
        let mut words = self.command.iter();
        if words.next().is_some_and(program) {
            return true;
        }
        // Python's own options, up to what it was told to run.
        while let Some(word) = words.next() {
            match word.as_str() {
                "-m" => return words.next().is_some_and(|word| is_module(word)),
                "-c" => return false,
                "-W" | "-X" => drop(words.next()),
                _ if word.starts_with("-m") => return is_module(&word[2..]),
                _ if word.starts_with('-') => {}
                _ => return program(word) || LAUNCHER_FILES.iter().any(|file| word.ends_with(file)),
            }
        }
        false
    }
}

/// The start-up hook, `sitecustomize.py`, knows the same ones.
const LAUNCHERS: [&str; 4] = ["torchrun", "accelerate", "deepspeed", "horovodrun"];
const LAUNCHER_FILES: [&str; 2] = ["torch/distributed/run.py", "torch/distributed/launch.py"];
const LAUNCHER_MODULES: [&str; 7] = [
    "torch.distributed.run",
    "torch.distributed.launch",
    "torch.distributed.elastic",
    "torch.distributed.launcher",
    "accelerate.commands.launch",
    "accelerate.commands.accelerate_cli",
    "deepspeed.launcher",
];

/// The ids of a process's ancestors on this host, nearest first.
pub fn ancestors(pid: i64) -> Vec<i64> {
    let parents = std::iter::successors(Some(pid), |&pid| {
        stat(pid).map(|stat| stat.parent).filter(|&parent| parent > 0)
    });
    // A process that ends meanwhile may give its id to a descendant.
    parents.skip(1).take(64).collect()
}

fn environment(pid: i64) -> BTreeMap<String, String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    bytes
        .split(|&b| b == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn command(pid: i64) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn ns_pids(pid: i64) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.map(|pids| {
        pids.split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect()
    })
    .unwrap_or_default()
}

fn start_time(ticks: u64) -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = stat
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    Some(boot + ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// AMD's compute device, render nodes, NVIDIA's devices.
fn has_gpu(pid: i64) -> Option<bool> {
    let is_gpu = |path: &[u8]| {
        path == b"/dev/kfd"
            || path.starts_with(b"/dev/dri/renderD")
            || path
                .strip_prefix(b"/dev/nvidia")
                .is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
    };
    let mut open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    Some(open.any(|entry| fs::read_link(entry.path()).is_ok_and(|path| is_gpu(path.as_os_str().as_bytes()))))
}

/// This host's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_more_than_its_id() {
        let own = Identity::of(std::process::id().into()).unwrap();
        assert!(own.is_alive());
        let predecessor = Identity {
            start_ticks: own.start_ticks - 1,
            ..own
        };
        assert!(!predecessor.is_alive());
        assert_eq!(Identity::of(i64::from(i32::MAX)), None);
    }

    #[test]
    fn a_zombie_does_not_run() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i64::from(child.id());
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while Identity::of(pid).is_some() {
            assert!(std::time::Instant::now() < deadline, "`true` does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(stat(pid).map(|stat| stat.state), Some(b'Z'));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_read_from_proc() {
        let own = Snapshot::of(std::process::id().into());
        assert_eq!(own.ns_pids.last().copied(), Some(std::process::id()));
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs_f64();
        let started = own.start_time.unwrap();
        assert!(started <= now + 5.0 && started > now - 86_400.0, "{started} {now}");
        assert!(own.has_gpu.is_some());
        assert_eq!(own.command.first(), std::env::args().next().as_ref());
        assert!(ancestors(std::process::id().into()).contains(&i64::from(std::os::unix::process::parent_id())));
    }

    #[test]
    fn a_launcher_is_known_by_what_is_run() {
        let is_launcher = |words: &str| {
            let command = words.split(' ').map(str::to_owned).collect();
            Snapshot {
                command,
                ..Snapshot::default()
            }
            .is_launcher()
        };
        for launcher in [
            "/opt/venv/bin/torchrun --nproc-per-node 4 train.py",
            "python3 /opt/venv/bin/torchrun train.py",
            "python3 -u -m torch.distributed.run train.py",
            "python3 -mtorch.distributed.launch train.py",
            "python3 -X dev /x/torch/distributed/run.py train.py",
        ] {
            assert!(is_launcher(launcher), "{launcher}");
        }
        for worker in [
            "python3 train.py torchrun",
            "python3 -m torchrunner",
            "train.py",
            "python3 -c torchrun",
            "",
        ] {
            assert!(!is_launcher(worker), "{worker}");
        }
    }
}
