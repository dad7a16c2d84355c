//! Ranks that have not registered when a request is made: they are waited for, or asked for later, or named.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::world::*;
use crate::util::{Answer, tracemend};

/// How many processes the daemon has been seen to know.
fn most_matched(world: &World) -> usize {
    let requests = world.requests();
    let matched = |one: &Value| one["reply"]["processesMatched"].as_array().map_or(0, Vec::len);
    requests.iter().map(matched).max().unwrap_or(0)
}

fn triggered(attempt: &Value) -> Vec<i64> {
    let pids = attempt["triggered"].as_array().unwrap();
    pids.iter().map(|pid| pid.as_i64().unwrap()).collect()
}

#[test]
fn a_rank_that_registers_late_is_waited_for() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let file = world.path("late").display().to_string();
        let _daemon = world.daemon();
        let _job = world.job(&["--ranks", "4", "--linger", "--late", &format!("3={file}")]);
        let mut command = world.trigger(via);
        command.args(["--stable", "100", "--max-attempts", "1000"]);
        let asking = std::thread::spawn(move || command.output().unwrap());
        until("three of four are seen", || most_matched(&world) == 3);
        fs::write(&file, "").unwrap();
        let output = asking.join().unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        let host = &output.json()["hosts"][0];
        assert_eq!(
            (&host["ranks_expected"], &host["ranks_missing"]),
            (&json!(4), &json!(0)),
            "{}",
            output.errors()
        );
        assert_eq!(triggered(host).len(), 4);
        assert_eq!(world.ranks(), [Some(0), Some(1), Some(2), Some(3)]);
        // Asking who is there asks for nothing.
        let requests = world.requests();
        let asks = |one: &Value| one["request"]["process_limit"] != 0;
        assert_eq!(requests.iter().filter(|one| asks(one)).count(), 1);
        assert!(requests.iter().all(|one| asks(one) || one["request"]["config"] == ""));
        world.over();
    }
}

#[test]
fn ranks_that_come_after_acceptance_are_asked_for_again() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let file = world.path("late").display().to_string();
        let _daemon = world.daemon();
        let _job = world.torchrun(&["--ranks", "4", "--linger", "--late", &format!("3={file}")]);
        let mut command = world.trigger(via);
        command.args(["--stable", "0", "--max-attempts", "1000"]);
        let asking = std::thread::spawn(move || command.output().unwrap());
        let accepted = || world.attempts().iter().flat_map(triggered).collect::<Vec<_>>();
        // The launcher may be of the first request or not: nobody asks for it again.
        until("three ranks are traced, and the fourth is asked for", || {
            let manifests = world.manifests();
            let processes = manifests
                .iter()
                .flat_map(|manifest| manifest["processes"].as_array().unwrap());
            let traced = processes.filter(|process| process["rank"].is_u64()).count();
            let words = |attempt: &Value| attempt["reason"] == "rank 3: not registered yet";
            traced == 3 && world.attempts().iter().any(words)
        });
        fs::write(&file, "").unwrap();
        let output = asking.join().unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        assert!(output.errors().contains("rank 3 so far"), "{}", output.errors());
        assert!(
            output.errors().contains("rank 3: not registered yet"),
            "{}",
            output.errors()
        );
        let host = &output.json()["hosts"][0];
        assert_eq!(
            (&host["result"], &host["ranks_missing"]),
            (&json!("accepted"), &json!(0))
        );
        let accepted = accepted();
        let distinct: BTreeSet<i64> = accepted.iter().copied().collect();
        assert_eq!(distinct.len(), accepted.len(), "nobody is traced twice: {accepted:?}");
        assert_eq!(triggered(host).len(), accepted.len());
        let captures: BTreeSet<String> = world.manifests().iter().map(|one| one["capture"].to_string()).collect();
        assert_eq!(captures.len(), 1, "one capture, whatever it took");
        let wait = world.wait("100");
        assert_eq!(wait.code(), 0, "{}", wait.text());
        assert_eq!(wait.json()["traces"].as_array().unwrap().len(), accepted.len());
        let ranks = tracemend()
            .args(["ranks", "--json"])
            .arg(world.path("out"))
            .output()
            .unwrap();
        assert_eq!(
            ranks.json()["groups"][0]["ranks"],
            json!([0, 1, 2, 3]),
            "{}",
            ranks.text()
        );
        world.over();
    }
}

#[test]
fn a_rank_that_never_registers_is_named() {
    let world = World::new();
    let _daemon = world.daemon();
    let _job = world.job(&["--ranks", "2", "--linger", "--late", "1=never"]);
    let ask = |arguments: &[&str]| {
        let mut command = world.trigger("rpc");
        command
            .args(["--stable", "0", "--retry-interval", "0.01"])
            .args(arguments)
            .output()
            .unwrap()
    };
    let output = ask(&["--max-attempts", "100"]);
    assert_eq!(output.code(), 0, "{}", output.errors());
    let host = &output.json()["hosts"][0];
    assert_eq!(
        (&host["result"], &host["ranks_expected"], &host["missing_ranks"]),
        (&json!("accepted"), &json!(2), &json!([1]))
    );
    assert!(
        output
            .errors()
            .contains("no capture of rank 1: not registered by the last attempt"),
        "{}",
        output.errors()
    );
    // The user's word: one rank is all, or three are.
    let one = ask(&["--expect", "1", "--max-attempts", "1000"]);
    assert_eq!(
        (one.code(), &one.json()["hosts"][0]["ranks_missing"]),
        (0, &json!(0)),
        "{}",
        one.errors()
    );
    let three = ask(&["--expect", "3", "--max-attempts", "20"]);
    assert_eq!(three.code(), 1, "{}", three.errors());
    world.over();
}

#[test]
fn a_launcher_alone_is_nobody_to_ask_and_takes_no_place() {
    let world = World::new();
    let file = world.path("late").display().to_string();
    let _daemon = world.daemon();
    let _job = world.torchrun(&["--ranks", "1", "--linger", "--late", &format!("0={file}")]);
    let mut command = world.trigger("rpc");
    command.args(["--process-limit", "1", "--max-attempts", "1000"]);
    let asking = std::thread::spawn(move || command.output().unwrap());
    until("only the launcher is there", || {
        world
            .attempts()
            .iter()
            .any(|attempt| attempt["reason"].as_str().unwrap().contains("only a launcher"))
    });
    fs::write(&file, "").unwrap();
    let output = asking.join().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(world.ranks(), [Some(0)]);
    world.over();
}

#[test]
fn processes_that_ended_are_not_asked_for_while_others_live() {
    let world = World::new();
    let _daemon = world.daemon();
    register(&world, &["2147480000,1"]);
    let _job = world.job(&["--ranks", "1", "--linger"]);
    until("both are registered", || world.registered() == 2);
    let output = world.trigger("rpc").output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(triggered(&output.json()["hosts"][0]).len(), 1);
    assert_eq!(world.ranks(), [Some(0)]);
    world.over();
    // Where nobody lives, they are asked for all the same: they may live where we do not see them.
    let world = World::new();
    let _daemon = world.daemon();
    register(&world, &["2147480000,1"]);
    let output = world.trigger("rpc").output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert!(
        output.errors().contains("none of them is seen to run here"),
        "{}",
        output.errors()
    );
}
