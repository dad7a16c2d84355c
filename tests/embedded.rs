//! The embedded reporter: its figures against TraceLens's, and what bad events do to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::util::{Answer, fixture, python, real_traces, tracemend};

fn analyze(run: &Path, out: &Path, extra: &[&str]) -> Output {
    let mut command = tracemend();
    command.args(["analyze", "--reporter", "builtin"]).args(extra);
    command.arg(run).arg("-o").arg(out).output().unwrap()
}

type Row = BTreeMap<String, String>;

fn table(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    reader.deserialize().map(|row| row.unwrap()).collect()
}

/// The table of the output folder whose name ends so; none if there is none.
fn table_of(out: &Path, ending: &str) -> Option<Vec<Row>> {
    let mut names = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    Some(table(&names.find(|path| path.to_string_lossy().ends_with(ending))?))
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

fn run_of(events: &[Value]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let trace = json!({"schemaVersion": 1, "traceEvents": events});
    fs::write(folder.path().join("rank0_trace.json"), trace.to_string()).unwrap();
    folder
}

fn event(cat: &str, name: &str, ts: Value, dur: Value) -> Value {
    json!({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 0, "tid": 7, "args": {"stream": 7}})
}

/// Compares the report on one trace with TraceLens's figures of it, microseconds. TraceLens adds up doubles of times since
/// boot, which are up to a nanosecond off each.
fn compare(trace: &str, figures: &Value, out: &Path) {
    let timeline: BTreeMap<String, f64> = table_of(out, "_gpu_timeline.csv")
        .unwrap_or_else(|| panic!("{trace}: no time line"))
        .iter()
        .map(|row| (row["type"].clone(), number(row, "time_ms") * 1000.0))
        .collect();
    let figure_of = figures["timeline"].as_object().unwrap();
    assert!(figure_of.len() >= 5, "{trace}");
    for (name, time) in figure_of {
        let name = match name.as_str() {
            "kernel" => "kernel_time",
            "memory" => "total_memcpy_time",
            "idle" => "idle_time",
            name => name,
        };
        let time = time.as_f64().unwrap();
        assert!(
            (timeline[name] - time).abs() < 0.1,
            "{trace}: {name} is {}, TraceLens has {time}",
            timeline[name]
        );
    }

    let kernels = table_of(out, "_kernels.csv").unwrap();
    let figure_of = figures["kernels"].as_object().unwrap();
    assert_eq!(kernels.len(), figure_of.len(), "{trace}");
    for kernel in &kernels {
        let theirs: Vec<f64> = serde_json::from_value(figure_of[&kernel["name"]].clone()).unwrap();
        let ours = ["count", "total_us", "min_us", "max_us"].map(|column| number(kernel, column));
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!(
                (ours - theirs).abs() < 0.001,
                "{trace}: {kernel:?}, TraceLens has {theirs}"
            );
        }
    }

    let ours = table_of(out, "_collectives.csv").unwrap_or_default();
    for theirs in figures["collectives"].as_array().unwrap() {
        let text = |index: usize| {
            theirs[index]
                .as_str()
                .map_or_else(|| theirs[index].to_string(), str::to_owned)
        };
        let columns = ["kind", "dtype", "in_elements", "out_elements", "group_size", "count"];
        let same = |row: &&Row| {
            columns
                .iter()
                .enumerate()
                .all(|(index, column)| row[*column] == text(index))
        };
        let row = ours
            .iter()
            .find(same)
            .unwrap_or_else(|| panic!("{trace}: no {theirs} in {ours:?}"));
        assert!(
            (number(row, "total_us") - theirs[6].as_f64().unwrap()).abs() < 0.001,
            "{trace}: {row:?}"
        );
    }
}

#[test]
fn the_bundled_run_has_the_figures_of_tracelens() {
    let recorded: BTreeMap<String, Value> =
        serde_json::from_slice(&fs::read(fixture("tracelens_figures.json")).unwrap()).unwrap();
    assert_eq!(recorded.len(), 7);
    for (trace, figures) in &recorded {
        let folder = ["train", "serve", "rocprof/node01"].map(|folder| fixture("run").join(folder).join(trace));
        let path = folder.iter().find(|path| path.exists()).unwrap();
        let out = tempfile::tempdir().unwrap();
        let output = analyze(path, out.path(), &["-q"]);
        assert_eq!(output.code(), 0, "{}", output.errors());
        compare(trace, figures, out.path());
    }
}

/// Needs the real TraceLens: TRACEMEND_TRACELENS_PYTHON names an interpreter that can import it (PYTHONPATH is left as it is).
#[test]
fn real_traces_have_the_figures_of_tracelens() {
    let Some(folder) = real_traces() else { return };
    let Some(python) = std::env::var_os("TRACEMEND_TRACELENS_PYTHON") else {
        eprintln!("skipped: TRACEMEND_TRACELENS_PYTHON names no interpreter with the real TraceLens");
        return;
    };
    let traces: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    let said = Command::new(python)
        .arg(fixture("tracelens_figures.py"))
        .args(&traces)
        .output()
        .unwrap();
    assert!(said.status.success(), "{}", said.errors());
    let mut compared = 0;
    for (trace, figures) in said.json().as_object().unwrap() {
        // Traces without GPU events, and two with nameless events that TraceLens stumbles over.
        if figures.is_null() {
            continue;
        }
        let path = traces.iter().find(|path| path.ends_with(trace)).unwrap();
        let out = tempfile::tempdir().unwrap();
        let output = analyze(path, out.path(), &["-q"]);
        assert_eq!(output.code(), 0, "{trace}: {}", output.errors());
        compare(trace, figures, out.path());
        compared += 1;
    }
    assert!(compared >= 9, "only {compared} traces compared");
}

#[test]
fn the_slow_rank_is_named() {
    let out = tempfile::tempdir().unwrap();
    let output = analyze(&fixture("run/train"), out.path(), &[]);
    assert_eq!(output.code(), 0, "{}", output.errors());
    let text = output.text();
    assert!(
        text.contains("rank 2 is the slowest: the others wait for it in collectives, "),
        "{text}"
    );
    assert!(text.contains("GPU time of each trace"), "{text}");

    let ranks = table(&out.path().join("ranks.csv"));
    assert_eq!(
        ranks.iter().map(|row| row["rank"].as_str()).collect::<Vec<_>>(),
        ["0", "1", "2", "3"]
    );
    for rank in &ranks {
        let [busy, idle, total] = ["busy_time_ms", "idle_time_ms", "total_time_ms"].map(|column| number(rank, column));
        assert!((busy + idle - total).abs() < 1e-6, "{rank:?}");
        let parts = ["computation_time_ms", "exposed_comm_time_ms", "exposed_memcpy_time_ms"]
            .map(|column| number(rank, column));
        assert!((parts.iter().sum::<f64>() - busy).abs() < 1e-6, "{rank:?}");
    }
    let allreduce = table(&out.path().join("collectives.csv"))
        .into_iter()
        .find(|row| row["kind"] == "allreduce")
        .unwrap();
    assert_eq!(
        (&*allreduce["least"], &*allreduce["slowest"], &*allreduce["traces"]),
        ("rank 2", "rank 2", "4")
    );
    assert!(number(&allreduce, "least_total_us") < number(&allreduce, "greatest_total_us"));
}

#[test]
fn the_order_of_events_and_the_container_do_not_matter() {
    let trace: Value =
        serde_json::from_slice(&fs::read(fixture("run/train/libkineto_trace_48209.json")).unwrap()).unwrap();
    let mut events = trace["traceEvents"].as_array().unwrap().clone();
    let tables = |events: &[Value], gzip: bool| {
        let (run, out) = (run_of(events), tempfile::tempdir().unwrap());
        let path = run.path().join("rank0_trace.json");
        if gzip {
            let json = fs::read(&path).unwrap();
            let file = fs::File::create(run.path().join("rank0_trace.json.gz")).unwrap();
            let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, &json).unwrap();
            encoder.finish().unwrap();
            fs::remove_file(path).unwrap();
        }
        assert_eq!(analyze(run.path(), out.path(), &["-q"]).code(), 0);
        [
            "_kernels.csv",
            "_gpu_timeline.csv",
            "_memory_copies.csv",
            "_collectives.csv",
        ]
        .map(|ending| table_of(out.path(), ending))
    };
    let expected = tables(&events, false);
    assert!(expected.iter().all(Option::is_some));
    events.reverse();
    assert_eq!(tables(&events, true), expected);
    let half = events.len() / 2;
    events.rotate_left(half);
    assert_eq!(tables(&events, false), expected);
}

#[test]
fn events_that_cannot_be_counted_are_told() {
    let run = run_of(&[
        event("kernel", "gemm", json!(1), json!(2.5)),
        event("kernel", "gemm", json!("10.5"), json!("1.5")),
        event("kernel", "late", json!(9_007_199_254_740_994_u64), json!(1)),
        event("kernel", "beyond", json!(1e16), json!(1)),
        event("kernel", "backwards", json!(5), json!(-1)),
        event("kernel", "timeless", Value::Null, json!(1)),
        event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", json!("soon"), json!(1)),
        event("kernel", "endless", json!(1), json!([1])),
    ]);
    // What a writer leaves of a NaN, before it is mended to null.
    let path = run.path().join("rank0_trace.json");
    fs::write(
        &path,
        fs::read_to_string(&path).unwrap().replace("\"ts\":null", "\"ts\":NaN"),
    )
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let output = analyze(run.path(), out.path(), &[]);
    assert_eq!(output.code(), 0, "{}", output.errors());
    let warning = "warning: 5 GPU events of rank0_trace.json in no figure: 1 that end before they start, 4 without a usable start or duration";
    assert!(output.text().contains(warning), "{}", output.text());
    let kernels = table(&out.path().join("kernels.csv"));
    let counted: Vec<[&str; 3]> = kernels
        .iter()
        .map(|row| ["name", "count", "total_us"].map(|column| row[column].as_str()))
        .collect();
    assert_eq!(counted, [["gemm", "2", "4.000"], ["late", "1", "1.000"]]);
    assert_eq!(table(&out.path().join("ranks.csv"))[0]["skipped_events"], "5");
}

#[test]
fn no_name_becomes_a_formula_or_reaches_the_terminal_raw() {
    let names = [
        "=HYPERLINK(\"http://x\")",
        "+1",
        "-1",
        "@SUM(A1)",
        "\u{1b}[2Jgemm",
        "\tgemm",
    ];
    let events: Vec<Value> = (0..)
        .zip(names)
        .map(|(at, name)| event("kernel", name, json!(at * 10), json!(5)))
        .collect();
    let (run, out) = (run_of(&events), tempfile::tempdir().unwrap());
    let output = analyze(run.path(), out.path(), &[]);
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert!(!output.text().contains('\u{1b}'), "{:?}", output.text());
    for file in ["rank0_trace_kernels.csv", "kernels.csv"] {
        for row in table(&out.path().join(file)) {
            assert!(!row["name"].starts_with(['=', '+', '-', '@', '\t']), "{row:?}");
        }
    }
}

#[test]
fn tables_without_rows_are_not_written_and_old_ones_go() {
    let copies = [
        event("kernel", "gemm", json!(1), json!(2)),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Host)", json!(5), json!(2)),
        event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", json!(9), json!(2)),
    ];
    let out = tempfile::tempdir().unwrap();
    let files = |events: &[Value]| {
        let run = run_of(events);
        assert_eq!(analyze(run.path(), out.path(), &["-q"]).code(), 0);
        let names = fs::read_dir(out.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| name.ends_with(".csv") && !name.contains("summary"))
            .collect();
        names.sort();
        names
    };
    let of_gemm = [
        "kernels.csv",
        "rank0_trace_gpu_timeline.csv",
        "rank0_trace_kernels.csv",
        "ranks.csv",
    ];
    assert_eq!(files(&copies).len(), 8);
    assert_eq!(files(&copies[..1]), of_gemm);
}

/// Memory must not depend on the size of the trace: one that is eight times as large may take no more than a little more.
#[test]
fn memory_does_not_grow_with_the_trace() {
    let peak_kib = |launches: u64| -> u64 {
        let events: Vec<Value> = (0..launches)
            .map(|at| event("kernel", "gemm", json!(at as f64 * 3.5), json!(1.25)))
            .collect();
        let (run, out) = (run_of(&events), tempfile::tempdir().unwrap());
        let script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); \
                      print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
        let measured = Command::new(python())
            .args(["-c", script, env!("CARGO_BIN_EXE_tracemend")])
            .args(["analyze", "-q", "--reporter", "builtin"])
            .arg(run.path())
            .arg("-o")
            .arg(out.path())
            .output()
            .unwrap();
        assert!(measured.status.success(), "{}", measured.errors());
        assert_eq!(table(&out.path().join("kernels.csv"))[0]["count"], launches.to_string());
        measured.text().trim().parse().unwrap()
    };
    // The first of them fills the buffers.
    let (small, large) = (peak_kib(100_000), peak_kib(800_000));
    assert!(large < small + (4 << 10), "{small} KiB, then {large} KiB");
}
