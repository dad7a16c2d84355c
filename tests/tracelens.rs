//! TraceLens, driven: the command line of each generator, its flags, its isolation. The stand-in of fixtures/tracelens notes every
//! call; a generator's own `--help` is asked for once and kept in the cache.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::util::{Answer, copy_of, fixture, perfetto_trace, python, tracemend, write_trace, xplane};

/// A run with a trace of each kind, one rank in two being damaged, and where its reports and the log of calls go.
struct Bench {
    run: tempfile::TempDir,
    out: tempfile::TempDir,
}

impl Bench {
    fn new(run: tempfile::TempDir) -> Self {
        Bench {
            run,
            out: tempfile::tempdir().unwrap(),
        }
    }

    fn of_all_kinds() -> Self {
        let run = copy_of("run");
        fs::write(run.path().join("a.pftrace"), perfetto_trace("")).unwrap();
        fs::write(run.path().join("host.xplane.pb"), xplane(true)).unwrap();
        Bench::new(run)
    }

    fn reports(&self) -> PathBuf {
        self.out.path().join("reports")
    }

    /// `tracemend analyze --json` with the stand-in, its log, and a cache of its own.
    fn analyze(&self) -> assert_cmd::Command {
        let mut command = tracemend();
        command
            .args(["analyze", "--json", "--jobs", "1"])
            .arg(self.run.path())
            .arg("-o")
            .arg(self.reports())
            .arg("--python")
            .arg(python())
            .env("TRACELENS_STAND_IN_LOG", self.out.path().join("calls"))
            // Without the user's own traceconv.
            .env("PATH", "/usr/bin:/bin");
        command
    }

    /// The calls: script and words, with the scratch folder, the run and the folder for parts under fixed names.
    fn calls(&self) -> Vec<(String, Vec<String>)> {
        let text = fs::read_to_string(self.out.path().join("calls")).unwrap_or_default();
        let run = self.run.path().canonicalize().unwrap();
        text.lines()
            .map(|line| {
                let call: Value = serde_json::from_str(line).unwrap();
                let words = call["argv"].as_array().unwrap().iter();
                let words = words.map(|word| named(word.as_str().unwrap(), &run, &self.reports()));
                (call["script"].as_str().unwrap().to_owned(), words.collect())
            })
            .filter(|(_, words): &(String, Vec<String>)| words != &["--help"])
            .collect()
    }

    fn calls_of(&self, script: &str) -> Vec<String> {
        let calls = self.calls().into_iter().filter(|(called, _)| called == script);
        let mut lines: Vec<String> = calls.map(|(_, words)| words.join(" ")).collect();
        lines.sort();
        lines
    }
}

/// A word of a command line with what differs from run to run under fixed names: RUN, SCRATCH, PART.
fn named(word: &str, run: &Path, reports: &Path) -> String {
    let word = word.replace(&*run.to_string_lossy(), "RUN");
    let part = format!("{}/.partial-", reports.display());
    if let Some(at) = word.find(&part) {
        return format!("{}PART{}", &word[..at], &word[at + part.len() + 6..]);
    }
    let mut parts: Vec<&str> = word.split('/').collect();
    if let Some(at) = parts.iter().position(|part| part.starts_with("tracemend-")) {
        parts.splice(..=at, ["SCRATCH"]);
        for random in ["ranks-", "xplane-"] {
            for part in &mut parts {
                *part = if part.starts_with(random) { random } else { part };
            }
        }
    }
    parts.join("/")
}

const PYTORCH: &str = "TraceLens_generate_perf_report_pytorch";
const ROCPROF: &str = "TraceLens_generate_perf_report_rocprof";
const JAX: &str = "TraceLens_generate_perf_report_jax";
const COLLECTIVE: &str = "TraceLens_generate_multi_rank_collective_report_pytorch";
const PFTRACE: &str = "TraceLens_generate_perf_report_pftrace_";

#[test]
fn every_generator_gets_exactly_these_words() {
    let bench = Bench::of_all_kinds();
    let traceconv = fixture("tracelens/traceconv");
    let output = bench.analyze().arg("--traceconv").arg(&traceconv).output().unwrap();
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    let traceconv = traceconv.display();
    let stem = "serve_vllm-rank-0.1724300000123456789.pt.trace";
    let expected = [
        (
            PYTORCH,
            format!(
                "--profile_json_path RUN/serve/vllm-rank-0.1724300000123456789.pt.trace.json.gz --output_xlsx_path PART/{stem}.xlsx \
                 --output_csvs_dir PART/{stem}_csv --enable_kernel_summary"
            ),
        ),
        (
            ROCPROF,
            "--profile_json_path SCRATCH/mended2.json --output_csvs_dir PART/rocprof_node01_4711_results_csv --kernel_details \
             --short_kernel_study"
                .to_owned(),
        ),
        (
            ROCPROF,
            "--profile_json_path SCRATCH/mended2.json --output_xlsx_path PART/rocprof_node01_4711_results.xlsx --kernel_details \
             --short_kernel_study"
                .to_owned(),
        ),
        (
            COLLECTIVE,
            r"--trace_glob SCRATCH/ranks-/rank*_trace.json* --rank_regex ^rank(?P<rank>\d+)_trace\.json --world_size 4 \
             --gpus_per_node 4 --output_xlsx_path PART/multi_rank_collective_train.xlsx --output_csvs_dir \
             PART/multi_rank_collective_train_csv"
                .replace("\\\n             ", ""),
        ),
        ("traceconv", "json RUN/a.pftrace SCRATCH/pftrace0.traceconv.json".to_owned()),
        (
            &format!("{PFTRACE}hip_activity"),
            format!(
                "--trace_path SCRATCH/pftrace0.json --output_csvs_dir PART/a_activity_csv --output_md_path PART/a_activity.md \
                 --traceconv {traceconv}"
            ),
        ),
        (
            &format!("{PFTRACE}hip_activity"),
            format!("--trace_path SCRATCH/pftrace0.json --output_xlsx_path PART/a_activity.xlsx --traceconv {traceconv}"),
        ),
        (
            &format!("{PFTRACE}hip_api"),
            format!("--trace_path SCRATCH/pftrace0.json --output_csvs_dir PART/a_hip_api_csv --traceconv {traceconv}"),
        ),
        (
            &format!("{PFTRACE}hip_api"),
            format!("--trace_path SCRATCH/pftrace0.json --output_xlsx_path PART/a_hip_api.xlsx --traceconv {traceconv}"),
        ),
        (
            &format!("{PFTRACE}memory_copy"),
            format!("--trace_path SCRATCH/pftrace0.json --output_csvs_dir PART/a_memory_copy_csv --traceconv {traceconv}"),
        ),
        (
            &format!("{PFTRACE}memory_copy"),
            format!("--trace_path SCRATCH/pftrace0.json --output_xlsx_path PART/a_memory_copy.xlsx --traceconv {traceconv}"),
        ),
        (
            JAX,
            "--profile_path SCRATCH/xplane-/trace.xplane.pb --output_csvs_dir PART/host_csv".to_owned(),
        ),
        (
            JAX,
            "--profile_path SCRATCH/xplane-/trace.xplane.pb --output_xlsx_path PART/host.xlsx".to_owned(),
        ),
    ];
    let calls = bench.calls();
    let lines: Vec<(String, String)> = calls
        .into_iter()
        .map(|(script, words)| (script, words.join(" ")))
        .collect();
    for (script, words) in &expected {
        assert!(
            lines.iter().any(|(called, line)| called == script && line == words),
            "no call {script} {words} in {lines:#?}"
        );
    }
    // Six Kineto traces and two groups of ranks make the rest.
    assert_eq!(lines.len(), expected.len() + 5 + 1);
    assert_eq!(
        bench.calls_of("traceconv").len(),
        1,
        "one conversion serves three reports"
    );

    let summary = output.json();
    let rows = summary["results"].as_array().unwrap();
    let of_kind = |kind: &str| {
        rows.iter()
            .filter(|row| row["kind"] == kind && row["status"] == "SUCCESS")
            .count()
    };
    assert_eq!((of_kind("pftrace"), of_kind("jax")), (3, 1), "{summary:#}");
    for output in [
        "a_activity.md",
        "a_activity.xlsx",
        "a_activity_csv",
        "a_hip_api.xlsx",
        "a_memory_copy_csv",
        "host.xlsx",
        "host_csv",
    ] {
        assert!(bench.reports().join(output).exists(), "{output}");
    }
    // Nothing was written beside the traces: neither by traceconv nor by what reads a JAX profile.
    let mut beside: Vec<String> = fs::read_dir(bench.run.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    beside.sort();
    assert_eq!(beside, ["a.pftrace", "host.xplane.pb", "rocprof", "serve", "train"]);
}

#[test]
fn a_setting_and_an_architecture_go_where_they_are_known() {
    let bench = Bench::of_all_kinds();
    let output = bench
        .analyze()
        .args(["--gpu-arch", "MI325X", "--short-kernel-study", "--", "--topk_ops", "9"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let ending = "--enable_kernel_summary --short_kernel_study --gpu_arch_platform MI325X --topk_ops 9";
    let pytorch = bench.calls_of(PYTORCH);
    assert!(
        pytorch.len() == 6 && pytorch.iter().all(|line| line.ends_with(ending)),
        "{pytorch:#?}"
    );
    assert!(
        bench
            .calls_of(JAX)
            .iter()
            .all(|line| line.ends_with("--gpu_arch_platform MI325X"))
    );
    assert!(
        bench
            .calls_of(ROCPROF)
            .iter()
            .all(|line| line.ends_with("--kernel_details --short_kernel_study"))
    );
    let said = output.errors();
    assert!(
        said.contains("--topk_ops is given to pytorch only: rocprof, jax, collective do not know it"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn words_that_would_cost_a_report_are_refused_before_any_work() {
    let bench = Bench::new(copy_of("run/serve"));
    for (words, why) in [
        (
            &["--gpu-arch", "mi300x"][..],
            "TraceLens knows no GPU mi300x; it writes MI300X",
        ),
        (&["--gpu-arch", "MI355X"], "knows no GPU MI355X, only MI300X, MI325X"),
        (&["--", "--topk_opps", "9"], "--topk_opps after -- is not known to any"),
        (
            &["--extra-for", "rocprof", "--", "--topk_ops", "9"],
            "--topk_ops after -- is unknown to TraceLens_generate_perf_report_rocprof",
        ),
        (
            &["--mode", "pytorch", "--", "--topk"],
            "--topk after -- may be --topk_ops or",
        ),
        (&["--", "9"], "are options for TraceLens"),
        (&["--", "--output_csvs_dir", "x"], "give --output-dir, before the --"),
        (&["--", "--traceconv=x"], "give --traceconv, before the --"),
        (
            &["--traceconv", "/nowhere/traceconv"],
            "no program at /nowhere/traceconv",
        ),
    ] {
        let output = bench.analyze().args(words).output().unwrap();
        assert_eq!(output.code(), 2, "{words:?}: {}", output.errors());
        assert!(output.one_error().contains(why), "{words:?}: {}", output.errors());
        assert!(!bench.reports().exists());
    }
    assert_eq!(bench.calls().len(), 0);
}

#[test]
fn options_handed_on_reach_those_they_are_for_with_paths_seen_from_here() {
    let bench = Bench::new(copy_of("run"));
    fs::write(bench.out.path().join("extension.py"), "").unwrap();
    let output = bench
        .analyze()
        .current_dir(bench.out.path())
        .args([
            "--extra-for",
            "pytorch",
            "--",
            "--extension_file",
            "extension.py",
            "--topk_o=3",
        ])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let file = bench.out.path().canonicalize().unwrap().join("extension.py");
    let ending = format!(
        "--enable_kernel_summary --extension_file {} --topk_ops=3",
        file.display()
    );
    let lines = bench.calls_of(PYTORCH);
    assert!(lines.iter().all(|line| line.ends_with(&ending)), "{lines:#?}");
    assert_eq!(output.errors(), "");
}

/// A venv-like folder whose TraceLens is another version: its pytorch and rocprof reports know less.
fn older_tracelens() -> tempfile::TempDir {
    let bin = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(python().canonicalize().unwrap(), bin.path().join("python")).unwrap();
    for script in [PYTORCH, ROCPROF] {
        let body = format!(
            r#"#!{python}
import re, sys
from TraceLens.Reporting import {module} as report
words = sys.argv[1:]
if words == ["--help"]:
    print("usage: x [-h] --profile_json_path P [--output_xlsx_path P]\n\noptions:\n  -h, --help  show this")
    sys.exit(0)
unknown = [w for w in words if w.startswith("--") and w not in ("--profile_json_path", "--output_xlsx_path")]
if unknown:
    sys.exit("error: unrecognized arguments: " + " ".join(unknown))
sys.exit(report.main())
"#,
            python = python().display(),
            module = script.strip_prefix("TraceLens_").unwrap(),
        );
        write_program(&bin.path().join(script), &body);
    }
    bin
}

fn write_program(path: &Path, body: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, body).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn an_older_tracelens_gets_no_flag_that_it_does_not_know() {
    let bench = Bench::new(copy_of("run"));
    let (older, out) = (older_tracelens(), tempfile::tempdir().unwrap());
    let output = tracemend()
        .args(["analyze", "--json", "--keep-pythonpath", "--short-kernel-study"])
        .arg(bench.run.path())
        .arg("-o")
        .arg(out.path())
        .arg("--python")
        .arg(older.path().join("python"))
        .env("PYTHONPATH", site_packages())
        .output()
        .unwrap();
    let summary = output.json();
    let single = summary["results"].as_array().unwrap().iter();
    let single: Vec<&Value> = single
        .filter(|row| row["tracelens_tool"] == PYTORCH || row["tracelens_tool"] == ROCPROF)
        .collect();
    assert!(
        single.len() == 8 && single.iter().all(|row| row["status"] != "FAILURE"),
        "{summary:#}"
    );
    assert!(out.path().join("rocprof_node01_4711_results.xlsx").exists());
    assert!(!out.path().join("rocprof_node01_4711_results_csv").exists());
    let output = tracemend()
        .args(["analyze", "--keep-pythonpath", "--gpu-arch", "MI300X"])
        .arg(bench.run.path())
        .arg("--python")
        .arg(older.path().join("python"))
        .env("PYTHONPATH", site_packages())
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("this TraceLens has no --gpu_arch_platform"));
}

/// Where the stand-in's package lies.
fn site_packages() -> PathBuf {
    let script = "import TraceLens, os; print(os.path.dirname(os.path.dirname(TraceLens.__file__)))";
    let output = std::process::Command::new(python())
        .args(["-c", script])
        .output()
        .unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

#[test]
fn flags_are_asked_for_once_and_a_broken_cache_is_no_obstacle() {
    let bench = Bench::new(copy_of("run/serve"));
    let cache = tempfile::tempdir().unwrap();
    let helps = || {
        let output = bench.analyze().env("XDG_CACHE_HOME", cache.path()).output().unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        let calls = fs::read_to_string(bench.out.path().join("calls")).unwrap();
        fs::remove_file(bench.out.path().join("calls")).unwrap();
        calls
            .lines()
            .filter(|line| line.contains(r#""argv": ["--help"]"#))
            .count()
    };
    assert_eq!((helps(), helps()), (2, 0), "pytorch and collective, once");
    let file = fs::read_dir(cache.path().join("tracemend/tracelens"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    for content in ["", "{\"TraceLens_generate_perf_report_pytorch\": 7}", "\u{0}\u{1}"] {
        fs::write(&file, content).unwrap();
        assert_eq!(helps(), 2, "{content:?}");
        assert_eq!(helps(), 0);
    }
    fs::remove_dir_all(cache.path().join("tracemend/tracelens")).unwrap();
    fs::write(cache.path().join("tracemend/tracelens"), "no folder").unwrap();
    assert_eq!(
        (helps(), helps()),
        (2, 2),
        "a cache that cannot be written costs time only"
    );
}

#[test]
fn a_home_is_not_needed() {
    let bench = Bench::new(copy_of("run/serve"));
    let read_only = tempfile::tempdir().unwrap();
    fs::set_permissions(read_only.path(), std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    for home in [None, Some(read_only.path()), Some(Path::new("/proc/nowhere"))] {
        let mut command = bench.analyze();
        command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let output = command.output().unwrap();
        assert_eq!((output.code(), output.errors().as_str()), (0, ""), "{home:?}");
    }
}

#[test]
fn a_bare_name_is_an_interpreter_on_path_and_never_a_script_here() {
    let bench = Bench::new(copy_of("run/serve"));
    let here = tempfile::tempdir().unwrap();
    for name in ["python3", PYTORCH] {
        write_program(&here.path().join(name), "#!/bin/sh\ntouch \"$0.ran\"\nexit 99\n");
    }
    let mut command = tracemend();
    command
        .args(["analyze", "--json", "--python", "python3"])
        .arg(bench.run.path())
        .arg("-o")
        .arg(bench.reports());
    let venv = python().parent().unwrap().to_owned();
    let paths = std::env::join_paths([
        Path::new(""),
        Path::new("."),
        &venv,
        Path::new("/usr/bin"),
        Path::new("/bin"),
    ])
    .unwrap();
    let output = command.current_dir(here.path()).env("PATH", paths).output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(output.json()["python"], json!(venv.join("python3")));
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 2, "nothing here ran");
}

#[test]
fn perfetto_traces_need_traceconv_and_say_so() {
    let run = tempfile::tempdir().unwrap();
    fs::write(run.path().join("a.pftrace"), perfetto_trace("")).unwrap();
    let bench = Bench::new(run);
    let output = bench.analyze().output().unwrap();
    assert_eq!(output.code(), 0);
    let summary = output.json();
    let rows = summary["results"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{summary:#}");
    for (row, which) in rows.iter().zip(["hip_activity", "hip_api", "memory_copy"]) {
        assert_eq!(
            (&row["status"], &row["tracelens_tool"]),
            (&json!("SKIPPED"), &json!(format!("{PFTRACE}{which}")))
        );
        assert!(
            row["detail"].as_str().unwrap().contains("give --traceconv PATH"),
            "{row}"
        );
    }
    assert_eq!(bench.calls(), [], "TraceLens, which would download one, is not run");

    // The one beside the interpreter is found by itself; so is one on PATH.
    let folder = tempfile::tempdir().unwrap();
    fs::copy(fixture("tracelens/traceconv"), folder.path().join("traceconv")).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = bench.analyze().env("PATH", path).output().unwrap();
    assert_eq!(
        (output.code(), &output.json()["succeeded"]),
        (0, &json!(3)),
        "{}",
        output.text()
    );
}

#[test]
fn what_traceconv_writes_is_mended_and_what_it_refuses_is_told() {
    let run = tempfile::tempdir().unwrap();
    fs::write(run.path().join("damaged.pftrace"), perfetto_trace("DAMAGED")).unwrap();
    fs::write(run.path().join("broken.pftrace"), perfetto_trace("BROKEN")).unwrap();
    let bench = Bench::new(run);
    let output = bench
        .analyze()
        .arg("--traceconv")
        .arg(fixture("tracelens/traceconv"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 1);
    let summary = output.json();
    assert_eq!(
        (&summary["succeeded"], &summary["failed"]),
        (&json!(3), &json!(3)),
        "{summary:#}"
    );
    for row in summary["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["trace_file"] == "broken.pftrace")
    {
        assert_eq!(
            row["detail"],
            "traceconv failed: trace_processor: unexpected end of packet"
        );
    }
    let sheet = fs::read_to_string(bench.reports().join("damaged_hip_api_csv/api_kernel_summary.csv")).unwrap();
    assert!(sheet.contains("gemm_\u{fffd}\u{fffd}"), "{sheet}");
}

#[test]
fn jax_profiles_are_known_by_content_and_a_cut_one_is_told() {
    let run = tempfile::tempdir().unwrap();
    fs::create_dir(run.path().join("plugins")).unwrap();
    fs::write(run.path().join("plugins/node01.xplane.pb"), xplane(true)).unwrap();
    fs::write(run.path().join("renamed.pb"), xplane(true)).unwrap();
    fs::write(run.path().join("cpu.xplane.pb"), xplane(false)).unwrap();
    fs::write(run.path().join("cut.xplane.pb"), &xplane(true)[..60]).unwrap();
    fs::write(run.path().join("model.pb"), b"\x0a\x05model").unwrap();
    let bench = Bench::new(run);
    let output = bench.analyze().output().unwrap();
    assert_eq!(output.code(), 1);
    let summary = output.json();
    let mut rows: Vec<(&str, &str, &str)> = Vec::new();
    for row in summary["results"].as_array().unwrap() {
        let text = |key: &str| row[key].as_str().unwrap();
        rows.push((text("trace_file"), text("status"), text("kind")));
    }
    assert_eq!(
        rows,
        [
            ("cpu.xplane.pb", "SKIPPED", "jax"),
            ("cut.xplane.pb", "FAILURE", "jax"),
            ("plugins/node01.xplane.pb", "SUCCESS", "jax"),
            ("renamed.pb", "SUCCESS", "jax")
        ]
    );
    let detail = |index: usize| summary["results"][index]["detail"].as_str().unwrap();
    assert!(detail(0).contains("no GPU activity"));
    assert!(
        detail(1).contains("refused: cut: the field at byte") && detail(1).contains("copy the file again"),
        "{}",
        detail(1)
    );
}

#[test]
fn nodes_split_collectives_where_they_are_even() {
    let bench = Bench::new(tempfile::tempdir().unwrap());
    let gpus_per_node = |nodes: [&str; 4]| {
        for entry in fs::read_dir(bench.run.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for node in nodes {
            let processes = (0..4).filter(|rank| nodes[*rank] == node);
            let processes: Vec<Value> = processes
                .map(|rank| json!({"pid": 100 + rank, "rank": rank, "world_size": 4}))
                .collect();
            let manifest = json!({"tracemend_manifest": 1, "host": node, "processes": processes});
            fs::write(
                bench.run.path().join(format!("tracemend-manifest-{node}.json")),
                manifest.to_string(),
            )
            .unwrap();
        }
        for pid in 100..104 {
            write_trace(bench.run.path().join(format!("libkineto_trace_{pid}.json")), None);
        }
        bench.analyze().args(["--mode", "collective"]).output().unwrap();
        let lines = bench.calls_of(COLLECTIVE);
        let _ = fs::remove_file(bench.out.path().join("calls"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        let words: Vec<&str> = lines[0].split(' ').collect();
        words
            .iter()
            .position(|word| *word == "--gpus_per_node")
            .map(|at| words[at + 1].to_owned())
    };
    assert_eq!(gpus_per_node(["a", "a", "b", "b"]).as_deref(), Some("2"));
    assert_eq!(gpus_per_node(["a", "a", "a", "a"]).as_deref(), Some("4"));
    assert_eq!(gpus_per_node(["a", "b", "a", "b"]), None);
    assert_eq!(gpus_per_node(["a", "a", "a", "b"]), None);
}

#[test]
fn the_tracelens_found_is_shown_and_stored() {
    let bench = Bench::new(copy_of("run/serve"));
    let checkout = tempfile::tempdir().unwrap();
    let package = checkout.path().join("TraceLens");
    std::os::unix::fs::symlink(site_packages().join("TraceLens"), &package).unwrap();
    fs::create_dir(checkout.path().join(".git")).unwrap();
    fs::write(
        checkout.path().join(".git/HEAD"),
        "171dd74700000000000000000000000000000000\n",
    )
    .unwrap();
    let output = tracemend()
        .arg("analyze")
        .arg(bench.run.path())
        .arg("-o")
        .arg(bench.reports())
        .arg("--python")
        .arg(python())
        .arg("--keep-pythonpath")
        .env("PYTHONPATH", checkout.path())
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let text = output.text();
    assert!(
        text.contains("commit 171dd747") && text.contains(&*package.to_string_lossy()),
        "{text}"
    );
    let summary: Value =
        serde_json::from_slice(&fs::read(bench.reports().join("tracelens_summary.json")).unwrap()).unwrap();
    assert_eq!(
        summary["tracelens"]["commit"],
        "171dd74700000000000000000000000000000000"
    );
    assert_eq!(summary["tracelens"]["path"], json!(package));
}
