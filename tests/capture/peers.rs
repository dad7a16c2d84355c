//! Daemons that are down, die, hang, or are none.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::json;

use super::world::*;
use crate::util::{Answer, fixture};

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

#[test]
fn garbage_and_silence_are_told_apart() {
    let framed = |json: &str| [&(json.len() as i32).to_ne_bytes()[..], json.as_bytes()].concat();
    let rejected = "request_rejected";
    for (bytes, then, result, word) in [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            Then::Close,
            rejected,
            "is this port dynolog's?",
        ),
        (framed("[]"), Then::Close, rejected, "not a JSON object"),
        (framed("{\"status\":\"failed\""), Then::Close, rejected, "not JSON"),
        (
            framed("{\"status\":\"\\u001b[2J\u{9b}\"}"),
            Then::Close,
            rejected,
            "status [2J",
        ),
        (framed(&"[".repeat(100_000)), Then::Close, rejected, "not JSON"),
        (
            framed("{\"processesMatched\":[1e99]}"),
            Then::Close,
            rejected,
            "no process id",
        ),
        (framed("{\"processesMatched\":{}}"), Then::Hold, rejected, "not a list"),
        (vec![0xff; 4], Then::Close, rejected, "without content"),
        (
            vec![0xff, 0xff, 0xff, 0x7f, b'x'],
            Then::Drip,
            rejected,
            "is this port dynolog's?",
        ),
        (
            framed("{")[..5].iter().copied().chain([b' '; 3]).collect(),
            Then::Close,
            rejected,
            "not JSON",
        ),
        (
            b"\x40\x00\x00\x00{".to_vec(),
            Then::Close,
            "unreachable",
            "in the middle of a reply",
        ),
        (Vec::new(), Then::Close, "unreachable", "connection"),
        (Vec::new(), Then::Hold, "unreachable", "no reply within the time-out"),
        (
            b"\x00\x00\x10\x00{".to_vec(),
            Then::Drip,
            "unreachable",
            "in the middle of a reply",
        ),
    ] {
        let world = World::new();
        let address = format!("127.0.0.1:{}", peer(bytes, then));
        let output = world
            .trigger("rpc")
            .args(["--request-timeout", "0.5", "--hosts", &address])
            .output()
            .unwrap();
        assert_eq!(output.code(), 1, "{}", output.errors());
        assert!(
            !output.errors().contains(|c: char| c.is_control() && c != '\n'),
            "{:?}",
            output.errors()
        );
        let host = &output.json()["hosts"][0];
        assert_eq!(host["result"], result, "{host}");
        assert!(host["reason"].as_str().unwrap().contains(word), "{host}");
        // A request that hangs is not followed by a second one.
        let attempts = if then != Then::Close || result == rejected {
            1
        } else {
            3
        };
        assert_eq!(host["attempts"], attempts, "{host}");
    }
}

#[test]
fn any_process_ids_are_taken_as_they_come() {
    let pids = "[-1,0,9223372036854775807,-9223372036854775808]";
    let reply = format!("{{\"activityProfilersTriggered\":{pids},\"processesMatched\":{pids}}}");
    let bytes = [&(reply.len() as i32).to_ne_bytes()[..], reply.as_bytes()].concat();
    let world = World::new();
    let address = format!("127.0.0.1:{}", peer(bytes, Then::Close));
    let output = world.trigger("rpc").args(["--hosts", &address]).output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(world.manifest()["processes"].as_array().unwrap().len(), 4);
    let wait = world.wait("0");
    assert_eq!(wait.code(), 1, "{}", wait.errors());
    assert!(
        wait.json()["traces"]
            .as_array()
            .unwrap()
            .iter()
            .all(|trace| trace["fate"] == "process_died")
    );
}

#[test]
fn a_daemon_may_die_between_two_requests_and_come_back() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let first = world.daemon();
        let mut command = world.trigger(via);
        command.args(["--unreachable-attempts", "1000", "--max-attempts", "1000"]);
        let asking = std::thread::spawn(move || command.output().unwrap());
        let has = |verdict: &str| world.attempts().iter().any(|attempt| attempt["verdict"] == verdict);
        until("a request is answered", || has("waiting"));
        drop(first);
        until("one is not", || has("unreachable"));
        let _second = world.daemon();
        let _job = world.job(&["--ranks", "2", "--linger"]);
        let output = asking.join().unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        assert_eq!(output.json()["hosts"][0]["ranks_missing"], 0);
        assert_eq!(world.wait("100").code(), 0);
        world.over();
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
