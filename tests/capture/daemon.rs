//! The daemon's life: `start` and `stop`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::world::*;
use crate::util::{Answer, fixture};

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
    until("the manifest", || !world.manifests().is_empty());
    let stopped = stop();
    assert_eq!(stopped.code(), 0, "{}{}", stopped.text(), stopped.errors());
    for words in ["Captured 1 torch.profiler trace(s)", "dynolog cleanup complete"] {
        assert!(stopped.text().contains(words), "{}", stopped.text());
    }
    world.over();
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
    until("the result", || world.state().join("result.json").exists());
    // Its record names another's process now: the same id, another start.
    let state = world.state().join("daemon.json");
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
        write_script(&dynolog, script);
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
