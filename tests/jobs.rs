//! How the jobs of `analyze` are run: limits, outcomes, what is on disk at which moment.

use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::util::{Answer, copy_of, fixture, one_trace, python, tracemend, with_python, with_tracelens};

const PYTORCH: &str = "TraceLens_generate_perf_report_pytorch";

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
            "cat \"$TMPDIR\"/mended* | wc -c >> \"$(dirname \"$0\")/taken\"; exec \"$real\" \"$@\"",
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
            .filter(|row| row["tracelens_tool"] == PYTORCH && row["status"] == "SUCCESS")
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
