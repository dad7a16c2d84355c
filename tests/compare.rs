//! `tracemend compare`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::util::{Answer, copy_of, python, tracemend};

/// Reports of the four ranks of a job, as workbooks and as folders of CSVs.
fn reports() -> (tempfile::TempDir, Vec<PathBuf>) {
    let (run, out) = (copy_of("run/train"), tempfile::tempdir().unwrap());
    let output = tracemend()
        .args(["analyze", "-q", "--mode", "pytorch"])
        .arg(run.path())
        .arg("-o")
        .arg(out.path())
        .arg("--python")
        .arg(python())
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let path = |name: &str| out.path().join(name);
    let made = vec![
        path("libkineto_trace_48209.xlsx"),
        path("libkineto_trace_48211_csv"),
        path("libkineto_trace_48213.xlsx"),
    ];
    (out, made)
}

fn compare(reports: &[PathBuf], folder: &Path) -> assert_cmd::Command {
    let mut command = tracemend();
    command
        .arg("compare")
        .args(reports)
        .arg("--python")
        .arg(python())
        .current_dir(folder)
        .env("TRACELENS_STAND_IN_LOG", folder.join("calls"));
    command
}

fn last_call(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("calls")).unwrap();
    let call: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(call["script"], "TraceLens_compare_perf_reports_pytorch");
    serde_json::from_value(call["argv"].clone()).unwrap()
}

fn is_workbook(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"PK"))
}

#[test]
fn reports_are_compared_under_names_that_tell_them_apart() {
    let ((_out, reports), here) = (reports(), tempfile::tempdir().unwrap());
    let output = compare(&reports, here.path()).output().unwrap();
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    let written = here.path().canonicalize().unwrap().join("tracelens_comparison.xlsx");
    assert!(
        output
            .text()
            .contains(&format!("Comparison written to: {}", written.display())),
        "{}",
        output.text()
    );
    assert!(is_workbook(&written));
    let words = last_call(here.path());
    let names = words.iter().position(|word| word == "--names").unwrap();
    assert_eq!(
        words[names + 1..],
        [
            "libkineto_trace_48209",
            "libkineto_trace_48211",
            "libkineto_trace_48213"
        ]
    );
    assert_eq!(words[3], "-o");
    assert!(words[..3].iter().all(|report| Path::new(report).is_absolute()));
    assert_eq!(
        fs::read_dir(here.path()).unwrap().count(),
        2,
        "the workbook and the log"
    );
}

#[test]
fn two_reports_of_one_file_name_are_no_trouble() {
    let ((_out, reports), here) = (reports(), tempfile::tempdir().unwrap());
    let mut alike = Vec::new();
    for (folder, report) in ["before", "after"].iter().zip([&reports[0], &reports[2]]) {
        fs::create_dir(here.path().join(folder)).unwrap();
        fs::copy(report, here.path().join(folder).join("r.xlsx")).unwrap();
        // As a user would write it: relative to where they are.
        alike.push(Path::new(folder).join("r.xlsx"));
    }
    let output = compare(&alike, here.path())
        .args(["-o", "new/place/c.xlsx", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let document = output.json();
    assert_eq!(
        (&document["status"], &document["names"]),
        (&json!("SUCCESS"), &json!(["before/r", "after/r"]))
    );
    assert!(is_workbook(&here.path().join("new/place/c.xlsx")));

    let output = compare(&alike, here.path())
        .args(["--names", "MI300X", "MI325X"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0);
    assert!(last_call(here.path()).ends_with(&["--names".into(), "MI300X".into(), "MI325X".into()]));
}

#[test]
fn what_cannot_be_compared_is_one_line() {
    let ((_out, reports), here) = (reports(), tempfile::tempdir().unwrap());
    fs::write(here.path().join("text.xlsx"), "no workbook").unwrap();
    fs::create_dir(here.path().join("empty")).unwrap();
    let with = |report: &str| vec![reports[0].clone(), PathBuf::from(report)];
    for (reports, words, why) in [
        (reports[..1].to_vec(), &[][..], "at least two reports"),
        (with("nowhere.xlsx"), &[], "no report at nowhere.xlsx"),
        (with("text.xlsx"), &[], "text.xlsx is no workbook"),
        (with("empty"), &[], "empty holds no CSVs"),
        (reports[..2].to_vec(), &["--names", "a"], "1 names for 2 reports"),
        (reports[..2].to_vec(), &["--names", "a", "a"], "two reports are named a"),
        (reports[..2].to_vec(), &["-o", "/proc/x/y.xlsx"], "cannot make /proc/x"),
    ] {
        let output = compare(&reports, here.path()).args(words).output().unwrap();
        assert_eq!(output.code(), 2, "{why}");
        assert!(output.one_error().contains(why), "{}", output.errors());
    }
    let output = tracemend()
        .arg("compare")
        .args(&reports)
        .current_dir(here.path())
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("give --python VENV/bin/python"));
}

#[test]
fn a_comparison_that_fails_leaves_what_was_there() {
    let ((out, reports), here) = (reports(), tempfile::tempdir().unwrap());
    // CSVs of another report: TraceLens finds no gpu_timeline in them.
    fs::create_dir(out.path().join("other_csv")).unwrap();
    fs::write(out.path().join("other_csv/kernels.csv"), "name\n").unwrap();
    fs::write(here.path().join("c.xlsx"), "earlier").unwrap();
    let pair = [reports[0].clone(), out.path().join("other_csv")];
    let output = compare(&pair, here.path()).args(["-o", "c.xlsx"]).output().unwrap();
    assert_eq!(output.code(), 1);
    assert!(
        output.text().starts_with("Comparison failed: ValueError: "),
        "{}",
        output.text()
    );
    assert_eq!(fs::read_to_string(here.path().join("c.xlsx")).unwrap(), "earlier");
    let output = compare(&pair, here.path())
        .args(["-o", "c.xlsx", "--json"])
        .output()
        .unwrap();
    let document = output.json();
    assert!(
        document["detail"].as_str().unwrap().contains("Traceback"),
        "all that it said"
    );
    assert_eq!(document["status"], "FAILURE");
}
