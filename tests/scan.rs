use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::util::{Answer, copy_of, fixture, tracemend, write_trace};

#[test]
fn damage_is_told_with_its_place_and_bytes() {
    let path = fixture("damage/A1-rocprofv3-kname-garbage.json");
    let output = tracemend().args(["scan", "--json"]).arg(&path).output().unwrap();
    assert_eq!(output.code(), 1);
    let place = "rocprofiler-sdk-tool[0].buffer_records.hip_api[0].args.kname";
    let flaw = |offset: u64, bytes: &str| {
        json!({"kind": "ill-formed-utf8", "offset": offset, "length": 1, "bytes": bytes, "line": 1, "column": offset + 1,
               "path": place, "guess": false})
    };
    let mut flaws = [flaw(454, "90"), flaw(457, "a8")];
    // Columns count characters, and one before the second flaw has two bytes.
    flaws[1]["column"] = json!(457);
    assert_eq!(
        output.json(),
        json!({
            "path": path, "container": "plain", "encoding": "utf-8", "kind": "rocprof", "size": 467, "verdict": "damaged",
            "reason": null, "refused_by": ["TraceLens"], "warnings": [],
            "flaws": {"count": 2, "by_kind": {"ill-formed-utf8": 2}, "listed": flaws},
        })
    );
}

#[test]
fn standard_input_is_scanned_too() {
    let trace = fs::read(fixture("damage/A13-latin1-path.json")).unwrap();
    let output = tracemend()
        .args(["scan", "--json", "-"])
        .write_stdin(trace)
        .output()
        .unwrap();
    assert_eq!((output.code(), output.json()["flaws"]["count"].clone()), (1, json!(1)));
}

/// The promise of 32 MiB, at whatever size and damage: a count of flaws, not a list.
#[test]
fn millions_of_flaws_take_no_more_memory_than_one() {
    let mut scan = Command::new(env!("CARGO_BIN_EXE_tracemend"))
        .args(["scan", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut trace = scan.stdin.take().unwrap();
    trace.write_all(b"[0").unwrap();
    let flaws = b",\"\xFF\x01\",NaN\n".repeat(10_000);
    for _ in 0..100 {
        trace.write_all(&flaws).unwrap();
    }
    // All but what the pipe holds has been scanned.
    let status = fs::read_to_string(format!("/proc/{}/status", scan.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    trace.write_all(b"]").unwrap();
    drop(trace);
    let scanned = scan.wait_with_output().unwrap().json();
    assert_eq!(
        scanned["flaws"]["by_kind"],
        json!({"ill-formed-utf8": 1_000_000, "control-character": 1_000_000, "non-finite-number": 1_000_000})
    );
    assert_eq!(scanned["flaws"]["listed"].as_array().unwrap().len(), 10);
    assert!(peak <= 32 << 10, "{peak} kB");
}

#[test]
fn the_bundled_run_has_two_damaged_traces() {
    let output = tracemend().arg("scan").arg(fixture("run")).output().unwrap();
    assert_eq!(output.code(), 1);
    let text = output.text();
    assert!(text.contains("8 traces: 6 clean, 2 damaged, 0 refused"), "{text}");
    assert!(
        text.contains("12 ill-formed-utf8; stops TraceLens (rocprof, plain)"),
        "{text}"
    );
}

#[test]
fn compressed_traces_are_read_decompressed() {
    let path = fixture("damage/A1-rocprofv3-fname-garbage.json.gz");
    let scanned = tracemend().args(["scan", "--json"]).arg(path).output().unwrap().json();
    assert_eq!(scanned["container"], "gzip");
    assert_eq!(scanned["flaws"]["by_kind"], json!({"ill-formed-utf8": 2}));
}

#[test]
fn clean_is_0_damaged_is_1_missing_is_2() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.json");
    write_trace(&trace, None);
    assert_eq!(tracemend().arg("scan").arg(&trace).output().unwrap().code(), 0);

    let output = tracemend()
        .arg("scan")
        .arg(folder.path().join("nothing"))
        .arg(&trace)
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("no run at"), "{}", output.errors());
    // The others are scanned all the same.
    assert!(output.text().contains("trace.json: clean"));
}

#[test]
fn empty_folders_and_empty_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = tracemend().arg("scan").arg(folder.path()).output().unwrap();
    assert_eq!(output.code(), 0);
    assert!(output.one_error().contains("no traces found under"));

    fs::write(folder.path().join("rank0.json"), "").unwrap();
    let output = tracemend().arg("scan").arg(folder.path()).output().unwrap();
    assert_eq!(output.code(), 1);
    assert!(
        output.text().contains("rank0.json: refused: empty"),
        "{}",
        output.text()
    );
}

#[test]
fn names_that_are_no_utf8_or_would_steer_the_terminal_are_shown_safely() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(folder.path().join(OsStr::from_bytes(b"a\xffb.json")), None);
    write_trace(folder.path().join("c\u{1b}[31m\n.json"), None);
    let output = tracemend().arg("scan").arg(folder.path()).output().unwrap();
    assert_eq!(output.code(), 0);
    assert_eq!(output.text().lines().count(), 3, "{}", output.text());
    assert!(output.text().contains("a\u{fffd}b.json: clean"), "{}", output.text());
    assert!(
        output.text().contains("c\\u{1b}[31m\\n.json: clean"),
        "{}",
        output.text()
    );
    assert_eq!(
        tracemend()
            .args(["scan", "--json"])
            .arg(folder.path())
            .output()
            .unwrap()
            .json_lines()
            .len(),
        2
    );
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_the_reason() {
    let output = tracemend().args(["scan", "/proc/self/mem"]).output().unwrap();
    assert_eq!(output.code(), 1);
    assert!(output.text().contains("refused: cannot be read:"), "{}", output.text());
}

#[test]
fn links_out_of_the_run_are_named_and_loops_end() {
    let (run, outside) = (copy_of("kineto-cpu"), tempfile::tempdir().unwrap());
    write_trace(outside.path().join("rank9.json"), None);
    std::os::unix::fs::symlink(outside.path().join("rank9.json"), run.path().join("away.json")).unwrap();
    std::os::unix::fs::symlink(".", run.path().join("loop")).unwrap();
    std::os::unix::fs::symlink("api/ddp_rank0.json", run.path().join("again.json")).unwrap();
    let output = tracemend().args(["scan", "--json"]).arg(run.path()).output().unwrap();
    assert_eq!(output.code(), 1);
    assert!(
        output
            .one_error()
            .contains("away.json: a link that leads out of the run"),
        "{}",
        output.errors()
    );
    assert_eq!(output.json_lines().len(), 6, "each file once");
}

#[test]
fn configuration_and_programs_are_no_traces() {
    let run = tempfile::tempdir().unwrap();
    fs::write(run.path().join("config.json"), r#"{"model": "llama", "rank": 3}"#).unwrap();
    fs::write(run.path().join("train.py"), "import torch\n").unwrap();
    fs::create_dir(run.path().join("site-packages")).unwrap();
    write_trace(run.path().join("site-packages/trace.json"), None);
    let output = tracemend().args(["scan", "--json"]).arg(run.path()).output().unwrap();
    assert_eq!((output.code(), output.text().as_str()), (0, ""));
}

#[test]
fn traces_are_known_by_content_whatever_their_name() {
    let run = tempfile::tempdir().unwrap();
    write_trace(run.path().join("worker.out"), None);
    fs::write(run.path().join("x.bin"), [0x0a, 2, 0x08, 1, 0x0a, 2, 0x08, 2]).unwrap();
    let output = tracemend().args(["scan", "--json"]).arg(run.path()).output().unwrap();
    let kinds: Vec<_> = output.json_lines().iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["kineto", "pftrace"]);
}
