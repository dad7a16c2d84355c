use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::util::{
    Answer, bare_environment, copy_of, fixture, real_traces, start_slow_analysis, tracemend, wait_until,
    with_tracelens, write_trace,
};

fn analyze(run: &Path, out: &Path, extra: &[&str]) -> Output {
    tracemend()
        .args(["analyze", "--json"])
        .arg(run)
        .arg("-o")
        .arg(out)
        .args(extra)
        .output()
        .unwrap()
}

/// Label and status of each row.
fn rows(summary: &Value) -> Vec<(&str, &str)> {
    let rows = summary["results"].as_array().unwrap();
    rows.iter()
        .map(|row| (row["trace_file"].as_str().unwrap(), row["status"].as_str().unwrap()))
        .collect()
}

fn row<'a>(summary: &'a Value, label: &str) -> &'a Value {
    let rows = summary["results"].as_array().unwrap();
    rows.iter()
        .find(|row| row["trace_file"] == label)
        .unwrap_or_else(|| panic!("no row {label} in {summary:#}"))
}

fn csv(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// Rank by position, and rank by content, as the stand-in for TraceLens noted them.
fn ranks_read(sheet: &Path) -> Vec<(String, String)> {
    let rows = csv(sheet);
    assert!(!rows.is_empty());
    rows.into_iter()
        .map(|mut row| (row.remove("rank").unwrap(), row.remove("content_rank").unwrap()))
        .collect()
}

#[test]
fn the_bundled_run_is_reported_without_tracelens() {
    let out = tempfile::tempdir().unwrap();
    let output = analyze(&fixture("run"), out.path(), &["--reporter", "builtin"]);
    assert_eq!(output.code(), 0, "{}", output.errors());
    let summary = output.json();
    assert_eq!(
        (&summary["succeeded"], &summary["failed"], &summary["skipped"]),
        (&json!(7), &json!(0), &json!(1))
    );
    let damaged = row(&summary, "train/libkineto_trace_48211.json");
    assert_eq!(
        (&damaged["mended"], &damaged["rank"], &damaged["group"]),
        (&json!(true), &json!(3), &json!("train"))
    );
    assert!(
        row(&summary, "train/libkineto_trace_48170.json")["detail"]
            .as_str()
            .unwrap()
            .contains("no GPU activity")
    );

    // The same figures, made another way.
    let text =
        String::from_utf8_lossy(&fs::read(fixture("run/train/libkineto_trace_48211.json")).unwrap()).into_owned();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let mut expected: BTreeMap<String, (u64, f64)> = BTreeMap::new();
    for event in trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["cat"] == "kernel")
    {
        let sums = expected.entry(event["name"].as_str().unwrap().to_owned()).or_default();
        *sums = (sums.0 + 1, sums.1 + event["dur"].as_f64().unwrap());
    }
    let kernels = csv(&out.path().join("train_libkineto_trace_48211_kernels.csv"));
    assert_eq!(kernels.len(), expected.len());
    for kernel in &kernels {
        let (count, total) = expected[&kernel["name"]];
        assert_eq!(kernel["count"], count.to_string());
        assert!(
            (kernel["total_us"].parse::<f64>().unwrap() - total).abs() < 0.01,
            "{kernel:?}"
        );
    }
    let shares: f64 = kernels
        .iter()
        .map(|kernel| kernel["share"].parse::<f64>().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-3);
    let all: u64 = csv(&out.path().join("kernels.csv"))
        .iter()
        .map(|kernel| kernel["count"].parse::<u64>().unwrap())
        .sum();
    let each: u64 = fs::read_dir(out.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with("_kernels.csv"))
        .flat_map(|path| csv(&path))
        .map(|kernel| kernel["count"].parse::<u64>().unwrap())
        .sum();
    assert_eq!(all, each);
}

#[test]
fn text_shows_damage_ranks_and_results() {
    let out = tempfile::tempdir().unwrap();
    let output = tracemend()
        .arg("analyze")
        .arg(fixture("run"))
        .arg("-o")
        .arg(out.path())
        .output()
        .unwrap();
    assert_eq!(output.code(), 0);
    let text = output.text();
    for part in [
        "8 traces: 6 clean, 2 damaged",
        "rocprof/node01/4711_results.json: damaged, can be mended: 12 ill-formed-utf8",
        "train: ranks 0-3 by kineto-content",
        "launcher, of no rank",
        "Kernels of the whole run",
        "7 reports made (2 from mended copies), 1 skipped",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn tracelens_gets_mended_copies_and_the_collective_report_the_right_ranks() {
    let out = tempfile::tempdir().unwrap();
    let run = copy_of("run");
    let original = run.path().join("train/libkineto_trace_48211.json");
    let before = (
        fs::read(&original).unwrap(),
        fs::metadata(&original).unwrap().modified().unwrap(),
    );
    let output = with_tracelens(run.path(), out.path()).output().unwrap();
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    let summary = output.json();
    assert_eq!(
        (&summary["succeeded"], &summary["failed"], &summary["skipped"]),
        (&json!(9), &json!(0), &json!(1)),
        "{summary:#}"
    );
    assert_eq!(row(&summary, "4 per-rank traces")["mended"], true);
    assert_eq!(row(&summary, "rocprof/node01/4711_results.json")["mended"], true);
    assert_eq!(
        summary["tracelens"]["distribution"],
        "tracemend-tracelens-stand-in 0.1.0"
    );
    for path in [
        "rocprof_node01_4711_results.xlsx",
        "rocprof_node01_4711_results_csv/kernel_summary.csv",
        "logs",
    ] {
        assert!(out.path().join(path).exists(), "{path}");
    }
    let read = ranks_read(
        &out.path()
            .join("multi_rank_collective_train_csv/nccl_summary_implicit_sync.csv"),
    );
    assert!(read.iter().all(|(position, content)| position == content), "{read:?}");
    assert_eq!(
        (
            fs::read(&original).unwrap(),
            fs::metadata(&original).unwrap().modified().unwrap()
        ),
        before
    );
    let table = csv(&out.path().join("tracelens_summary.csv"));
    assert_eq!(table.len(), summary["results"].as_array().unwrap().len());
    let head = fs::read_to_string(out.path().join("tracelens_summary.csv")).unwrap();
    assert!(head.starts_with("trace_file,kind,tracelens_tool,status,output,detail,group,rank,mended,seconds\r\n"));
}

#[test]
fn traces_named_after_process_ids_get_a_collective_report() {
    let Some(traces) = real_traces() else { return };
    let out = tempfile::tempdir().unwrap();
    let output = with_tracelens(&traces.join("pidnamed"), out.path()).output().unwrap();
    let summary = output.json();
    // Cut down to their collectives, the single traces have nothing for TraceLens's own report: KeyError: 'name'.
    assert_eq!(output.code(), 1);
    assert_eq!(row(&summary, "8 per-rank traces")["status"], "SUCCESS", "{summary:#}");
    let read = ranks_read(
        &out.path()
            .join("multi_rank_collective_csv/nccl_summary_implicit_sync.csv"),
    );
    assert_eq!(
        read,
        (0..8)
            .map(|rank| (rank.to_string(), rank.to_string()))
            .collect::<Vec<_>>()
    );
}

#[test]
fn an_incomplete_rank_set_is_skipped_with_the_ranks_named() {
    let (run, out) = (copy_of("run/train"), tempfile::tempdir().unwrap());
    fs::remove_file(run.path().join("libkineto_trace_48216.json")).unwrap();
    let summary = with_tracelens(run.path(), out.path()).output().unwrap().json();
    let detail = row(&summary, "3 PyTorch traces");
    assert_eq!(detail["status"], "SKIPPED");
    assert!(
        detail["detail"].as_str().unwrap().contains("rank 2 missing of 4"),
        "{detail}"
    );

    fs::copy(
        run.path().join("libkineto_trace_48209.json"),
        run.path().join("libkineto_trace_48216.json"),
    )
    .unwrap();
    let summary = with_tracelens(run.path(), out.path()).output().unwrap().json();
    let detail = row(&summary, "4 PyTorch traces")["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains("rank 1 is claimed by libkineto_trace_48209.json and libkineto_trace_48216.json"),
        "{detail}"
    );
}

#[test]
fn a_rank_that_cannot_be_mended_is_named_and_costs_only_what_needs_it() {
    let (run, out) = (copy_of("run/train"), tempfile::tempdir().unwrap());
    let path = run.path().join("libkineto_trace_48216.json");
    fs::write(&path, b"\x28\xb5\x2f\xfd not really zstd").unwrap();
    let output = with_tracelens(run.path(), out.path()).output().unwrap();
    assert_eq!(output.code(), 1);
    let summary = output.json();
    let failed = row(&summary, "libkineto_trace_48216.json");
    assert_eq!(failed["status"], "FAILURE");
    assert!(failed["detail"].as_str().unwrap().starts_with("refused: "), "{failed}");
    assert_eq!(summary["succeeded"], 3);
    assert!(
        row(&summary, "3 PyTorch traces")["detail"]
            .as_str()
            .unwrap()
            .contains("rank 2 missing of 4")
    );
}

#[test]
fn names_that_tracelens_would_misread_are_given_right_ones() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // TraceLens chooses its reader by the end of the name alone.
    fs::copy(
        fixture("run/serve/vllm-rank-0.1724300000123456789.pt.trace.json.gz"),
        run.path().join("rank0.json"),
    )
    .unwrap();
    fs::copy(
        fixture("run/train/libkineto_trace_48213.json"),
        run.path().join("other [1].pt.trace"),
    )
    .unwrap();
    let output = with_tracelens(run.path(), out.path()).output().unwrap();
    assert_eq!(output.json()["succeeded"], 2, "{}", output.text());
}

#[test]
fn nothing_of_the_callers_python_reaches_tracelens() {
    let (run, out) = (copy_of("run/serve"), tempfile::tempdir().unwrap());
    let poison = tempfile::tempdir().unwrap();
    for package in ["orjson", "TraceLens"] {
        fs::create_dir(poison.path().join(package)).unwrap();
        fs::write(
            poison.path().join(package).join("__init__.py"),
            "raise SystemExit('poisoned')",
        )
        .unwrap();
    }
    fs::write(
        poison.path().join("TraceLens_generate_perf_report_pytorch"),
        "#!/bin/sh\nexit 99\n",
    )
    .unwrap();
    let log = out.path().join("calls.jsonl");
    let output = with_tracelens(run.path(), &out.path().join("reports"))
        .current_dir(poison.path())
        .env("PYTHONPATH", poison.path())
        .env("PYTHONHOME", poison.path())
        .env("PATH", poison.path())
        .env("TRACELENS_STAND_IN_LOG", &log)
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    let calls: Vec<Value> = fs::read_to_string(log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let reports = calls.iter().filter(|call| call["argv"] != json!(["--help"]));
    assert_eq!(reports.count(), 3);
    for call in &calls {
        assert_eq!(
            (&call["env"]["PYTHONPATH"], &call["env"]["PYTHONHOME"]),
            (&Value::Null, &Value::Null),
            "{call}"
        );
        assert_eq!(
            (&call["env"]["PYTHONNOUSERSITE"], &call["env"]["PYTHONUTF8"]),
            (&json!("1"), &json!("1"))
        );
        let own_folder = call["cwd"].as_str().unwrap();
        assert_ne!(Path::new(own_folder), poison.path());
        assert!(!Path::new(own_folder).exists(), "scratch is gone");
    }
}

#[test]
fn an_interpreter_that_will_not_do_is_one_line() {
    let out = tempfile::tempdir().unwrap();
    let bare = bare_environment(out.path());
    for (python, why) in [
        (PathBuf::from("/nowhere/python"), "no interpreter at /nowhere/python"),
        (
            PathBuf::from("/bin/true"),
            "/bin/true does not answer as a Python interpreter does",
        ),
        (fixture("names/names.tsv"), "no interpreter at"),
        (bare.join("bin/python"), "TraceLens is not installed in"),
    ] {
        let output = tracemend()
            .arg("analyze")
            .arg(fixture("run/serve"))
            .arg("-o")
            .arg(out.path().join("reports"))
            .arg("--python")
            .arg(python)
            .output()
            .unwrap();
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains(why), "{}", output.errors());
        assert!(!out.path().join("reports").exists());
    }
    let output = analyze(
        &fixture("run/serve"),
        &out.path().join("reports"),
        &["--reporter", "tracelens"],
    );
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("needs --python"));
}

#[test]
fn output_that_is_no_text_and_stale_results_do_no_harm() {
    let (run, out) = (copy_of("run/serve"), tempfile::tempdir().unwrap());
    let stem = "vllm-rank-0.1724300000123456789.pt.trace";
    fs::create_dir(out.path().join(format!("{stem}_csv"))).unwrap();
    fs::write(out.path().join(format!("{stem}_csv/stale.csv")), "old").unwrap();
    let output = with_tracelens(run.path(), out.path())
        .env("TRACELENS_STAND_IN_NOISE", "1")
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    assert!(!out.path().join(format!("{stem}_csv/stale.csv")).exists());
    assert!(
        fs::read(out.path().join(format!("logs/{stem}.log")))
            .unwrap()
            .contains(&0xff)
    );
}

#[test]
fn traces_of_like_names_keep_their_own_reports() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for path in ["a_b/c.pt.trace.json", "a/b_c.pt.trace.json", "模型.json", "数据.json"] {
        write_trace(run.path().join(path), None);
    }
    let output = analyze(run.path(), out.path(), &[]);
    assert_eq!(output.json()["succeeded"], 4);
    let reports = fs::read_dir(out.path()).unwrap().filter(|e| {
        e.as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .ends_with("_kernels.csv")
    });
    assert_eq!(reports.count(), 4);
}

#[test]
fn wrong_places_are_one_line() {
    let run = copy_of("run/serve");
    let output = analyze(Path::new("/nowhere/at/all"), &run.path().join("out"), &[]);
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("no run at /nowhere/at/all"));
    let output = analyze(run.path(), run.path(), &[]);
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("the output folder is the run itself"));
    let output = analyze(run.path(), Path::new("/proc/nowhere"), &[]);
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("cannot make /proc/nowhere"));
}

#[test]
fn an_empty_run_is_no_failure() {
    let (run, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = tracemend()
        .arg("analyze")
        .arg(run.path())
        .arg("-o")
        .arg(out.path())
        .output()
        .unwrap();
    assert_eq!(output.code(), 0);
    let text = output.text();
    assert!(text.contains("No supported trace artifacts found under"), "{text}");
    assert!(
        text.contains("torch_profiler_dynolog") && text.contains("rocprofv3_lightweight"),
        "{text}"
    );
    assert_eq!(csv(&out.path().join("tracelens_summary.csv")).len(), 0);
}

#[test]
fn a_second_run_does_not_read_its_own_output() {
    let run = copy_of("run/serve");
    for _ in 0..2 {
        let output = analyze(run.path(), &run.path().join("reports"), &[]);
        assert_eq!(rows(&output.json()).len(), 2);
    }
}

#[test]
fn killed_half_way_the_finished_rows_are_there() {
    let (run, out, scratch) = (
        copy_of("run/train"),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let mut child = start_slow_analysis(run.path(), out.path(), scratch.path());
    let summary = out.path().join("tracelens_summary.csv");
    wait_until("two rows", || {
        fs::read_to_string(&summary).is_ok_and(|text| text.lines().count() >= 3)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(csv(&summary).len() >= 2);
    let document: Value =
        serde_json::from_slice(&fs::read(out.path().join("tracelens_summary.json")).unwrap()).unwrap();
    assert!(!document["results"].as_array().unwrap().is_empty());
}

#[test]
fn an_interrupt_leaves_no_process_and_no_scratch() {
    let (run, out, scratch) = (
        copy_of("run/train"),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let mut child = start_slow_analysis(run.path(), out.path(), scratch.path());
    let log = |name: &str| out.path().join("logs").join(name).exists();
    wait_until("the damaged trace's report has begun", || {
        log("libkineto_trace_48211.log")
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    let partial =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().starts_with(".partial");
    assert!(!fs::read_dir(out.path()).unwrap().any(partial));
    let still_there = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        memchr::memmem::find(&command, scratch.path().as_os_str().as_encoded_bytes()).is_some()
    });
    assert!(!still_there, "TraceLens was ended too");
}
