//! A world of its own for each test: folders, a port, a stand-in daemon, jobs.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::util::{fixture, tracemend};

/// No test waits longer than this for anything.
const GENEROUS: Duration = Duration::from_secs(120);

pub fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + GENEROUS;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ended with the test, whatever becomes of it.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind(("::", 0)).unwrap().local_addr().unwrap().port()
}

/// What lies in a folder, in order; nothing if there is no folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A shell script that can be run.
pub fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A world of its own: folders, a port, a name space for sockets.
pub struct World {
    root: TempDir,
    pub port: u16,
}

impl World {
    pub fn new() -> World {
        let root = tempfile::Builder::new().prefix("cap").tempdir_in("/tmp").unwrap();
        for folder in ["ipc", "state", "out"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        World {
            root,
            port: free_port(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("KINETO_IPC_SOCKET_DIR", self.path("ipc")),
            ("XDG_STATE_HOME", self.path("state")),
            ("FAKE_DYNOLOG_LOG", self.path("daemon-requests")),
        ]
    }

    pub fn daemon(&self) -> Running {
        let mut command = Command::new(fixture("dynolog/dynolog"));
        command
            .args(["--enable_ipc_monitor", "--port", &self.port.to_string()])
            .envs(self.environment());
        let running = Running(command.spawn().unwrap());
        until("the daemon listens", || {
            TcpStream::connect(("localhost", self.port)).is_ok()
        });
        until("the daemon's socket", || self.path("ipc/dynolog").exists());
        running
    }

    pub fn job(&self, arguments: &[&str]) -> Running {
        self.job_with(arguments, &[])
    }

    pub fn job_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut command = Command::new(fixture("dynolog/job.py"));
        command.env_remove("SLURM_JOB_ID");
        command.args(arguments).args(["--until"]).arg(self.path("over"));
        command.envs(variables.iter().copied());
        self.run_as_job(command)
    }

    /// A job whose launcher registers too, and can be told by its name.
    pub fn torchrun(&self, arguments: &[&str]) -> Running {
        let torchrun = self.path("torchrun");
        symlink(fixture("dynolog/job.py"), &torchrun).unwrap();
        let mut command = Command::new("python3");
        command.arg(torchrun).arg("--launcher").args(arguments);
        command.args(["--until"]).arg(self.path("over"));
        self.run_as_job(command)
    }

    /// Runs a command in the environment of this world's jobs.
    pub fn run_as_job(&self, mut command: Command) -> Running {
        command.envs(self.environment()).env("KINETO_USE_DAEMON", "1");
        Running(command.spawn().unwrap())
    }

    /// `tracemend capture WHAT`, with short waits.
    pub fn capture(&self, what: &str) -> assert_cmd::Command {
        let mut command = tracemend();
        command.args(["capture", what]).envs(self.environment());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("TORCH_PROFILE_") || name.starts_with("SLURM_") || name == "DYNOLOG_PORT" {
                command.env_remove(&*name);
            }
        }
        command
            .env_remove("XDG_RUNTIME_DIR")
            .env("DYNOLOG_PORT", self.port.to_string())
            .env("TORCH_PROFILE_STABLE_S", "0");
        command.timeout(GENEROUS);
        if what == "trigger" || what == "start" || what == "run" {
            command
                .args(["--warmup", "0", "--retry-interval", "0.1", "-o"])
                .arg(self.path("out"));
            if what != "run" {
                command.arg("--dyno").arg(fixture("dynolog/dyno"));
            }
        }
        command
    }

    pub fn trigger(&self, via: &str) -> assert_cmd::Command {
        let mut command = self.capture("trigger");
        command.args(["--json", "--via", via]);
        command
    }

    pub fn attempts(&self) -> Vec<Value> {
        let folder = self.path("state/tracemend");
        let logs = names(&folder)
            .into_iter()
            .map(|name| folder.join(name).join("attempts.jsonl"));
        let text: String = logs.filter_map(|log| fs::read_to_string(log).ok()).collect();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What the stand-in daemon was asked for captures, each with its reply.
    pub fn requests(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("daemon-requests")).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How many processes the daemon knows.
    pub fn registered(&self) -> usize {
        let request = r#"{"fn":"setKinetOnDemandRequest","config":"","job_id":0,"pids":[0],"process_limit":0}"#;
        let mut stream = TcpStream::connect(("localhost", self.port)).unwrap();
        stream.write_all(&(request.len() as i32).to_ne_bytes()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        let reply: Value = serde_json::from_slice(&reply[4..]).unwrap();
        reply["processesMatched"].as_array().unwrap().len()
    }

    pub fn manifests(&self) -> Vec<Value> {
        names(&self.path("out"))
            .iter()
            .filter(|name| name.starts_with("tracemend-manifest-"))
            .map(|name| serde_json::from_slice(&fs::read(self.path("out").join(name)).unwrap()).unwrap())
            .collect()
    }

    pub fn manifest(&self) -> Value {
        self.manifests().pop().expect("a manifest")
    }

    /// Ranks that the newest manifest notes, in order; those without one first.
    pub fn ranks(&self) -> Vec<Option<u64>> {
        let manifest = self.manifest();
        let processes = manifest["processes"].as_array().unwrap();
        let mut ranks: Vec<_> = processes.iter().map(|process| process["rank"].as_u64()).collect();
        ranks.sort();
        ranks
    }

    /// `capture wait` on this world's folder.
    pub fn wait(&self, deadline: &str) -> Output {
        let mut command = self.capture("wait");
        command.arg(self.path("out")).args(["--json", "--deadline", deadline]);
        command.output().unwrap()
    }

    /// Lets jobs end that linger.
    pub fn over(&self) {
        fs::write(self.path("over"), "").unwrap();
    }

    /// The folder of the one daemon that this world knows.
    pub fn state(&self) -> PathBuf {
        let base = self.path("state/tracemend");
        let [only] = &names(&base)[..] else {
            panic!("one state folder is expected")
        };
        base.join(only)
    }

    /// Everything of this world that still runs: its folder stands in each one's environment.
    pub fn processes(&self) -> Vec<String> {
        let needle = format!("KINETO_IPC_SOCKET_DIR={}", self.path("ipc").display()).into_bytes();
        let state = format!("XDG_STATE_HOME={}", self.path("state").display()).into_bytes();
        let holds = |hay: &[u8], needle: &[u8]| hay.split(|&b| b == 0).any(|entry| entry == needle);
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if holds(&environment, &needle) || holds(&environment, &state) {
                found.push(
                    fs::read_to_string(entry.path().join("cmdline"))
                        .unwrap_or_default()
                        .replace('\0', " "),
                );
            }
        }
        found
    }
}

impl World {
    pub fn run(&self) -> assert_cmd::Command {
        let mut command = self.capture("run");
        command
            .args(["--via", "rpc", "--max-attempts", "400", "--dynolog"])
            .arg(fixture("dynolog/dynolog"));
        command.arg("--json").arg(self.path("run.json"));
        command
            .env_remove("DYNOLOG_PORT")
            .env_remove("KINETO_IPC_SOCKET_DIR")
            .env_remove("PYTHONPATH");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    pub fn captured(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("run.json")).unwrap()).unwrap()
    }

    /// The same as a process that can be sent signals.
    pub fn run_in_background(&self, workload: &[&str]) -> Running {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracemend"));
        command.args([
            "capture",
            "run",
            "--warmup",
            "0",
            "--retry-interval",
            "0.1",
            "--via",
            "rpc",
            "--max-attempts",
            "400",
        ]);
        command
            .arg("--dynolog")
            .arg(fixture("dynolog/dynolog"))
            .arg("-o")
            .arg(self.path("out"));
        command
            .arg("--")
            .args(workload)
            .envs(self.environment())
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("KINETO_IPC_SOCKET_DIR");
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn leaves_nothing(&self) {
        until("no process is left", || self.processes().is_empty());
        assert_eq!(names(&self.path("state/tracemend")), [""; 0]);
        let out = names(&self.path("out"));
        assert!(!out.iter().any(|name| name.starts_with('.')), "{out:?}");
    }
}

pub fn register(world: &World, pids: &[&str]) {
    let status = Command::new("python3")
        .arg(fixture("dynolog/fake_kineto.py"))
        .arg("--quiet")
        .args(pids)
        .envs(world.environment())
        .status();
    assert!(status.unwrap().success());
}

/// What a peer does after its bytes.
#[derive(Clone, Copy, PartialEq)]
pub enum Then {
    Close,
    /// Keeps the connection, and says nothing more.
    Hold,
    /// One more byte now and then, for ever.
    Drip,
}

/// A peer that answers each connection with `bytes`.
pub fn peer(bytes: Vec<u8>, then: Then) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&bytes);
            match then {
                Then::Close => {}
                Then::Hold => kept.push(stream),
                Then::Drip => drop(std::thread::spawn(move || {
                    while stream.write_all(b" ").is_ok() {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                })),
            }
        }
    });
    port
}

pub fn signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill")
            .args(["-s", name, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}
