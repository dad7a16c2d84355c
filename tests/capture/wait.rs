//! Waiting for files, and where they come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::world::*;
use crate::util::{Answer, fixture};

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
    world.over();
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
        let wait = world.wait(if how == "die" { "50" } else { "0.3" });
        assert_eq!(wait.code(), 1);
        assert_eq!(wait.json()["traces"][0]["fate"], fate, "{}", wait.text());
        world.over();
    }
    let world = World::new();
    let nothing = world.capture("wait").arg(world.path("out")).output().unwrap();
    assert_eq!(nothing.code(), 2);
    assert!(nothing.one_error().contains("no capture manifest"));
}

#[test]
fn a_trace_that_kineto_redirects_is_found_and_brought() {
    let allowed = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let allowed = allowed.path().to_str().unwrap();
    let variable = ("KINETO_ONDEMAND_TRACE_DIR", allowed);
    // The job may write below one folder only, which the trigger does not know: Kineto redirects without a word.
    let world = World::new();
    let _daemon = world.daemon();
    let _job = world.job_with(&["--ranks", "1", "--linger"], &[variable]);
    let output = world.trigger("rpc").args(["--max-attempts", "400"]).output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(world.manifest()["processes"][0]["trace_dir"], allowed);
    let wait = world.wait("50");
    assert_eq!(wait.code(), 0, "{}{}", wait.text(), wait.errors());
    let trace = wait.json()["traces"][0].clone();
    assert_eq!(trace["fate"], "redirected");
    let pid = &trace["pid"];
    assert!(world.path(&format!("out/libkineto_trace_{pid}.json")).is_file());
    assert!(!Path::new(&format!("/tmp/libkineto_activities_{pid}.json")).exists());
    world.over();

    // Where the trigger knows it, nothing is redirected.
    let world = World::new();
    let _daemon = world.daemon();
    let _job = world.job_with(&["--ranks", "1", "--linger"], &[variable]);
    let mut command = world.trigger("rpc");
    let output = command
        .args(["--max-attempts", "400"])
        .env(variable.0, allowed)
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert!(
        world.manifest()["processes"][0]["trace_path"]
            .as_str()
            .unwrap()
            .starts_with(allowed)
    );
    let wait = world.wait("50");
    assert_eq!(wait.json()["traces"][0]["fate"], "written", "{}", wait.errors());
    world.over();
}

#[test]
fn more_processes_than_one_manifest_holds_are_all_waited_for() {
    let world = World::new();
    let _daemon = world.daemon();
    // Ids that no process of this system can have.
    let pids: Vec<String> = (0..250).map(|n| format!("{},1", 2_147_480_000 + n)).collect();
    register(&world, &pids.iter().map(String::as_str).collect::<Vec<_>>());
    let limited = world
        .trigger("rpc")
        .args(["--pids", "2147480000,2147480001", "--process-limit", "1"])
        .output()
        .unwrap();
    assert_eq!(
        limited.json()["hosts"][0]["triggered"],
        serde_json::json!([2_147_480_000_u32])
    );
    let output = world.trigger("rpc").args(["--process-limit", "1000"]).output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let manifests = world.manifests();
    let newest = manifests
        .iter()
        .map(|manifest| manifest["capture"].as_str().unwrap())
        .max()
        .unwrap();
    let parts: Vec<&Value> = manifests
        .iter()
        .filter(|manifest| manifest["capture"] == newest)
        .collect();
    let sizes: Vec<usize> = parts
        .iter()
        .map(|part| part["processes"].as_array().unwrap().len())
        .collect();
    assert_eq!((sizes.iter().sum::<usize>(), sizes.len()), (249, 3), "{sizes:?}");
    for part in &parts {
        assert!(part["processes"].to_string().len() < 64 << 10);
        for process in part["processes"].as_array().unwrap() {
            fs::write(process["trace_path"].as_str().unwrap(), "{\"traceEvents\": []}").unwrap();
        }
    }
    let wait = world.wait("0");
    assert_eq!(wait.code(), 0, "{}", wait.text());
    assert_eq!(wait.json()["traces"].as_array().unwrap().len(), 249);
}

#[test]
fn a_process_in_a_namespace_of_its_own_is_known_by_both_ids() {
    let unshare = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--kill-child", "--pid", "--fork", "--mount-proc"])
            .args(arguments);
        command
    };
    if !unshare(&["true"]).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user may make no process namespace");
        return;
    }
    let world = World::new();
    let _daemon = world.daemon();
    // Nobody's parent is process 1, which would look like the end of the job.
    let mut command = unshare(&["sh", "-c", "sh -c '\"$0\" \"$@\"; true' \"$0\" \"$@\"; true"]);
    command
        .arg(fixture("dynolog/job.py"))
        .args(["--ranks", "2", "--linger", "--until"])
        .arg(world.path("over"));
    let _job = world.run_as_job(command);
    let mut command = world.trigger("rpc");
    let output = command
        .args(["--max-attempts", "400", "--stable", "100"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(world.ranks(), [Some(0), Some(1)]);
    for process in world.manifest()["processes"].as_array().unwrap() {
        let inner = process["pid"].as_u64().unwrap();
        let ids: Vec<u64> = process["ns_pids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_u64().unwrap())
            .collect();
        assert!(
            ids.len() > 1 && ids.last() == Some(&inner) && ids[0] != inner,
            "{process}"
        );
    }
    let wait = world.wait("50");
    assert_eq!(wait.code(), 0, "{}", wait.text());
    world.over();
}
