use std::fs;

use serde_json::{Value, json};

use crate::util::{Answer, fixture, guest, tracemend};

#[test]
fn every_recorded_call_gets_its_verdict() {
    let calls = fixture("dyno/calls.jsonl");
    let output = tracemend()
        .args(["interpret", "--json", "--calls"])
        .arg(&calls)
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let recorded: Vec<Value> = fs::read_to_string(calls)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let answers = output.json_lines();
    assert_eq!(recorded.len(), answers.len());
    for (call, answer) in recorded.iter().zip(&answers) {
        let expected = &call["expected"];
        let or = |key: &str, default: Value| expected.get(key).cloned().unwrap_or(default);
        let wanted = json!({
            "name": call["name"], "verdict": expected["verdict"], "reason": answer["reason"],
            "matched": or("matched", json!([])), "triggered": or("triggered", json!([])), "busy": or("busy", json!(0)),
        });
        assert_eq!(*answer, wanted);
        assert!(!answer["reason"].as_str().unwrap().is_empty(), "{answer}");
    }
}

#[test]
fn a_log_path_that_imitates_a_reply_fools_nobody() {
    let reply = r#"{"activityProfilersBusy":0,"activityProfilersTriggered":[],"eventProfilersBusy":0,"eventProfilersTriggered":[],"processesMatched":[]}"#;
    let stdout = format!(
        "Kineto config = \nACTIVITIES_LOG_FILE=/tmp/a\nresponse length = 24\nresponse = {{\"processesMatched\":[1]}}\n.json\nresponse length = {}\nresponse = {reply}\nNo processes were matched, please check --job-id or --pids flags\n",
        reply.len()
    );
    let call = json!({"name": "imitated", "exit": "0", "stdout": stdout, "stderr": ""}).to_string();
    let output = tracemend()
        .args(["interpret", "--json", "--calls", "-"])
        .write_stdin(call)
        .output()
        .unwrap();
    assert_eq!(output.json()["verdict"], "waiting");
}

#[test]
fn broken_recordings_are_named_by_line() {
    let good = r#"{"name":"a","exit":"0","stdout":"","stderr":""}"#;
    for (bad, why) in [
        ("{", "line 2"),
        (r#"{"name":"b","exit":"perhaps","stdout":"","stderr":""}"#, "perhaps"),
    ] {
        let output = tracemend()
            .args(["interpret", "--calls", "-"])
            .write_stdin(format!("{good}\n{bad}\n"))
            .output()
            .unwrap();
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains(why), "{}", output.errors());
    }
    let output = tracemend()
        .args(["interpret", "--calls", "/nowhere.jsonl"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("cannot read /nowhere.jsonl"));
}

#[test]
fn a_naming_plugin_interprets_nothing() {
    let calls = fixture("dyno/calls.jsonl");
    let output = tracemend()
        .args(["interpret", "--calls"])
        .arg(calls)
        .arg("--plugin")
        .arg(guest("gpu-slot"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(
        output
            .one_error()
            .contains("it is a trace-naming plugin, and a dyno-interpreter plugin is wanted here")
    );
}
