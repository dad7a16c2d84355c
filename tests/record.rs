//! The record of a run, and what is made of it: runs that are resumed, reports that are no traces.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::util::{Answer, copy_of, record, start_slow_analysis, tracemend, wait_until, with_tracelens};

#[test]
fn the_record_says_what_was_made_from_what_by_what() {
    let (run, out) = (copy_of("run"), tempfile::tempdir().unwrap());
    let output = with_tracelens(run.path(), out.path())
        .args(["--jobs", "2", "--memory-limit", "8G", "--job-timeout", "10m"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let record = record(out.path());
    assert_eq!(
        (
            &record["tracemend_record"],
            &record["finished"],
            &record["shard"],
            &record["cluster"]
        ),
        (&json!(1), &json!(true), &json!(null), &json!(null))
    );
    assert_eq!(record["tracemend"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        record["reporter"]["tracelens"]["distribution"],
        "tracemend-tracelens-stand-in 0.1.0"
    );
    let limits = &record["limits"];
    assert_eq!(
        (&limits["jobs"], &limits["memory_bytes"], &limits["job_timeout_seconds"]),
        (&json!(2), &json!(8u64 << 30), &json!(600.0))
    );
    let words: Vec<&str> = record["command_line"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w.as_str().unwrap())
        .collect();
    assert_eq!(words[1..4], ["analyze", "--json", run.path().to_str().unwrap()]);
    let plugins = record["plugins"].as_array().unwrap();
    let listed = tracemend().args(["plugin", "list", "--json"]).output().unwrap().json();
    assert!(
        plugins
            .iter()
            .any(|plugin| plugin["name"] == "kineto-content" && plugin["origin"] == "built in")
    );
    for plugin in plugins {
        let sha256 = plugin["sha256"].as_str().unwrap();
        assert!(listed.to_string().contains(sha256), "{plugin}");
    }

    let trace = |path: &str| {
        let traces = record["traces"].as_array().unwrap();
        traces.iter().find(|trace| trace["path"] == path).unwrap()
    };
    let damaged = trace("train/libkineto_trace_48211.json");
    assert_eq!(
        (
            &damaged["verdict"],
            &damaged["mended"],
            &damaged["flaws"],
            &damaged["rank"],
            &damaged["by"]
        ),
        (
            &json!("damaged"),
            &json!(true),
            &json!({"ill-formed-utf8": 15}),
            &json!(3),
            &json!("kineto-content")
        )
    );
    assert!(out.path().join(damaged["edits"].as_str().unwrap()).exists());
    let clean = trace("train/libkineto_trace_48209.json");
    assert_eq!(
        (&clean["verdict"], &clean["mended"], &clean["edits"]),
        (&json!("clean"), &json!(false), &json!(null))
    );
    assert_eq!(clean["size"], 38204);

    let jobs = record["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), output.json()["results"].as_array().unwrap().len());
    for job in jobs.iter().filter(|job| job["status"] == "SUCCESS") {
        assert!(
            job["seconds"].as_f64().unwrap() > 0.0 && job["peak_bytes"].as_u64().unwrap() > 1 << 20,
            "{job}"
        );
        for made in job["outputs"].as_array().unwrap() {
            assert!(out.path().join(made.as_str().unwrap()).exists(), "{made}");
        }
        assert!(out.path().join(job["log"].as_str().unwrap()).exists());
        assert_eq!(job["kept"], false);
    }
    let times = ["started", "ended"].map(|at| record[at].as_str().unwrap().to_owned());
    assert!(times[0] < times[1] && times[1].ends_with('Z'), "{times:?}");
}

/// How often each trace was given to TraceLens, by the stand-in's log.
fn calls(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap_or_default();
    let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut scripts: Vec<String> = calls
        .filter(|call| !call["argv"].as_array().unwrap().iter().any(|word| word == "--help"))
        .map(|call| {
            let script = call["script"]
                .as_str()
                .unwrap()
                .trim_start_matches("TraceLens_generate_");
            let argv = call["argv"].as_array().unwrap();
            let after = |flag: &str| {
                let at = argv.iter().position(|word| word == flag)?;
                let path = Path::new(argv[at + 1].as_str()?);
                Some(path.file_name()?.to_string_lossy().into_owned())
            };
            let what = after("--output_xlsx_path")
                .or_else(|| after("--output_csvs_dir"))
                .unwrap();
            format!("{script} {what}")
        })
        .collect();
    scripts.sort();
    scripts
}

#[test]
fn a_resumed_run_makes_what_is_missing_failed_or_changed() {
    let (run, out) = (copy_of("run"), tempfile::tempdir().unwrap());
    let log = out.path().join("calls.jsonl");
    let resume = |extra: &[&str]| {
        let _ = fs::remove_file(&log);
        let output = with_tracelens(run.path(), out.path())
            .env("TRACELENS_STAND_IN_LOG", &log)
            .args(["--resume"])
            .args(extra)
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
        let summary = output.json();
        assert_eq!(
            (&summary["succeeded"], &summary["skipped"]),
            (&json!(9), &json!(1)),
            "{summary:#}"
        );
        (calls(&log), output.errors())
    };
    let (all, _) = resume(&[]);
    assert_eq!(all.len(), 10, "{all:?}");
    assert_eq!(resume(&[]).0, [""; 0]);
    assert!(record(out.path())["jobs"].as_array().unwrap().iter().all(|job| {
        job["kept"] == (job["status"] == "SUCCESS")
            && (job["mended"] == false || !job["edits"].as_array().unwrap().is_empty())
    }));
    assert!(
        record(out.path())["traces"]
            .as_array()
            .unwrap()
            .iter()
            .all(|trace| trace["mended"] == trace["edits"].is_string())
    );

    // An output that is gone, one that is no longer whole, a folder that is empty.
    fs::remove_file(out.path().join("train_libkineto_trace_48209.xlsx")).unwrap();
    fs::write(out.path().join("train_libkineto_trace_48213.xlsx"), "half").unwrap();
    fs::remove_dir_all(out.path().join("rocprof_node01_4711_results_csv")).unwrap();
    assert_eq!(
        resume(&[]).0,
        [
            "perf_report_pytorch train_libkineto_trace_48209.xlsx",
            "perf_report_pytorch train_libkineto_trace_48213.xlsx",
            "perf_report_rocprof rocprof_node01_4711_results.xlsx",
            "perf_report_rocprof rocprof_node01_4711_results_csv",
        ]
    );

    // A trace that has changed costs its own report and the collective one.
    let changed = run.path().join("train/libkineto_trace_48216.json");
    let mut text = fs::read(&changed).unwrap();
    text.push(b'\n');
    fs::write(&changed, text).unwrap();
    assert_eq!(
        resume(&[]).0,
        [
            "multi_rank_collective_report_pytorch multi_rank_collective_train.xlsx",
            "perf_report_pytorch train_libkineto_trace_48216.xlsx",
        ]
    );

    // Other options: nothing is kept, and that is said.
    let (made, errors) = resume(&["--keep-pythonpath"]);
    assert_eq!(made, all);
    assert!(
        errors.contains("made by another reporter, version or options"),
        "{errors}"
    );

    let path = out.path().join("tracemend_record.json");
    for (text, why) in [
        ("{}", "is no record of a run"),
        (r#"{"tracemend_record": 99}"#, "a record of version 99"),
    ] {
        fs::write(&path, text).unwrap();
        let output = with_tracelens(run.path(), out.path()).arg("--resume").output().unwrap();
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains(why), "{}", output.errors());
    }
}

#[test]
fn killed_half_way_the_record_is_whole_and_the_run_is_resumed() {
    let (run, out) = (copy_of("run/train"), tempfile::tempdir().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let mut child = start_slow_analysis(run.path(), out.path(), scratch.path());
    let path = out.path().join("tracemend_record.json");
    let successes = || {
        let record: Value = serde_json::from_slice(&fs::read(&path).ok()?).unwrap();
        let jobs = record["jobs"].as_array()?;
        Some(jobs.iter().filter(|job| job["status"] == "SUCCESS").count())
    };
    wait_until("two reports", || successes().is_some_and(|number| number >= 2));
    child.kill().unwrap();
    child.wait().unwrap();
    let place = out.path().as_os_str().as_encoded_bytes();
    let of_this_run = |process: &fs::DirEntry| {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        memchr::memmem::find(&command, place).is_some()
    };
    wait_until("TraceLens has ended as well", || {
        !fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .any(|process| of_this_run(&process))
    });
    let done = successes().unwrap();
    assert!(record(out.path())["finished"] == false && done >= 2);
    let rows = fs::read_to_string(out.path().join("tracelens_summary.csv")).unwrap();
    assert!(rows.lines().filter(|line| line.contains("SUCCESS")).count() >= done);

    let log = out.path().join("calls.jsonl");
    let output = with_tracelens(run.path(), out.path())
        .arg("--resume")
        .env("TRACELENS_STAND_IN_LOG", &log)
        .output()
        .unwrap();
    assert_eq!(output.json()["succeeded"], 5);
    assert_eq!(calls(&log).len(), 5 - done);
    assert_eq!(record(out.path())["finished"], true);
    let partial = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().starts_with('.');
    assert!(
        !fs::read_dir(out.path()).unwrap().any(partial),
        "nothing half made is left"
    );
}

#[test]
fn reports_of_any_earlier_run_are_no_traces() {
    let run = copy_of("run");
    for (number, folder) in ["one", "two/reports", "three"].into_iter().enumerate() {
        let output = with_tracelens(run.path(), &run.path().join(folder)).output().unwrap();
        assert_eq!(output.json()["results"].as_array().unwrap().len(), 10);
        assert_eq!(output.errors().lines().count(), number, "{}", output.errors());
    }
}
