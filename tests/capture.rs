//! Captures, against a stand-in for dynolog, its dyno, and jobs that register as libkineto does.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::util::{Answer, fixture, tracemend};

/// No test waits longer than this for anything.
const GENEROUS: Duration = Duration::from_secs(60);

fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + GENEROUS;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ended with the test, whatever becomes of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("::", 0)).unwrap().local_addr().unwrap().port()
}

/// A world of its own: folders, a port, a name space for sockets.
struct World {
    root: TempDir,
    port: u16,
}

impl World {
    fn new() -> World {
        let root = tempfile::Builder::new().prefix("cap").tempdir_in("/tmp").unwrap();
        for folder in ["ipc", "state", "out"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        World {
            root,
            port: free_port(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("KINETO_IPC_SOCKET_DIR", self.path("ipc")),
            ("XDG_STATE_HOME", self.path("state")),
        ]
    }

    fn daemon(&self) -> Running {
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

    fn job(&self, arguments: &[&str]) -> Running {
        self.job_with(arguments, &[])
    }

    fn job_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut command = Command::new(fixture("dynolog/job.py"));
        command
            .args(arguments)
            .envs(self.environment())
            .env_remove("SLURM_JOB_ID")
            .env("KINETO_USE_DAEMON", "1");
        command.envs(variables.iter().copied());
        command.args(["--until"]).arg(self.path("over"));
        Running(command.spawn().unwrap())
    }

    /// `tracemend capture WHAT`, with short waits.
    fn capture(&self, what: &str) -> assert_cmd::Command {
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
            .env("DYNOLOG_PORT", self.port.to_string());
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

    fn trigger(&self, via: &str) -> assert_cmd::Command {
        let mut command = self.capture("trigger");
        command.args(["--json", "--via", via]);
        command
    }

    fn attempts(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for folder in fs::read_dir(self.path("state/tracemend")).unwrap() {
            let log = folder.unwrap().path().join("attempts.jsonl");
            let text = fs::read_to_string(log).unwrap_or_default();
            lines.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
        }
        lines
    }

    fn manifest(&self) -> Value {
        let name = fs::read_dir(self.path("out"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let path = name
            .into_iter()
            .find(|path| path.to_string_lossy().contains("tracemend-manifest-"))
            .expect("a manifest");
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    /// Everything of this world that still runs: its folder stands in each one's environment.
    fn processes(&self) -> Vec<String> {
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

#[test]
fn an_accepted_request_notes_who_is_who_and_every_file_is_waited_for() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let (_daemon, _job) = (world.daemon(), world.job(&["--ranks", "3", "--launcher", "--linger"]));
        // Asked before all have registered, a request reaches only those that have: here all are wanted.
        let output = retry_until(&world, via, 4);
        assert_eq!(output["result"], "accepted");
        let manifest = world.manifest();
        assert_eq!(manifest["tracemend_manifest"], 1);
        let mut ranks: Vec<_> = manifest["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["rank"].as_u64())
            .collect();
        ranks.sort();
        assert_eq!(ranks, [None, Some(0), Some(1), Some(2)]);
        for process in manifest["processes"].as_array().unwrap() {
            assert_eq!(process["trace"], format!("libkineto_trace_{}.json", process["pid"]));
            assert!(process["start_time"].as_f64().unwrap() > 1e9);
            assert_eq!(process["has_gpu"], false);
        }
        let wait = world
            .capture("wait")
            .arg(world.path("out"))
            .args(["--json", "--deadline", "50"])
            .output()
            .unwrap();
        assert_eq!(wait.code(), 0, "{}{}", wait.text(), wait.errors());
        let fates: Vec<_> = wait.json()["traces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["fate"].clone())
            .collect();
        assert_eq!(fates, vec![json!("written"); 4]);
        let ranks = tracemend()
            .args(["ranks", "--json"])
            .arg(world.path("out"))
            .output()
            .unwrap()
            .json();
        assert_eq!(ranks["groups"][0]["ranks"], json!([0, 1, 2]), "{ranks}");
        fs::write(world.path("over"), "").unwrap();
    }
}

/// Waits for `count` registered processes by the stand-in's own means, then triggers once.
fn retry_until(world: &World, via: &str, count: usize) -> Value {
    until("the job's processes register", || {
        let sockets = fs::read_dir(world.path("ipc")).unwrap().flatten();
        sockets
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("dynoconfigclient"))
            .count()
            >= count
    });
    // A client's socket is there just before its first poll; polls come every 20 ms.
    std::thread::sleep(Duration::from_millis(300));
    world.trigger(via).output().unwrap().json()
}

#[test]
fn late_registration_is_waited_for() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let _daemon = world.daemon();
        let _job = world.job(&["--ranks", "1", "--delay", "0.5"]);
        let output = world.trigger(via).args(["--max-attempts", "400"]).output().unwrap();
        assert_eq!((output.code(), &output.json()["result"]), (0, &json!("accepted")));
        let attempts = world.attempts();
        assert!(attempts.len() > 1);
        assert!(
            attempts[..attempts.len() - 1]
                .iter()
                .all(|attempt| attempt["verdict"] == "waiting")
        );
    }
}

#[test]
fn recorded_answers_decide_and_the_words_that_scripts_search_for_are_there() {
    let calls = format!("{}", fixture("dyno/calls.jsonl").display());
    let names: Vec<String> = fs::read_to_string(&calls)
        .unwrap()
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let named = |start: &str, version: &str| {
        let found = names
            .iter()
            .find(|name| name.starts_with(start) && name.contains(&format!("dyno-{version}")));
        found
            .unwrap_or_else(|| panic!("no recorded call {start} of {version}"))
            .clone()
    };
    for version in ["0.3.0", "0.3.2", "0.5.0", "head"] {
        let (none, one) = (named("none", version), named("one", version));
        let replay = |names: &[&str], attempts: &str| {
            let world = World::new();
            let output = world
                .capture("trigger")
                .args(["--max-attempts", attempts])
                .env("FAKE_DYNO_VERSION", version)
                .env("FAKE_DYNO_LOG", world.path("requests"))
                .env("FAKE_DYNO_REPLAY", format!("{calls}:{}", names.join(",")))
                .output()
                .unwrap();
            let requests = fs::read_to_string(world.path("requests")).unwrap_or_default();
            let requests: Vec<Vec<String>> = requests
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            (output, requests)
        };
        let (output, requests) = replay(&[&none, &none, &one], "9");
        assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
        assert!(output.text().contains("accepted on attempt 3"), "{}", output.text());
        assert_eq!(requests.len(), 3);
        let pair = |option: &str, value: &str| requests[0].windows(2).any(|two| two == [option, value]);
        assert!(
            pair("--iterations", "5") && pair("--process-limit", "64"),
            "{requests:?}"
        );
        assert_eq!(requests[0].contains(&"--with-stacks".to_owned()), version != "0.3.0");

        let (output, requests) = replay(&[&none], "2");
        assert_eq!((output.code(), requests.len()), (1, 2));
        for word in [
            "gave up after 2 attempts",
            "KINETO_USE_DAEMON=1",
            "TORCH_PROFILE_WARMUP_S",
        ] {
            assert!(output.text().contains(word), "{}", output.text());
        }
    }
}

#[test]
fn a_rejection_is_asked_once_and_dynos_own_words_are_shown() {
    let world = World::new();
    let dyno = world.path("dyno");
    fs::write(
        &dyno,
        "#!/bin/sh\n[ \"$2\" = --help ] && { echo '  --log-file <F>'; exit 0; }\necho x >> \"$COUNT\"\necho 'error: I will not' >&2\nexit 2\n",
    )
    .unwrap();
    fs::set_permissions(&dyno, fs::Permissions::from_mode(0o755)).unwrap();
    let output = world
        .capture("trigger")
        .arg("--dyno")
        .arg(&dyno)
        .env("COUNT", world.path("count"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 1, "{}", output.errors());
    assert!(output.text().contains("not retrying"), "{}", output.text());
    assert!(output.text().contains("error: I will not"), "{}", output.text());
    assert_eq!(fs::read_to_string(world.path("count")).unwrap(), "x\n");
}

#[test]
fn a_busy_daemon_is_asked_again_and_the_process_limit_is_kept() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let _daemon = world.daemon();
        register(&world, &["4101,1", "4102,1"]);
        let first = world
            .trigger(via)
            .args(["--process-limit", "1"])
            .output()
            .unwrap()
            .json();
        assert_eq!(
            (&first["hosts"][0]["triggered"], &first["hosts"][0]["matched"]),
            (&json!([4101]), &json!([4101, 4102]))
        );
        let second = world
            .trigger(via)
            .args(["--pids", "4101", "--max-attempts", "3"])
            .output()
            .unwrap();
        assert_eq!((second.code(), &second.json()["result"]), (1, &json!("busy")));
        assert_eq!(second.json()["hosts"][0]["attempts"], 3);
    }
}

fn register(world: &World, pids: &[&str]) {
    let status = Command::new("python3")
        .arg(fixture("dynolog/fake_kineto.py"))
        .arg("--quiet")
        .args(pids)
        .envs(world.environment())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn a_daemon_that_is_down_is_asked_a_few_times_and_may_come_up() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let down = world.trigger(via).output().unwrap();
        assert_eq!((down.code(), &down.json()["result"]), (1, &json!("unreachable")));
        assert_eq!(down.json()["hosts"][0]["attempts"], 3);

        let mut command = world.trigger(via);
        command.args(["--unreachable-attempts", "1000", "--max-attempts", "1000"]);
        let asking = std::thread::spawn(move || command.output().unwrap());
        until("the first attempts", || world.attempts().len() > 4);
        let _daemon = world.daemon();
        let _job = world.job(&["--ranks", "1"]);
        let output = asking.join().unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        assert_eq!(output.json()["result"], "accepted");
    }
}

/// A peer that answers each connection with `bytes`, and counts them.
fn peer(bytes: &'static [u8], silent: bool) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(bytes);
            if silent {
                kept.push(stream);
            }
        }
    });
    port
}

#[test]
fn garbage_and_silence_are_told_apart() {
    for (bytes, silent, result, word) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            false,
            "request_rejected",
            "is this port dynolog's?",
        ),
        (b"\x02\x00\x00\x00[]", false, "request_rejected", "not a JSON object"),
        (
            b"\x12\x00\x00\x00{\"status\":\"failed\"",
            false,
            "request_rejected",
            "not JSON",
        ),
        (b"\xff\xff\xff\xff", false, "request_rejected", "without content"),
        (b"\x40\x00\x00\x00{", false, "unreachable", "in the middle of a reply"),
        (b"", false, "unreachable", "connection"),
        (b"", true, "unreachable", "no reply within the time-out"),
    ] {
        let world = World::new();
        let address = format!("127.0.0.1:{}", peer(bytes, silent));
        let output = world
            .trigger("rpc")
            .args(["--request-timeout", "0.5", "--hosts", &address])
            .output()
            .unwrap();
        assert_eq!(output.code(), 1, "{}", output.errors());
        let host = &output.json()["hosts"][0];
        assert_eq!(host["result"], result, "{host}");
        assert!(host["reason"].as_str().unwrap().contains(word), "{host}");
        // A request that hangs is not followed by a second one.
        let attempts = if silent || result == "request_rejected" { 1 } else { 3 };
        assert_eq!(host["attempts"], attempts, "{host}");
    }
}

#[test]
fn a_dyno_that_hangs_is_left_alone_and_said() {
    let world = World::new();
    let output = world
        .trigger("dyno")
        .args(["--request-timeout", "0.3"])
        .env("FAKE_DYNO_HANG", "1")
        .output()
        .unwrap();
    assert_eq!((output.code(), &output.json()["result"]), (1, &json!("unreachable")));
    assert!(
        output.errors().contains("is left to end by itself"),
        "{}",
        output.errors()
    );
    until("the stand-in sees that its parent is gone", || {
        world.processes().is_empty()
    });
}

#[test]
fn a_client_that_is_cut_off_resets_and_the_daemon_lives() {
    let world = World::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for via in ["rpc", "dyno"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracemend"));
        command
            .args([
                "capture", "trigger", "--warmup", "0", "--via", via, "--hosts", &address, "-o",
            ])
            .arg(world.path("out"));
        command
            .arg("--dyno")
            .arg(fixture("dynolog/dyno"))
            .envs(world.environment())
            .env_remove("XDG_RUNTIME_DIR");
        let mut running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4];
        stream.read_exact(&mut request).unwrap();
        signal(&running.0, "INT");
        assert_eq!(running.0.wait().unwrap().code(), Some(130));
        let mut rest = Vec::new();
        let error = stream
            .read_to_end(&mut rest)
            .expect_err("an orderly close would kill dynolog");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{via}");
        until("no process is left", || world.processes().is_empty());
    }
}

fn signal(child: &Child, name: &str) {
    assert!(
        Command::new("kill")
            .args(["-s", name, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn nonsense_is_refused_before_anything_is_asked() {
    for (variable, value, word) in [
        (
            "TORCH_PROFILE_MAX_ATTEMPTS",
            "abc",
            "TORCH_PROFILE_MAX_ATTEMPTS cannot be \"abc\"",
        ),
        (
            "TORCH_PROFILE_ITERATIONS",
            "five",
            "TORCH_PROFILE_ITERATIONS cannot be \"five\"",
        ),
        ("TORCH_PROFILE_WITH_STACKS", "yes", "0 or 1 is wanted"),
        ("TORCH_PROFILE_PROCESS_LIMIT", "0", "from 1 to"),
        ("TORCH_PROFILE_LOG_FILE", "a\"b.json", "pastes it unescaped"),
        ("TORCH_PROFILE_LOG_FILE", "x.json.gz", "must end in .json"),
        (
            "TORCH_PROFILE_KINETO_DIR",
            "/var/tmp/x",
            "Kineto only writes below /tmp",
        ),
        ("TORCH_PROFILE_JOB_ID", "123_4", "no job id"),
        ("SLURM_JOB_ID", "123_4", "SLURM_JOB_ID"),
        ("DYNOLOG_PORT", "http", "DYNOLOG_PORT cannot be \"http\""),
        ("TORCH_PROFILE_PROFILE_MEMORY", "1", "by time only"),
    ] {
        let world = World::new();
        let output = world
            .capture("trigger")
            .args(["--via", "rpc"])
            .env(variable, value)
            .output()
            .unwrap();
        assert_eq!(output.code(), 2, "{variable}={value}");
        assert!(output.one_error().contains(word), "{}", output.errors());
    }
    let world = World::new();
    let missing = tracemend()
        .args(["capture", "trigger", "--dyno", "/nowhere/dyno", "-o"])
        .arg(world.path("out"))
        .output()
        .unwrap();
    assert_eq!(missing.code(), 2);
    assert!(
        missing.one_error().contains("--via rpc asks the daemon without it"),
        "{}",
        missing.errors()
    );
}

#[test]
fn the_job_id_is_slurms() {
    let world = World::new();
    let _daemon = world.daemon();
    let _job = world.job_with(&["--ranks", "1"], &[("SLURM_JOB_ID", "4242")]);
    let mut command = world.trigger("rpc");
    let output = command
        .args(["--max-attempts", "400"])
        .env("SLURM_JOB_ID", "4242")
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
}

#[test]
fn a_folder_that_kineto_does_not_write_to_is_put_right() {
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let world = World::new();
    let _daemon = world.daemon();
    let _job = world.job(&["--ranks", "1", "--linger"]);
    let mut command = world.trigger("rpc");
    command
        .args(["--max-attempts", "400", "--log-file", "x.pt.trace.json", "-o"])
        .arg(elsewhere.path());
    let output = command.output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert!(
        output.errors().contains("Kineto only writes below /tmp"),
        "{}",
        output.errors()
    );
    let expected = PathBuf::from(
        output.json()["manifests"][0]["processes"][0]["trace_path"]
            .as_str()
            .unwrap(),
    );
    assert!(expected.starts_with("/tmp"));
    let wait = world
        .capture("wait")
        .arg(elsewhere.path())
        .arg("--json")
        .output()
        .unwrap();
    assert_eq!(wait.code(), 0, "{}{}", wait.text(), wait.errors());
    let pid = &output.json()["hosts"][0]["triggered"][0];
    assert!(elsewhere.path().join(format!("x_{pid}.pt.trace.json")).is_file());
    assert!(
        !expected.parent().unwrap().exists(),
        "the folder made for Kineto goes when it is empty"
    );
    fs::write(world.path("over"), "").unwrap();
}

#[test]
fn what_did_not_come_is_told_by_its_cause() {
    for (how, fate) in [("tmp", "too_late"), ("none", "nothing"), ("die", "process_died")] {
        let world = World::new();
        let _daemon = world.daemon();
        let _job = world.job_with(&["--ranks", "1", "--linger"], &[("FAKE_KINETO_WRITE", how)]);
        let output = world.trigger("rpc").args(["--max-attempts", "400"]).output().unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        let trace = world.manifest()["processes"][0]["trace_path"]
            .as_str()
            .unwrap()
            .to_owned();
        if how == "tmp" {
            until("the half-written file", || Path::new(&format!("{trace}.tmp")).exists());
        }
        let deadline = if how == "die" { "50" } else { "0.3" };
        let wait = world
            .capture("wait")
            .arg(world.path("out"))
            .args(["--json", "--deadline", deadline])
            .output()
            .unwrap();
        assert_eq!(wait.code(), 1);
        assert_eq!(wait.json()["traces"][0]["fate"], fate, "{}", wait.text());
        fs::write(world.path("over"), "").unwrap();
    }
    let world = World::new();
    let nothing = world.capture("wait").arg(world.path("out")).output().unwrap();
    assert_eq!(nothing.code(), 2);
    assert!(nothing.one_error().contains("no capture manifest"));
}

#[test]
fn several_hosts_are_asked_at_once_for_one_moment() {
    let (one, two) = (World::new(), World::new());
    let (_a, _b) = (one.daemon(), two.daemon());
    register(&one, &["4101,1"]);
    register(&two, &["4101,1"]);
    let hosts = one.path("hosts");
    fs::write(&hosts, format!("# nodes\n127.0.0.1:{}\n[::1]:{}\n", one.port, two.port)).unwrap();
    let output = one
        .trigger("rpc")
        .arg("--hosts")
        .arg(format!("@{}", hosts.display()))
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let attempts = one.attempts();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0]["start_time_ms"], attempts[1]["start_time_ms"]);
    let room = attempts[0]["start_time_ms"].as_f64().unwrap() - attempts[0]["time"].as_f64().unwrap() * 1000.0;
    assert!(room > 10_000.0, "{room}");
    let paths: Vec<_> = output.json()["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["processes"][0]["trace"].clone())
        .collect();
    assert_eq!(
        paths,
        ["libkineto_trace_127.0.0.1_4101.json", "libkineto_trace_--1_4101.json"]
    );
}

#[test]
fn start_finds_the_first_and_stop_ends_exactly_what_start_started() {
    let world = World::new();
    let stop = || world.capture("stop").args(["--deadline", "40"]).output().unwrap();
    let never = stop();
    assert_eq!(never.code(), 0);
    assert!(never.text().contains("dynolog was not started"), "{}", never.text());

    fs::write(world.path("out/old.json"), "{\"traceEvents\": []}").unwrap();
    let start = || {
        let mut command = world.capture("start");
        command
            .arg("--dynolog")
            .arg(fixture("dynolog/dynolog"))
            .args(["--max-attempts", "400"]);
        command.output().unwrap()
    };
    let first = start();
    assert_eq!(first.code(), 0, "{}", first.errors());
    assert!(
        first.text().contains("dynolog daemon started") && first.text().contains("trace trigger armed"),
        "{}",
        first.text()
    );
    let second = start();
    assert!(
        second.text().contains("already runs") && second.text().contains("armed already"),
        "{}",
        second.text()
    );
    let job = world.job(&["--ranks", "1", "--linger"]);
    until("the manifest", || {
        let mut names = fs::read_dir(world.path("out"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("tracemend-manifest-"))
    });
    let stopped = stop();
    assert_eq!(stopped.code(), 0, "{}{}", stopped.text(), stopped.errors());
    for words in ["Captured 1 torch.profiler trace(s)", "dynolog cleanup complete"] {
        assert!(stopped.text().contains(words), "{}", stopped.text());
    }
    fs::write(world.path("over"), "").unwrap();
    drop(job);
    until("no process is left", || world.processes().is_empty());
}

#[test]
fn stop_says_which_cause_fits_and_touches_no_bystander() {
    let world = World::new();
    let mut command = world.capture("start");
    command
        .arg("--dynolog")
        .arg(fixture("dynolog/dynolog"))
        .args(["--max-attempts", "2"]);
    assert_eq!(command.output().unwrap().code(), 0);
    until("the result", || {
        let state = fs::read_dir(world.path("state/tracemend"))
            .unwrap()
            .flatten()
            .next()
            .unwrap()
            .path();
        state.join("result.json").exists()
    });
    // Its record names another's process now: the same id, another start.
    let state = fs::read_dir(world.path("state/tracemend"))
        .unwrap()
        .flatten()
        .next()
        .unwrap()
        .path()
        .join("daemon.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&state).unwrap()).unwrap();
    let bystander = Running(Command::new("sleep").arg("600").spawn().unwrap());
    let trigger = record["trigger"].clone();
    record["trigger"] = json!({"pid": bystander.0.id(), "start_ticks": 1});
    fs::write(&state, record.to_string()).unwrap();
    let stopped = world.capture("stop").output().unwrap();
    assert_eq!(stopped.code(), 1);
    for words in [
        "No torch.profiler traces were captured",
        "never matched a PyTorch process",
        "dynolog cleanup complete",
    ] {
        assert!(stopped.text().contains(words), "{}", stopped.text());
    }
    assert!(Path::new(&format!("/proc/{}", bystander.0.id())).exists(), "{trigger}");
    assert!(
        stopped.text().contains("trace trigger was no longer running"),
        "{}",
        stopped.text()
    );
    until("no process is left", || world.processes().is_empty());
}

#[test]
fn state_is_not_kept_behind_a_link() {
    let world = World::new();
    let victim = world.path("victim");
    fs::create_dir(&victim).unwrap();
    symlink(&victim, world.path("state/tracemend")).unwrap();
    let output = world.trigger("rpc").output().unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("is a link"), "{}", output.errors());
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn a_daemon_that_does_not_start_is_not_left_behind() {
    let world = World::new();
    for (script, word) in [
        ("echo no fabric; exit 3", "no fabric"),
        ("echo deaf; exec sleep 600", "does not answer"),
    ] {
        let dynolog = world.path("dynolog");
        fs::write(&dynolog, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&dynolog, fs::Permissions::from_mode(0o755)).unwrap();
        let output = world
            .capture("start")
            .arg("--dynolog")
            .arg(&dynolog)
            .args(["--ready-within", "0.5"])
            .output()
            .unwrap();
        assert_eq!(output.code(), 2, "{}", output.text());
        assert!(output.one_error().contains(word), "{}", output.errors());
        assert!(world.processes().is_empty(), "{:?}", world.processes());
    }
}

impl World {
    fn run(&self) -> assert_cmd::Command {
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

    fn captured(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("run.json")).unwrap()).unwrap()
    }

    /// The same as a process that can be sent signals.
    fn run_in_background(&self, workload: &[&str]) -> Running {
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

    fn leaves_nothing(&self) {
        until("no process is left", || self.processes().is_empty());
        let left: Vec<_> = fs::read_dir(self.path("state/tracemend"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let half: Vec<_> = fs::read_dir(self.path("out"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert!(
            half.iter().all(|name| !name.to_string_lossy().starts_with('.')),
            "{half:?}"
        );
    }
}

#[test]
fn run_does_all_of_it_and_its_exit_code_is_the_commands() {
    let world = World::new();
    let output = world
        .run()
        .arg("--")
        .arg(fixture("dynolog/job.py"))
        .args(["--ranks", "1", "--exit", "7"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 7, "{}", output.errors());
    for words in [
        "dynolog daemon started",
        "trace trigger armed",
        "accepted on attempt",
        "torch.profiler trace(s)",
        "dynolog cleanup complete",
    ] {
        assert!(output.errors().contains(words), "{}", output.errors());
    }
    assert_eq!(world.captured()["exit_code"], 7);
    world.leaves_nothing();
}

#[test]
fn launchers_are_kept_out_and_hand_the_variable_on() {
    for (name, launchers) in [("torchrun", 0), ("train.py", 1)] {
        let world = World::new();
        let script = world.path(name);
        symlink(fixture("dynolog/job.py"), &script).unwrap();
        // The launcher alone would be done at once: all have time to register before the first request.
        let output = world
            .run()
            .args(["--warmup", "2", "--"])
            .arg("python3")
            .arg(&script)
            .args(["--ranks", "2", "--launcher"])
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        let manifest = world.manifest();
        let ranks: Vec<_> = manifest["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["rank"].as_u64())
            .collect();
        assert_eq!(
            ranks.iter().filter(|rank| rank.is_none()).count(),
            launchers,
            "{name}: {}",
            output.errors()
        );
        assert_eq!(ranks.iter().flatten().count(), 2, "{name}: {}", output.errors());
        let traces = world.captured()["traces"].as_array().unwrap().clone();
        assert!(traces.iter().all(|trace| trace["fate"] == "written"), "{traces:?}");
        world.leaves_nothing();
    }
}

#[test]
fn a_failed_capture_never_fails_the_command() {
    let world = World::new();
    let output = world
        .run()
        .args(["--dynolog", "/nowhere/dynolog", "--", "sh", "-c", "echo mine; exit 3"])
        .output()
        .unwrap();
    assert_eq!((output.code(), output.text().as_str()), (3, "mine\n"));
    assert!(output.errors().contains("no capture: "), "{}", output.errors());
    // It ends before anything is asked.
    let output = world
        .run()
        .args(["--warmup", "1000", "--", "sh", "-c", "kill -9 $$"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 128 + 9);
    assert!(output.errors().contains("during the warm-up"), "{}", output.errors());
    let missing = world.run().args(["--", "/nowhere/command"]).output().unwrap();
    assert_eq!(missing.code(), 2);
    world.leaves_nothing();
}

#[test]
fn run_passes_signals_on() {
    let world = World::new();
    let job = fixture("dynolog/job.py");
    let mut running = world.run_in_background(&[job.to_str().unwrap(), "--ranks", "1", "--linger"]);
    until("the manifest", || {
        let mut names = fs::read_dir(world.path("out"))
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("tracemend-manifest-"))
    });
    signal(&running.0, "TERM");
    assert_eq!(
        running.0.wait().unwrap().code(),
        Some(70),
        "job.py says 70 when it is sent SIGTERM"
    );
    world.leaves_nothing();
}

#[test]
fn an_interrupt_in_any_phase_leaves_nothing_behind() {
    let world = World::new();
    let spawn = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracemend"));
        command
            .arg("capture")
            .args(arguments)
            .envs(world.environment())
            .env_remove("XDG_RUNTIME_DIR");
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let (out, deaf) = (world.path("out").display().to_string(), world.path("deaf"));
    fs::write(
        &deaf,
        format!("#!/bin/sh\ntouch {}\nexec sleep 600\n", world.path("started").display()),
    )
    .unwrap();
    fs::set_permissions(&deaf, fs::Permissions::from_mode(0o755)).unwrap();
    let port = world.port.to_string();
    let manifest = json!({
        "tracemend_manifest": 1, "host": "elsewhere", "captured_at": 1.0, "local": false,
        "processes": [{"pid": 1, "trace": "x_1.json", "trace_path": world.path("out/x_1.json")}],
    });
    fs::write(
        world.path("out/tracemend-manifest-elsewhere.json"),
        manifest.to_string(),
    )
    .unwrap();
    let state = world.path("state/tracemend");
    type Phase<'a> = (&'a str, Vec<&'a str>, Box<dyn Fn() -> bool + 'a>);
    let phases: [Phase; 3] = [
        (
            "warm-up",
            vec![
                "trigger", "--via", "rpc", "--warmup", "600", "--port", &port, "-o", &out,
            ],
            Box::new(|| state.exists()),
        ),
        (
            "start",
            vec![
                "start",
                "--via",
                "rpc",
                "--ready-within",
                "600",
                "--port",
                &port,
                "-o",
                &out,
                "--dynolog",
                deaf.to_str().unwrap(),
            ],
            Box::new(|| world.path("started").exists()),
        ),
        ("wait", vec!["wait", &out, "--deadline", "600"], Box::new(|| true)),
    ];
    for (phase, arguments, reached) in phases {
        let mut running = spawn(&arguments);
        until(phase, reached);
        // Signals are watched for from the first moment of a command on.
        until("signals are watched for", || {
            let status = fs::read_to_string(format!("/proc/{}/status", running.0.id())).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (2 - 1)) != 0
        });
        signal(&running.0, "INT");
        assert_eq!(running.0.wait().unwrap().code(), Some(130), "{phase}");
        until("no process is left", || world.processes().is_empty());
        let names: Vec<_> = fs::read_dir(&out)
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(names, ["tracemend-manifest-elsewhere.json"], "{phase}");
    }
}

#[test]
fn the_hook_keeps_launchers_and_helpers_out_in_all_spellings() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let say = "import os, sys\nprint(os.environ.get('KINETO_USE_DAEMON'), os.environ.get('TRACEMEND_KINETO_USE_DAEMON'), 'torch.profiler' in sys.modules)\n";
    for path in [
        "torch/distributed/run.py",
        "torch/distributed/launch.py",
        "pip/__main__.py",
        "torchrun",
        "train.py",
        "mnt/pip",
    ] {
        write(path, say);
    }
    write("training.py", &format!("import torch\n{say}"));
    for package in ["torch", "torch/distributed", "torch/profiler", "pip"] {
        write(&format!("{package}/__init__.py"), "");
    }
    write("sitecustomize.py", "print('chained')\n");
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("host/capture");
    let run = |arguments: &[&str], variable: &str| {
        let path = std::env::join_paths([hook.as_path(), folder.path()]).unwrap();
        let mut command = Command::new("python3");
        command
            .args(arguments)
            .current_dir(folder.path())
            .env("PYTHONPATH", path)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
            .env_remove("KINETO_USE_DAEMON")
            .env_remove("TRACEMEND_KINETO_USE_DAEMON")
            .env(variable, "1");
        let output = command.output().unwrap();
        let text = output.text();
        text.strip_prefix("chained\n")
            .unwrap_or_else(|| panic!("not chained: {text}{}", output.errors()))
            .trim()
            .to_owned()
    };
    let spawned = format!("from multiprocessing.spawn import spawn_main\n{say}");
    for (arguments, said) in [
        (&["-m", "torch.distributed.run", "train.py"][..], "None 1 False"),
        (&["-u", "-mtorch.distributed.run"], "None 1 False"),
        (&["-X", "dev", "-m", "torch.distributed.launch"], "None 1 False"),
        (&["torch/distributed/run.py"], "None 1 False"),
        (&["torchrun", "train.py"], "None 1 False"),
        (&["-m", "pip", "list"], "None None False"),
        (&["-c", &spawned], "None None False"),
        (&["train.py", "--data", "/mnt/pip"], "1 None False"),
        (&["train.py", "torchrun", "-m", "torch.distributed.run"], "1 None False"),
        (&["training.py"], "1 None True"),
        (&["-W", "ignore", "training.py", "-m", "pip"], "1 None True"),
    ] {
        assert_eq!(run(arguments, "KINETO_USE_DAEMON"), said, "{arguments:?}");
    }
    assert_eq!(run(&["training.py"], "TRACEMEND_KINETO_USE_DAEMON"), "1 1 True");
    assert_eq!(run(&["training.py"], "NOTHING"), "None None False");
}
