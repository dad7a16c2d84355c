//! What the author of a plugin meets: a folder to start from, a build, a check.

use std::fs;

use serde_json::{Value, json};

use crate::util::{Answer, fixture, guest, tracemend};

fn check(arguments: &[&str]) -> std::process::Output {
    tracemend().args(["plugin", "check"]).args(arguments).output().unwrap()
}

#[test]
fn every_built_in_plugin_passes_what_it_asks_of_others() {
    for name in [
        "capture-manifest",
        "kineto-content",
        "producers",
        "rank-in-name",
        "by-elimination",
        "dyno-cli",
        "dynolog-rpc",
    ] {
        let output = check(&[name, "--json"]);
        let report = output.json();
        assert_eq!((output.code(), &report["passed"]), (0, &json!(true)), "{report}");
        assert_eq!(report["conformance"].as_array().unwrap().len(), 7);
        assert_eq!(report["cases"], Value::Null);
    }
}

#[test]
fn recorded_calls_are_cases_as_they_stand() {
    let calls = fixture("dyno/calls.jsonl");
    let output = check(&["dyno-cli", "--cases", calls.to_str().unwrap()]);
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    assert!(
        output.text().contains("232 of 232 cases as expected in "),
        "{}",
        output.text()
    );

    // The same calls with one verdict that is not so.
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.jsonl");
    let text = fs::read_to_string(&calls).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let changed = first.replace(r#""verdict": "accepted""#, r#""verdict": "busy""#);
    assert_ne!(first, changed);
    fs::write(&wrong, format!("{changed}\n\n{rest}")).unwrap();
    let output = check(&["dyno-cli", "--json", "--cases", wrong.to_str().unwrap()]);
    assert_eq!(output.code(), 1);
    let report = output.json();
    let differences = report["cases"]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{report}");
    assert_eq!(
        (&differences[0]["line"], &differences[0]["expected"]),
        (&json!(1), &json!("busy, matched [4101], triggered [4101], busy 0"))
    );
    assert!(
        differences[0]["got"]
            .as_str()
            .unwrap()
            .starts_with("accepted, matched [4101]")
    );
    assert_eq!(
        (&report["cases"]["total"], &report["passed"]),
        (&json!(232), &json!(false))
    );
}

#[test]
fn each_difference_shows_what_was_expected_and_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.tsv");
    fs::write(
        &cases,
        "name\trole\trank\tnode\ngpu2@n03.json\ttrace\t14\tn03\ngpu2@n03.json\ttrace\t9\nlogin.json\ttrace\t\n\
         gpu1@n00.json\tmerged\t\ngpu1@\u{1b}[2J.json\ttrace\t5\n",
    )
    .unwrap();
    let gpu_slot = guest("gpu-slot");
    let arguments = [gpu_slot.to_str().unwrap(), "--cases", cases.to_str().unwrap()];
    let output = check(&arguments);
    assert_eq!(output.code(), 1, "{}", output.errors());
    let text = output.text();
    for line in [
        "2 of 5 cases as expected in ",
        "  line 3: gpu2@n03.json\n    expected  rank 9\n    got       rank 14 on n03 (slot 2 of n03)\n",
        "  line 5: gpu1@n00.json\n    expected  no rank (merged)\n    got       rank 1 on n00 (slot 1 of n00)\n",
        "  line 6: gpu1@\\u{1b}[2J.json\n    expected  rank 5\n    got       ",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    assert!(!text.contains('\u{1b}'));

    // Settings are the site's; with eight GPUs a node the first row is wrong too.
    let output = tracemend()
        .args(["plugin", "check", "--json", "--set", "gpus-per-node=8"])
        .args(arguments)
        .output()
        .unwrap();
    let report = output.json();
    assert_eq!(
        report["cases"]["differences"][0]["got"],
        "rank 26 on n03 (slot 2 of n03)"
    );
}

#[test]
fn a_plugin_that_traps_or_exceeds_a_limit_does_not_pass() {
    let hostile = guest("hostile");
    let hostile = hostile.to_str().unwrap();
    let output = check(&[hostile, "--plugin-memory", "2"]);
    assert_eq!(output.code(), 1, "{}", output.text());
    let text = output.text();
    assert!(
        text.contains("FAILED  10,000 traces, within the limits: given 10000 traces: label-all: stopped when it wanted more than 2 MiB"),
        "{text}"
    );
    assert!(text.contains("passed  empty list"), "{text}");

    // A list that was lost is lost for each of its cases, and each says why.
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.tsv");
    fs::write(&cases, "name\trole\trank\npanic.json\ttrace\t\nother.json\ttrace\t\n").unwrap();
    let output = check(&[hostile, "--json", "--cases", cases.to_str().unwrap()]);
    assert_eq!(output.code(), 1);
    let report = output.json();
    let differences = report["cases"]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 2, "{report}");
    assert!(
        differences[1]["got"].as_str().unwrap().starts_with("panicked at"),
        "{report}"
    );
}

#[test]
fn what_cannot_be_checked_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (no_table, no_calls) = (file("table", "a,b\n1,2\n"), file("calls", "{\"name\": 1}\n"));
    let no_verdict = file(
        "verdict",
        r#"{"name":"a","exit":0,"stdout":"","stderr":"","expected":{"verdict":"maybe"}}"#,
    );
    let nothing_expected = file("nothing", r#"{"name":"a","exit":0,"stdout":"","stderr":""}"#);
    let text = file("text.wasm", "#!/bin/sh\n");
    let tomorrow = guest("tomorrow");
    for (arguments, code, why) in [
        (vec!["no-such-plugin"], 2, "cannot read no-such-plugin"),
        (vec![text.as_str()], 1, "it is not WebAssembly"),
        (
            vec![tomorrow.to_str().unwrap()],
            1,
            "it was built for version 0.2.0 of the plugin contract",
        ),
        (
            vec!["producers", "--cases", "/nowhere.tsv"],
            2,
            "cannot read /nowhere.tsv: No such file",
        ),
        (vec!["producers", "--cases", &no_table], 2, "line 1: no column \"name\""),
        (vec!["dyno-cli", "--cases", &no_calls], 2, "line 1: invalid type"),
        (
            vec!["dyno-cli", "--cases", &no_verdict],
            2,
            "line 1: there is no verdict \"maybe\"",
        ),
        (
            vec!["dyno-cli", "--cases", &nothing_expected],
            2,
            "line 1: no \"expected\"",
        ),
        (
            vec!["rank-in-name", "--set", "a=b"],
            2,
            "--set a: rank-in-name has no settings",
        ),
        (
            vec!["producers", "--set", "size=1"],
            2,
            "--set size: producers has only sizes",
        ),
    ] {
        let output = check(&arguments);
        assert_eq!(output.code(), code, "{arguments:?}: {}", output.errors());
        assert!(output.one_error().contains(why), "{arguments:?}: {}", output.errors());
    }
}
