//! The command line of the toolchain before (facts/seed.md): one line of a script is replaced, and everything that reads the results
//! stays. Each test names the sections that it is about.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::util::{Answer, copy_of, fixture, perfetto_trace, python, tracemend, write_trace, xplane};

/// A folder that a job was run in, which is the current folder of what runs after it.
struct Job {
    folder: tempfile::TempDir,
}

impl Job {
    fn new() -> Self {
        Job {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn of(fixture: &str) -> Self {
        Job {
            folder: copy_of(fixture),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), content).unwrap();
        self
    }

    fn with_trace(self, path: &str) -> Self {
        write_trace(self.path(path), None);
        self
    }

    /// `tracemend analyze WORDS` in the folder, by the venv that TRACELENS_VENV names, as the script around the old one sets it.
    fn analyze(&self, words: &[&str]) -> Output {
        tracemend()
            .arg("analyze")
            .args(words)
            .current_dir(self.folder.path())
            .env("TRACELENS_VENV", format!(" {} ", venv().display()))
            .env("TRACELENS_STAND_IN_LOG", self.path(".calls"))
            .env("PATH", "/usr/bin:/bin")
            .output()
            .unwrap()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(path)).unwrap()).unwrap()
    }

    fn rows(&self, path: &str) -> Vec<Vec<String>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_path(self.path(path))
            .unwrap();
        reader
            .records()
            .map(|row| row.unwrap().iter().map(str::to_owned).collect())
            .collect()
    }

    fn calls(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path(".calls")).unwrap_or_default();
        let calls = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        calls.filter(|call| call["argv"] != json!(["--help"])).collect()
    }
}

fn venv() -> PathBuf {
    python().parent().unwrap().parent().unwrap().to_owned()
}

#[test]
fn the_line_of_the_post_script_does_all_of_it() {
    // 1.1, 1.3, 4.1, 6.1, 6.2, 6.3, 7.1
    let job = Job::of("run");
    let output = job.analyze(&[
        "--root",
        ".",
        "--output-dir",
        "tracelens_output",
        "--mode",
        "auto",
        "--world-size",
        "0",
        "--max-traces",
        "0",
        "--gpu-arch",
        "MI300X",
        "--json-summary",
        "new/tracelens_summary.json",
    ]);
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());

    let rows = job.rows("tracelens_output/tracelens_summary.csv");
    assert_eq!(
        rows[0][..6],
        ["trace_file", "kind", "tracelens_tool", "status", "output", "detail"]
    );
    let expected = [
        [
            "serve/vllm-rank-0.1724300000123456789.pt.trace.json.gz",
            "pytorch",
            PYTORCH,
            "SUCCESS",
            "tracelens_output",
            "",
        ],
        [
            "train/libkineto_trace_48211.json",
            "pytorch",
            PYTORCH,
            "SUCCESS",
            "tracelens_output",
            "",
        ],
        [
            "rocprof/node01/4711_results.json",
            "rocprof_json",
            ROCPROF,
            "SUCCESS",
            "tracelens_output",
            "",
        ],
        [
            "4 per-rank traces",
            "pytorch",
            COLLECTIVE,
            "SUCCESS",
            "tracelens_output",
            "",
        ],
    ];
    for row in expected {
        assert!(rows.iter().any(|found| found[..6] == row), "{row:?} in {rows:#?}");
    }
    let skipped = rows.iter().find(|row| row[3] == "SKIPPED").unwrap();
    assert_eq!((skipped[2].as_str(), skipped[4].as_str()), (PYTORCH, ""));
    assert!(skipped[5].contains("no GPU activity") && skipped[5].contains("launcher"));

    let summary = job.json("new/tracelens_summary.json");
    let root = job.folder.path().canonicalize().unwrap();
    for (key, value) in [
        ("root", json!(root)),
        ("output_dir", json!(root.join("tracelens_output"))),
        ("mode", json!("auto")),
        ("python", json!(venv().join("bin/python3"))),
        (
            "summary_csv",
            json!(root.join("tracelens_output/tracelens_summary.csv")),
        ),
        ("discovered", json!({"pytorch": 7, "rocprof_json": 1})),
        ("succeeded", json!(9)),
        ("failed", json!(0)),
        ("skipped", json!(1)),
    ] {
        assert_eq!(summary[key], value, "{key}");
    }
    assert_eq!(summary["results"].as_array().unwrap().len(), rows.len() - 1);
    for key in ["trace_file", "kind", "tracelens_tool", "status", "output", "detail"] {
        assert!(summary["results"][0][key].is_string(), "{key}");
    }
    let bytes = fs::read(job.path("tracelens_output/tracelens_summary.csv")).unwrap();
    assert_eq!(memchr::memmem::find_iter(&bytes, "\r\n").count(), rows.len(), "CRLF");
    // A second time: it does not read its own output (2.8).
    let output = job.analyze(&["--root", "."]);
    assert_eq!(output.code(), 0);
    assert_eq!(job.rows("tracelens_output/tracelens_summary.csv").len(), rows.len());
}

const PYTORCH: &str = "TraceLens_generate_perf_report_pytorch";
const ROCPROF: &str = "TraceLens_generate_perf_report_rocprof";
const COLLECTIVE: &str = "TraceLens_generate_multi_rank_collective_report_pytorch";

#[test]
fn tracelens_is_called_as_before() {
    // 4.2, 4.4, 4.5, 4.6 and the end of the file: absolute paths, VENV/bin/SCRIPT
    let trace = fs::read(fixture("run/train/libkineto_trace_48213.json")).unwrap();
    let job = Job::of("run/rocprof").with("a b/x.pt.trace.json", trace);
    assert_eq!(job.analyze(&["--mode", "auto", "--", "--topk_ops", "7"]).code(), 0);
    let calls = job.calls();
    assert_eq!(calls.len(), 3);
    for call in &calls {
        let words: Vec<&str> = call["argv"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        for flag in ["--profile_json_path", "--output_xlsx_path", "--output_csvs_dir"] {
            let value = words.iter().position(|word| *word == flag).map(|at| words[at + 1]);
            assert!(value.is_none_or(|value| Path::new(value).is_absolute()), "{words:?}");
        }
        assert_eq!(
            words.contains(&"--topk_ops"),
            call["script"] == PYTORCH,
            "A21: {words:?}"
        );
    }
    for made in [
        "a_b_x.xlsx",
        "a_b_x_csv",
        "node01_4711_results.xlsx",
        "node01_4711_results_csv",
    ] {
        assert!(job.path("tracelens_output").join(made).exists(), "{made}");
    }
    let log = fs::read_to_string(job.path("tracelens_output/logs/a_b_x.log")).unwrap();
    let script = venv().join("bin").join(PYTORCH);
    assert!(log.contains(&*script.to_string_lossy()), "{log}");
}

#[test]
fn exit_codes_are_kept() {
    // 1.3, 1.5, 5.5
    let empty = Job::new();
    let cpu = Job::new().with(
        "cpu.pt.trace.json",
        r#"{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]}"#,
    );
    let broken = Job::new().with("x.pt.trace.json", "PK\u{3}\u{4} no trace");
    let config = Job::new()
        .with("metrics.json", "{\"step\":1}\n{\"step\":2}\n")
        .with("lm_eval_results.json", "{}");
    for (job, words, code) in [
        (&empty, &[][..], 0),
        (&cpu, &[], 0),
        (&config, &[], 0),
        (&broken, &[], 1),
        (&empty, &["--mode", "everything"], 2),
        (&empty, &["--max-traces", "many"], 2),
        (&empty, &["--no-such-option"], 2),
        (&empty, &["--root", "nowhere"], 2),
        (&empty, &["--output-dir", "."], 2),
        (&empty, &["--python", "/nowhere/python3"], 2),
    ] {
        let output = job.analyze(words);
        assert_eq!(output.code(), code, "{words:?}: {}{}", output.text(), output.errors());
    }
    let text = empty.analyze(&[]).text();
    assert!(text.contains("No supported trace artifacts found under"), "{text}");
    assert!(
        text.contains("torch_profiler_dynolog") && text.contains("rocprofv3_lightweight"),
        "{text}"
    );
    assert_eq!(
        empty.rows("tracelens_output/tracelens_summary.csv").len(),
        1,
        "the header only"
    );
}

#[test]
fn a_failed_report_ends_in_its_own_last_words() {
    // 4.9
    let job = Job::new().with(
        "x.pt.trace.json",
        r#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"pid":0,"tid":1,"args":{"correlation":1}},{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"pid":1,"tid":1},{"ph":"X","cat":"cuda_runtime","name":"hipLaunchKernel","ts":1,"dur":1,"pid":1,"tid":1}]}"#,
    );
    let output = job.analyze(&["--json-summary", "s.json"]);
    let row = &job.json("s.json")["results"][0];
    // TraceLens finds no launch of the kernel, which it takes for a trace without any.
    assert_eq!((output.code(), &row["status"]), (0, &json!("SKIPPED")), "{row}");
    assert!(row["detail"].as_str().unwrap().contains("no GPU activity"));

    let job = Job::new()
        .with_trace("x.pt.trace.json")
        .with("tracelens_output/logs", "in the way");
    let output = job.analyze(&["--json-summary", "s.json"]);
    assert_eq!(output.code(), 1);
    let row = &job.json("s.json")["results"][0];
    assert_eq!(row["status"], "FAILURE");
    assert!(row["detail"].as_str().unwrap().contains("logs"), "{row}");
}

#[test]
fn bad_bytes_are_read_from_a_sanitized_copy_which_is_said() {
    // 3.3, 3.4, 3.7, A1, A3
    let job = Job::of("run/train");
    let damaged = fs::read(job.path("libkineto_trace_48211.json")).unwrap();
    let output = job.analyze(&[]);
    assert_eq!(output.code(), 0);
    assert_eq!(output.text().matches("sanitized copy").count(), 1, "{}", output.text());
    assert_eq!(fs::read(job.path("libkineto_trace_48211.json")).unwrap(), damaged);
    let rows = job.rows("tracelens_output/tracelens_summary.csv");
    assert!(
        rows.iter()
            .any(|row| row[0] == "libkineto_trace_48211.json" && row[3] == "SUCCESS")
    );
    let clean = Job::of("run/serve");
    assert!(!clean.analyze(&[]).text().contains("sanitized copy"));
}

#[test]
fn discover_only_lists_and_makes_nothing() {
    // 2.1, 2.3, 2.6, 2.7, 2.9, 2.10
    let job = Job::of("run/rocprof")
        .with_trace("torch_profiler_output/rank0.json")
        .with_trace("b.pt.trace.json")
        .with_trace("deep/er/trace.json")
        .with("x.pftrace", perfetto_trace(""))
        .with("plugins/n.xplane.pb", xplane(true))
        .with("3_results.db", "SQLite format 3\0")
        .with("old.rpd", "SQLite format 3\0")
        .with("model.pb", "\n\u{5}model");
    let output = job.analyze(&["--root", ".", "--discover-only", "--json-summary", "found.json"]);
    assert_eq!((output.code(), output.errors().as_str()), (0, ""));
    let lines: Vec<Vec<String>> = output
        .text()
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    let listed: Vec<(&str, &str)> = lines.iter().map(|line| (line[0].as_str(), line[1].as_str())).collect();
    assert_eq!(
        listed,
        [
            ("jax", "./plugins/n.xplane.pb"),
            ("pftrace", "./x.pftrace"),
            ("pytorch", "./b.pt.trace.json"),
            ("pytorch", "./deep/er/trace.json"),
            ("pytorch", "./torch_profiler_output/rank0.json"),
            ("rocprof_json", "./node01/4711_results.json"),
            ("unsupported", "./3_results.db"),
            ("unsupported", "./old.rpd"),
        ]
    );
    assert!(lines[6][2].contains("--output-format") && lines[6][2].contains("rocprofv3_lightweight"));
    assert!(lines[6][2].contains("rocprofv3_perfetto") && lines[7][2].contains("trace.json beside it"));
    assert!(!job.path("tracelens_output").exists(), "no output folder");
    let found = job.json("found.json");
    assert_eq!(
        found["discovered"],
        json!({"jax": 1, "pftrace": 1, "pytorch": 3, "rocprof_json": 1})
    );
    assert_eq!(
        found["unsupported"][0],
        json!({"path": "./3_results.db", "reason": lines[6][2]})
    );

    let output = job.analyze(&["--discover-only", "--max-traces", "1", "--json"]);
    assert_eq!(
        output.json()["discovered"],
        json!({"jax": 1, "pftrace": 1, "pytorch": 1, "rocprof_json": 1})
    );
    assert_eq!(Job::new().analyze(&["--discover-only"]).text(), "");
}

#[test]
fn unsupported_rows_are_in_every_mode() {
    // 2.10, 6.2
    let job = Job::of("run/rocprof")
        .with("3_results.db", "x")
        .with_trace("b.pt.trace.json");
    for (mode, kinds) in [
        ("auto", &["pytorch", "rocprof_json", "unsupported"][..]),
        ("pytorch", &["pytorch", "unsupported"]),
        ("rocprof", &["rocprof_json", "unsupported"]),
        ("pftrace", &["unsupported"]),
        ("collective", &["unsupported"]),
    ] {
        assert_eq!(job.analyze(&["--mode", mode]).code(), 0, "{mode}");
        let rows = job.rows("tracelens_output/tracelens_summary.csv");
        let found: Vec<&str> = rows[1..].iter().map(|row| row[1].as_str()).collect();
        assert_eq!(found, kinds, "{mode}");
        let last = rows.last().unwrap();
        assert_eq!(
            (last[2].as_str(), last[3].as_str(), last[4].as_str()),
            ("", "SKIPPED", "")
        );
    }
}

#[test]
fn collective_reports_follow_ranks() {
    // 5.2, 5.3, 5.5, A17, A18, A19
    let with_ranks = |ranks: &[u32], world_size: u32| {
        let job = Job::new();
        for rank in ranks {
            let info = format!(r#"{{"rank": {rank}, "world_size": {world_size}}}"#);
            write_trace(job.path(&format!("libkineto_trace_{}.json", 100 + rank)), Some(&info));
        }
        job
    };
    let row = |job: &Job, words: &[&str]| {
        job.analyze(&[words, &["--mode", "collective"]].concat());
        let rows = job.rows("tracelens_output/tracelens_summary.csv");
        rows.last().filter(|_| rows.len() > 1).map(|row| row[..6].to_vec())
    };
    // Real ranks in the content make a set, named after process ids as they are; the traces hold no collective.
    let whole = row(&with_ranks(&[0, 1], 2), &["--max-traces", "1"]).unwrap();
    assert_eq!(
        (whole[0].as_str(), whole[2].as_str()),
        ("2 per-rank traces", COLLECTIVE)
    );
    let holes = row(&with_ranks(&[0, 2, 10], 11), &[]).unwrap();
    assert_eq!(holes[..5], ["3 PyTorch traces", "pytorch", COLLECTIVE, "SKIPPED", ""]);
    assert!(holes[5].contains("ranks 1, 3-9 missing of 11"), "{holes:?}");
    let users_word = row(&with_ranks(&[0, 1], 4), &["--world-size", "2"]).unwrap();
    assert_eq!(users_word[0], "2 per-rank traces");
    let nobody = Job::new()
        .with_trace("libkineto_trace_1.json")
        .with_trace("libkineto_trace_2.json");
    let nobody = row(&nobody, &[]).unwrap();
    assert_eq!(nobody[0], "2 PyTorch traces");
    assert!(
        nobody[5].contains("dynolog names traces after process ids"),
        "{nobody:?}"
    );
    assert_eq!(
        row(&Job::new().with_trace("libkineto_trace_1.json"), &[]),
        None,
        "one trace: no row at all"
    );
}

#[test]
fn max_traces_counts_by_kind_in_natural_order() {
    // 2.9, A17
    let job = Job::of("run/rocprof")
        .with_trace("rank10.pt.trace.json")
        .with_trace("rank2.pt.trace.json")
        .with_trace("rank1.pt.trace.json");
    let output = job.analyze(&["--max-traces", "2", "--json-summary", "s.json", "--mode", "auto"]);
    assert_eq!(output.code(), 0, "{}", output.errors());
    let summary = job.json("s.json");
    assert_eq!(summary["discovered"], json!({"pytorch": 2, "rocprof_json": 1}));
    let files: Vec<&str> = summary["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["trace_file"].as_str().unwrap())
        .collect();
    assert_eq!(
        files,
        [
            "rank1.pt.trace.json",
            "rank2.pt.trace.json",
            "node01/4711_results.json",
            "3 PyTorch traces"
        ]
    );
    assert!(
        output
            .errors()
            .contains("--max-traces: 1 trace without a report of its own")
    );
}

#[test]
fn comparison_comes_first() {
    // 1.2, 6.3, 6.4
    let job = Job::of("run/train");
    assert_eq!(job.analyze(&["--mode", "pytorch"]).code(), 0);
    let (a, b) = (
        "tracelens_output/libkineto_trace_48209.xlsx",
        "tracelens_output/libkineto_trace_48213_csv",
    );
    let output = job.analyze(&[
        "--compare",
        a,
        b,
        "--compare-names",
        "A",
        "B",
        "--json-summary",
        "c.json",
        "--discover-only",
    ]);
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    assert!(output.text().contains("Comparison written to: "));
    assert!(job.path("tracelens_comparison.xlsx").exists());
    let root = job.folder.path().canonicalize().unwrap();
    let document = job.json("c.json");
    assert_eq!(
        (
            &document["reports"],
            &document["output"],
            &document["status"],
            &document["detail"]
        ),
        (
            &json!([root.join(a), root.join(b)]),
            &json!(root.join("tracelens_comparison.xlsx")),
            &json!("SUCCESS"),
            &json!("")
        )
    );
    for (words, why) in [
        (&["--compare", a][..], "at least two reports"),
        (&["--compare", a, "nowhere.xlsx"], "no report at nowhere.xlsx"),
        (&["--compare", a, b, "--compare-names", "A"], "1 names for 2 reports"),
    ] {
        let output = job.analyze(&[words, &["--compare-output", "other.xlsx", "--json-summary", "c.json"]].concat());
        assert_eq!(output.code(), 1, "{words:?}");
        assert!(
            output.text().starts_with("Comparison failed: ") && output.text().contains(why),
            "{}",
            output.text()
        );
        let document = job.json("c.json");
        assert_eq!(document["status"], "FAILURE");
        assert!(document["detail"].as_str().unwrap().contains(why));
    }
    assert!(!job.path("other.xlsx").exists());
}

#[test]
fn the_words_of_our_own_stay() {
    let job = Job::of("run/serve");
    let by_position = job.analyze(&[".", "--json"]).json();
    let by_root = job.analyze(&["--root", ".", "--json"]).json();
    assert_eq!(
        by_position["results"].as_array().unwrap().len(),
        by_root["results"].as_array().unwrap().len()
    );
    let both = job.analyze(&[".", "--root", "."]);
    assert_eq!(both.code(), 2);
    let no_tracelens = tracemend()
        .arg("analyze")
        .current_dir(job.folder.path())
        .output()
        .unwrap();
    assert_eq!(no_tracelens.code(), 0);
    assert!(no_tracelens.text().contains("Reports by the embedded reporter"));
}

#[test]
fn odd_names_are_no_trouble() {
    // A6, A7, A12, A23, H3
    let job = Job::new();
    let odd = std::ffi::OsStr::from_bytes(b"[1] \xff\xe6\xa8\xa1 [b]*");
    fs::create_dir(job.folder.path().join(odd)).unwrap();
    let trace = fixture("run/train/libkineto_trace_48213.json");
    fs::copy(trace, job.folder.path().join(odd).join("x.pt.trace.json")).unwrap();
    for words in [&["--mode", "pytorch"][..], &["--discover-only"]] {
        let output = tracemend()
            .arg("analyze")
            .arg("--root")
            .arg(odd)
            .args(words)
            .current_dir(job.folder.path())
            .env("TRACELENS_VENV", venv())
            .env("LC_ALL", "POSIX")
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", String::from_utf8_lossy(&output.stderr));
        if words[0] == "--discover-only" {
            assert_eq!(
                output.stdout,
                [b"pytorch\t", odd.as_bytes(), b"/x.pt.trace.json\n"].concat()
            );
        }
    }
    let rows = job.rows("tracelens_output/tracelens_summary.csv");
    assert_eq!(
        (rows[1][0].as_str(), rows[1][3].as_str()),
        ("x.pt.trace.json", "SUCCESS")
    );
}
