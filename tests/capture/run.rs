//! `capture run`.

use std::os::unix::fs::symlink;

use super::world::*;
use crate::util::{Answer, fixture, python, tracemend};

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
        let output = world
            .run()
            .args(["--stable", "100", "--"])
            .arg("python3")
            .arg(&script)
            .args(["--ranks", "2", "--launcher"])
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        let mut expected = vec![None; launchers];
        expected.extend([Some(0), Some(1)]);
        assert_eq!(world.ranks(), expected, "{name}: {}", output.errors());
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
    until("the manifest", || !world.manifests().is_empty());
    signal(&running.0, "TERM");
    assert_eq!(
        running.0.wait().unwrap().code(),
        Some(70),
        "job.py says 70 when it is sent SIGTERM"
    );
    world.leaves_nothing();
}

#[test]
fn what_run_leaves_is_analyzed_collective_report_included() {
    let world = World::new();
    let mut command = world.run();
    command
        .args(["--stable", "100", "--"])
        .arg(fixture("dynolog/job.py"))
        .args(["--ranks", "4", "--launcher"]);
    let output = command.output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(world.ranks(), [None, Some(0), Some(1), Some(2), Some(3)]);
    let analyzed = tracemend()
        .arg("analyze")
        .arg(world.path("out"))
        .arg("-o")
        .arg(world.path("reports"))
        .arg("--python")
        .arg(python())
        .arg("--json-summary")
        .arg(world.path("summary.json"))
        .output()
        .unwrap();
    assert_eq!(analyzed.code(), 0, "{}{}", analyzed.text(), analyzed.errors());
    assert!(
        analyzed.text().contains("ranks 0-3 by capture-manifest"),
        "{}",
        analyzed.text()
    );
    assert!(
        analyzed.text().contains("SUCCESS  4 per-rank traces"),
        "{}",
        analyzed.text()
    );
    assert!(analyzed.text().contains("launcher, of no rank"), "{}", analyzed.text());
}
