//! Asking, and what verdicts lead to.

use std::fs;

use serde_json::{Value, json};

use super::world::*;
use crate::util::{Answer, fixture, tracemend};

#[test]
fn an_accepted_request_notes_who_is_who_and_every_file_is_waited_for() {
    for via in ["dyno", "rpc"] {
        let world = World::new();
        let (_daemon, _job) = (world.daemon(), world.job(&["--ranks", "3", "--launcher", "--linger"]));
        let mut command = world.trigger(via);
        let output = command
            .args(["--max-attempts", "400", "--stable", "100"])
            .output()
            .unwrap();
        assert_eq!(output.json()["result"], "accepted", "{}", output.errors());
        assert_eq!(world.ranks(), [None, Some(0), Some(1), Some(2)]);
        let manifest = world.manifest();
        assert_eq!(manifest["tracemend_manifest"], 1);
        for process in manifest["processes"].as_array().unwrap() {
            assert_eq!(process["trace"], format!("libkineto_trace_{}.json", process["pid"]));
            assert!(process["start_time"].as_f64().unwrap() > 1e9);
            assert_eq!(process["has_gpu"], false);
        }
        let wait = world.wait("50");
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
        // Attempts lie beside the traces too, under the capture's name.
        let beside = names(&world.path("out"))
            .into_iter()
            .find(|name| name.starts_with("tracemend-attempts-"));
        let beside = fs::read_to_string(world.path("out").join(beside.unwrap())).unwrap();
        let last: Value = serde_json::from_str(beside.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&last["verdict"], &last["capture"]),
            (&json!("accepted"), &manifest["capture"])
        );
        world.over();
    }
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
    let help = "[ \"$2\" = --help ] && { echo '  --log-file <F>'; exit 0; }";
    write_script(
        &dyno,
        &format!("{help}\necho x >> \"$COUNT\"\necho 'error: I will not' >&2\nexit 2"),
    );
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
