//! How the jobs of `analyze` are run: limits, outcomes, what is on disk at which moment.

use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::util::{Answer, copy_of, fixture, python, tracemend};

const PYTORCH: &str = "TraceLens_generate_perf_report_pytorch";

fn with_tracelens(run: &Path, out: &Path) -> Command {
    with_python(run, out, &python())
}

fn with_python(run: &Path, out: &Path, python: &Path) -> Command {
    let mut command = tracemend();
    command.args(["analyze", "--json"]).arg(run).arg("-o").arg(out);
    command.arg("--python").arg(python);
    command
}

/// An environment whose TraceLens makes the reports of one kind by a shell script of ours; all else is the stand-in's.
struct Odd {
    folder: TempDir,
}

impl Odd {
    fn new(script: &str, body: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = python();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("python", format!("#!/bin/sh\nexec '{}' \"$@\"\n", real.display()));
        let real_script = real.with_file_name(script);
        // The output is what follows --output_xlsx_path.
        write(
            script,
            format!(
                "#!/bin/sh\nreal='{}'\ncase \"$*\" in *--help*) exec \"$real\" \"$@\";; esac\nprevious=; xlsx=; csv=\nfor word; do\n  [ \"$previous\" = --output_xlsx_path ] && xlsx=$word\n  [ \"$previous\" = --output_csvs_dir ] && csv=$word\n  previous=$word\ndone\n{body}\n",
                real_script.display()
            ),
        );
        Odd { folder }
    }

    fn python(&self) -> PathBuf {
        self.folder.path().join("python")
    }
}

fn one_trace() -> TempDir {
    let run = tempfile::tempdir().unwrap();
    fs::copy(
        fixture("run/train/libkineto_trace_48209.json"),
        run.path().join("a.json"),
    )
    .unwrap();
    run
}

fn only_row(summary: &Value) -> &Value {
    let rows = summary["results"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{summary:#}");
    &rows[0]
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_program_that_takes_too_long_ends_with_all_that_it_started() {
    let (run, out) = (one_trace(), tempfile::tempdir().unwrap());
    let odd = Odd::new(
        PYTORCH,
        "echo loading; sleep 600 & echo $! > \"$(dirname \"$0\")/pid\"; wait",
    );
    let output = with_python(run.path(), out.path(), &odd.python())
        .args(["--job-timeout", "1s"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 1, "{}", output.errors());
    let summary = output.json();
    let row = only_row(&summary);
    assert_eq!(row["status"], "FAILURE");
    assert_eq!(
        row["detail"],
        "ended after 1s, the limit of --job-timeout; its last words: loading"
    );
    let pid = fs::read_to_string(odd.folder.path().join("pid")).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    assert!(stat.is_err() || stat.unwrap().contains(") Z "), "its child still runs");
}

#[test]
fn a_half_workbook_is_a_failure_and_none_is_left() {
    let (run, out) = (one_trace(), tempfile::tempdir().unwrap());
    for (body, code, why) in [
        (
            "mkdir \"$csv\"; echo x > \"$csv/a.csv\"; echo half > \"$xlsx\"; echo 'openpyxl IllegalCharacterError: x'; exit 1",
            1,
            "openpyxl IllegalCharacterError: x",
        ),
        (
            "mkdir \"$csv\"; echo x > \"$csv/a.csv\"; echo half > \"$xlsx\"",
            1,
            "TraceLens exited with 0, but a.xlsx is not usable: it is no whole workbook",
        ),
        (
            "\"$real\" \"$@\"; rm \"$csv\"/*.csv",
            1,
            "TraceLens exited with 0, but a_csv is not usable: the folder holds no CSV",
        ),
        (
            ":",
            1,
            "TraceLens exited with 0, but a.xlsx is not usable: it is not there",
        ),
        ("kill -9 $$", 1, "killed (signal 9)"),
        ("\"$real\" \"$@\"", 0, ""),
    ] {
        let odd = Odd::new(PYTORCH, body);
        let output = with_python(run.path(), out.path(), &odd.python()).output().unwrap();
        assert_eq!(output.code(), code, "{body}: {}", output.text());
        let summary = output.json();
        let detail = only_row(&summary)["detail"].as_str().unwrap();
        assert!(detail.starts_with(why), "{body}: {detail}");
        let reports = names(out.path()).iter().any(|name| name.starts_with("a."));
        assert_eq!(reports, code == 0, "{body}: {:?}", names(out.path()));
    }
}

#[test]
fn an_earlier_report_is_never_taken_for_this_runs() {
    let (run, out) = (one_trace(), tempfile::tempdir().unwrap());
    assert_eq!(with_tracelens(run.path(), out.path()).output().unwrap().code(), 0);
    let good = fs::read(out.path().join("a.xlsx")).unwrap();
    let odd = Odd::new(PYTORCH, "echo first; echo second; exit 1");
    let output = with_python(run.path(), out.path(), &odd.python()).output().unwrap();
    let summary = output.json();
    let row = only_row(&summary);
    assert_eq!(row["detail"], "second; the report of an earlier run is in previous");
    assert_eq!(row["last_lines"], json!(["first", "second"]));
    assert!(!out.path().join("a.xlsx").exists() && !out.path().join("a_csv").exists());
    assert_eq!(fs::read(out.path().join("previous/a.xlsx")).unwrap(), good);
    let text = tracemend()
        .arg("analyze")
        .arg(run.path())
        .arg("-o")
        .arg(out.path())
        .arg("--python")
        .arg(odd.python())
        .output()
        .unwrap()
        .text();
    assert!(
        text.contains("a.json ended with (all of it in logs/a.log):\n    first\n    second\n"),
        "{text}"
    );

    assert_eq!(with_tracelens(run.path(), out.path()).output().unwrap().code(), 0);
    assert!(out.path().join("a.xlsx").exists());
    assert_eq!(
        names(&out.path().join("previous")),
        ["a.xlsx", "a_csv"],
        "kept: it was not replaced by this run"
    );
}

#[test]
fn damage_is_named_where_its_report_fails() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::copy(
        fixture("run/train/libkineto_trace_48211.json"),
        run.path().join("a.json"),
    )
    .unwrap();
    let odd = Odd::new(PYTORCH, "echo 'KeyError: x'; exit 1");
    let output = with_python(run.path(), out.path(), &odd.python()).output().unwrap();
    assert_eq!(
        only_row(&output.json())["detail"],
        "KeyError: x (read from the mended copy of a.json: ill-formed-utf8 at line 455, column 83, byte 20569)"
    );
}

#[test]
fn edits_are_logged_and_lead_back_to_the_original() {
    let run = copy_of("run");
    for reporter in ["builtin", "tracelens"] {
        let out = tempfile::tempdir().unwrap();
        let output = with_tracelens(run.path(), out.path())
            .args(["--reporter", reporter])
            .output()
            .unwrap();
        let summary = output.json();
        for (trace, name) in [
            ("train/libkineto_trace_48211.json", "train_libkineto_trace_48211"),
            ("rocprof/node01/4711_results.json", "rocprof_node01_4711_results"),
        ] {
            let rows = summary["results"].as_array().unwrap();
            let row = rows.iter().find(|row| row["trace_file"] == trace).unwrap();
            assert_eq!(row["edits"], json!([format!("edits/{name}.jsonl")]));
            let folder = tempfile::tempdir().unwrap();
            let (copy, original) = (folder.path().join("copy.json"), folder.path().join("original.json"));
            let repair = tracemend()
                .arg("repair")
                .arg(run.path().join(trace))
                .arg("-o")
                .arg(&copy)
                .output();
            assert_eq!(repair.unwrap().code(), 0);
            let log = out.path().join(row["edits"][0].as_str().unwrap());
            let restore = tracemend()
                .arg("restore")
                .arg(&copy)
                .arg(log)
                .arg("-o")
                .arg(&original)
                .output();
            assert_eq!(restore.unwrap().code(), 0);
            assert_eq!(fs::read(original).unwrap(), fs::read(run.path().join(trace)).unwrap());
        }
        assert_eq!(names(&out.path().join("edits")).len(), 2);
    }
}

/// A run of four damaged ranks of about 38 KB.
fn damaged_ranks() -> TempDir {
    let run = tempfile::tempdir().unwrap();
    for pid in ["48209", "48211", "48213", "48216"] {
        let name = format!("libkineto_trace_{pid}.json");
        let mut trace = fs::read(fixture("run/train").join(&name)).unwrap();
        let at = memchr::memmem::find(&trace, b"gemm")
            .or_else(|| memchr::memmem::find(&trace, b"Cijk"))
            .unwrap();
        trace[at] = 0xff;
        fs::write(run.path().join(name), trace).unwrap();
    }
    run
}

#[test]
fn scratch_space_is_bounded_and_a_report_that_cannot_fit_says_so() {
    let run = damaged_ranks();
    for (limit, collective) in [("60K", "FAILURE"), ("170K", "SUCCESS")] {
        let (out, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        // Each call notes how much scratch space is taken while it runs.
        let odd = Odd::new(
            PYTORCH,
            "cat \"$TMPDIR\"/tracemend-*/mended* | wc -c >> \"$(dirname \"$0\")/taken\"; exec \"$real\" \"$@\"",
        );
        let collective_script = "TraceLens_generate_multi_rank_collective_report_pytorch";
        fs::copy(
            python().with_file_name(collective_script),
            odd.folder.path().join(collective_script),
        )
        .unwrap();
        let output = with_python(run.path(), out.path(), &odd.python())
            .args(["--jobs", "4", "--scratch-limit", limit])
            .env("TMPDIR", scratch.path())
            .output()
            .unwrap();
        let summary = output.json();
        assert_eq!(
            summary["succeeded"],
            if collective == "SUCCESS" { 5 } else { 4 },
            "{summary:#}"
        );
        let rows = summary["results"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["trace_file"] == "4 per-rank traces")
            .unwrap();
        assert_eq!(row["status"], collective);
        if collective == "FAILURE" {
            let detail = row["detail"].as_str().unwrap();
            assert!(
                detail.starts_with("its 4 mended copies, all needed at once, can take 1")
                    && detail.contains("more than --scratch-limit 60.00 KiB"),
                "{detail}"
            );
        }
        let taken = fs::read_to_string(odd.folder.path().join("taken")).unwrap();
        let most: u64 = taken
            .lines()
            .map(|line| line.trim().parse::<u64>().unwrap())
            .max()
            .unwrap();
        assert!(
            most > 0 && most <= if collective == "FAILURE" { 60 << 10 } else { 170 << 10 },
            "{taken}"
        );
        assert_eq!(names(scratch.path()), [""; 0], "scratch is gone");
    }
}

#[test]
fn memory_limits_are_kept_by_running_fewer_at_once() {
    let run = copy_of("run/train");
    let odd_body = |limit: &str| {
        let (out, odd) = (
            tempfile::tempdir().unwrap(),
            Odd::new(
                PYTORCH,
                // How many of us there are: marks that have not been removed.
                "here=$(dirname \"$0\"); : > \"$here/mark$$\"; ls \"$here\" | grep -c mark >> \"$here/counts\"; \"$real\" \"$@\"; code=$?; rm \"$here/mark$$\"; exit $code",
            ),
        );
        let output = with_python(run.path(), out.path(), &odd.python())
            .args(["--mode", "pytorch", "--jobs", "4", "--memory-limit", limit])
            .env("TRACELENS_STAND_IN_SLEEP", "0.3")
            .output()
            .unwrap();
        let peaks: Vec<u64> = output.json()["results"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["tracelens_tool"] == PYTORCH)
            .map(|row| row["peak_bytes"].as_u64().unwrap())
            .collect();
        assert!(
            peaks.len() == 4 && peaks.iter().all(|&peak| peak > 1 << 20),
            "{peaks:?}"
        );
        let counts = fs::read_to_string(odd.folder.path().join("counts")).unwrap();
        counts
            .lines()
            .map(|line| line.trim().parse::<u32>().unwrap())
            .max()
            .unwrap()
    };
    // Each is taken to need a little more than 105 MiB.
    assert_eq!(odd_body("150M"), 1);
    assert_eq!(odd_body("50M"), 1);
    assert!(odd_body("250M") <= 2);
}

#[test]
fn limits_that_make_no_sense_are_explained() {
    let run = one_trace();
    for (option, value, why) in [
        ("--memory-limit", "64", "a size has a unit"),
        ("--scratch-limit", "much", "a size is wanted"),
        ("--job-timeout", "soon", "a time is wanted"),
        ("--jobs", "0", "0 is not in 1..="),
    ] {
        let output = with_tracelens(run.path(), &run.path().join("out"))
            .args([option, value])
            .output()
            .unwrap();
        assert_eq!(output.code(), 2);
        assert!(output.errors().contains(why), "{}", output.errors());
    }
}

#[test]
fn a_log_holds_all_that_a_program_said_as_bytes() {
    let (run, out) = (one_trace(), tempfile::tempdir().unwrap());
    let odd = Odd::new(PYTORCH, "printf 'one\\377\\n'; echo two >&2; exec \"$real\" \"$@\"");
    let output = with_python(run.path(), out.path(), &odd.python()).output().unwrap();
    assert_eq!(output.code(), 0);
    let summary = output.json();
    let log = out.path().join(only_row(&summary)["log"].as_str().unwrap());
    let mut lines = std::io::BufRead::split(BufReader::new(fs::File::open(log).unwrap()), b'\n').map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with(b"$ "));
    let rest: Vec<Vec<u8>> = lines.take(2).collect();
    assert_eq!(rest, [b"one\xff".to_vec(), b"two".to_vec()]);
}

fn record(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("tracemend_record.json")).unwrap()).unwrap()
}

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
    let log = out.path().join("calls.jsonl");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_tracemend"))
        .args(["analyze", "--jobs", "1"])
        .arg(run.path())
        .arg("-o")
        .arg(out.path())
        .arg("--python")
        .arg(python())
        .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
        .env("TMPDIR", out.path())
        .env("TRACELENS_STAND_IN_SLEEP", "1")
        .env("TRACELENS_STAND_IN_LOG", &log)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let path = out.path().join("tracemend_record.json");
    let successes = || {
        let record: Value = serde_json::from_slice(&fs::read(&path).ok()?).unwrap();
        let jobs = record["jobs"].as_array()?;
        Some(jobs.iter().filter(|job| job["status"] == "SUCCESS").count())
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while successes().is_none_or(|number| number < 2) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let done = successes().unwrap();
    assert!(record(out.path())["finished"] == false && done >= 2);
    let rows = fs::read_to_string(out.path().join("tracelens_summary.csv")).unwrap();
    assert!(rows.lines().filter(|line| line.contains("SUCCESS")).count() >= done);

    // Another log: the program that outlived tracemend may still write to the first.
    let log = out.path().join("calls-resumed.jsonl");
    let output = with_tracelens(run.path(), out.path())
        .arg("--resume")
        .env("TRACELENS_STAND_IN_LOG", &log)
        .output()
        .unwrap();
    assert_eq!(output.json()["succeeded"], 5);
    assert_eq!(calls(&log).len(), 5 - done);
    assert_eq!(record(out.path())["finished"], true);
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

#[test]
fn shards_do_all_once_keep_groups_together_and_are_merged() {
    let run = copy_of("run");
    let out = tempfile::tempdir().unwrap();
    let whole = with_tracelens(run.path(), &out.path().join("whole"))
        .output()
        .unwrap()
        .json();
    let labels = |summary: &Value| {
        let rows = summary["results"].as_array().unwrap().iter();
        let mut labels: Vec<String> = rows
            .map(|row| {
                format!(
                    "{} {} {} {}",
                    row["trace_file"], row["tracelens_tool"], row["group"], row["status"]
                )
            })
            .collect();
        labels.sort();
        labels
    };
    let shard = |index: u32, of: u32, extra: &[&str]| {
        let folder = out.path().join(format!("shard-{index}"));
        let output = with_tracelens(run.path(), &folder)
            .args(["--shard", &format!("{index}/{of}")])
            .args(extra)
            .output()
            .unwrap();
        (folder, output)
    };
    let merge = |folders: &[PathBuf]| {
        let mut command = tracemend();
        command
            .args(["merge", "--json"])
            .args(folders)
            .arg("-o")
            .arg(out.path().join("merged"));
        command.output().unwrap()
    };
    let mut folders = Vec::new();
    for index in 0..3 {
        let (folder, output) = shard(index, 3, &[]);
        assert_eq!(output.code(), 0, "{}", output.errors());
        let summary = output.json();
        let groups = |group: &str| {
            summary["results"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|row| row["group"] == group)
                .count()
        };
        assert!(
            [0, 5].contains(&groups("train")) && [0, 3].contains(&groups("serve")),
            "{summary:#}"
        );
        assert!(!summary["results"].as_array().unwrap().is_empty());
        folders.push(folder);
    }
    let output = merge(&folders);
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(labels(&output.json()), labels(&whole));
    let merged = record(&out.path().join("merged"));
    assert_eq!((&merged["finished"], &merged["shard"]), (&json!(true), &json!(null)));
    for job in merged["jobs"].as_array().unwrap() {
        for made in job["outputs"].as_array().unwrap() {
            let folder = Path::new(job["output_dir"].as_str().unwrap());
            assert!(folder.join(made.as_str().unwrap()).exists(), "{job}");
        }
    }
    for trace in merged["traces"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|trace| trace["mended"] == true)
    {
        assert!(Path::new(trace["edits"].as_str().unwrap()).exists(), "{trace}");
    }
    let csv = fs::read_to_string(out.path().join("merged/tracelens_summary.csv")).unwrap();
    assert_eq!(csv.lines().count(), labels(&whole).len() + 1);

    // A shard that is missing is named; what is there is merged.
    let output = merge(&folders[..2]);
    assert_eq!(output.code(), 1);
    assert!(output.one_error().contains("shard 2 is missing"), "{}", output.errors());
    assert_eq!(record(&out.path().join("merged"))["missing_shards"], json!([2]));

    // What does not belong together is refused.
    let refused = |folders: &[PathBuf], why: &str| {
        let output = merge(folders);
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains(why), "{}", output.errors());
    };
    refused(&[folders[0].clone(), folders[0].clone()], "both hold shard 0/3");
    refused(&[out.path().join("whole")], "holds a whole run");
    refused(&[run.path().to_owned()], "holds no reports of tracemend");
    let (_, output) = shard(1, 2, &[]);
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("holds shard 1/3"), "{}", output.errors());
    let other = out.path().join("other");
    let other_shard = |extra: &[&str]| {
        let _ = fs::remove_dir_all(&other);
        let mut command = with_tracelens(run.path(), &other);
        assert_eq!(command.args(extra).output().unwrap().code(), 0);
    };
    other_shard(&["--shard", "1/2"]);
    refused(&[folders[0].clone(), other.clone()], "of 3 shards and of 2");
    other_shard(&["--shard", "1/3", "--mode", "pytorch"]);
    refused(&[folders[0].clone(), other.clone()], "--mode auto and --mode pytorch");
    other_shard(&["--shard", "1/3", "--keep-pythonpath"]);
    refused(&[folders[0].clone(), other.clone()], "with other options");
    fs::write(
        run.path().join("new.json"),
        fs::read(fixture("run/train/libkineto_trace_48209.json")).unwrap(),
    )
    .unwrap();
    other_shard(&["--shard", "1/3"]);
    refused(&[folders[0].clone(), other.clone()], "of other traces");
}

#[test]
fn a_shard_without_work_is_no_failure() {
    let (run, out) = (one_trace(), tempfile::tempdir().unwrap());
    let made: Vec<u64> = ["0/3", "1/3", "2/3"]
        .iter()
        .map(|shard| {
            let folder = out.path().join(shard.replace('/', "-of-"));
            let output = with_tracelens(run.path(), &folder)
                .args(["--shard", shard])
                .output()
                .unwrap();
            assert_eq!(output.code(), 0, "{}", output.errors());
            output.json()["succeeded"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(made.iter().sum::<u64>(), 1);
    let output = with_tracelens(run.path(), &out.path().join("x"))
        .args(["--shard", "3/3"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.errors().contains("0/3 to 2/3"), "{}", output.errors());
}
