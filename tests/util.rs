//! What the tests share: the binary with a cache of its own, fixtures, answers.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use serde_json::Value;

/// The binary, with a cache that all tests share and nothing of the caller's set-up.
pub fn tracemend() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracemend"));
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    command.env(
        "XDG_CONFIG_HOME",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-config"),
    );
    for variable in ["TRACELENS_VENV", "TRACEMEND_CONFIG", "TRACEMEND_CLUSTER"] {
        command.env_remove(variable);
    }
    command
}

/// A file or folder of fixtures/.
pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

/// A component of tests/guests.
pub fn guest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/guests/built")
        .join(format!("{name}.wasm"))
}

/// The interpreter of the environment that has the stand-in for TraceLens.
pub fn python() -> PathBuf {
    let by_place = || {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .unwrap()
            .join("tracelens-venv/bin/python")
    };
    let python = std::env::var_os("TRACEMEND_TEST_PYTHON").map_or_else(by_place, PathBuf::from);
    assert!(
        python.exists(),
        "{} is not there: run `cargo xtask setup` first",
        python.display()
    );
    python
}

/// A Python environment in `folder` that holds nothing, TraceLens least of all.
pub fn bare_environment(folder: &Path) -> PathBuf {
    let bare = folder.join("bare");
    let made = std::process::Command::new(python())
        .args(["-m", "venv", "--without-pip"])
        .arg(&bare)
        .status()
        .unwrap();
    assert!(made.success());
    bare
}

/// The built-in plugins, by name.
pub const BUILT_IN: [&str; 7] = [
    "capture-manifest",
    "kineto-content",
    "producers",
    "rank-in-name",
    "by-elimination",
    "dyno-cli",
    "dynolog-rpc",
];

/// A folder of real traces that lies beside a checkout; none where it does not, which the test then says.
pub fn real_traces() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/traces");
    if !folder.is_dir() {
        eprintln!("skipped: no real traces at {}", folder.display());
        return None;
    }
    Some(folder)
}

/// A copy of a folder of fixtures that the test may change.
pub fn copy_of(path: &str) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                std::fs::create_dir(&target).unwrap();
                copy(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture(path), folder.path());
    folder
}

/// Writes a Kineto trace of one kernel, with `distributed_info` as the text of its member, if any.
pub fn write_trace(path: impl AsRef<Path>, distributed_info: Option<&str>) {
    let info = distributed_info
        .map(|info| format!(r#""distributedInfo": {info},"#))
        .unwrap_or_default();
    let trace = format!(
        r#"{{"schemaVersion": 1, {info} "traceEvents": [{{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2.5}}]}}"#
    );
    std::fs::create_dir_all(path.as_ref().parent().unwrap()).unwrap();
    std::fs::write(path, trace).unwrap();
}

/// Perfetto packets, as much as it takes to be known for a Perfetto trace; `text` stands in one of them.
pub fn perfetto_trace(text: &str) -> Vec<u8> {
    let packet = |body: Vec<u8>| [vec![0x0a, body.len() as u8], body].concat();
    let named = [vec![0x7a, text.len() as u8], text.as_bytes().to_vec()].concat();
    [packet(vec![0x08, 1, 0x10, 2]), packet(named)].concat()
}

/// A JAX profile (an XSpace) with planes for the host and, if wanted, a GPU.
pub fn xplane(gpu: bool) -> Vec<u8> {
    let plane = |id: u8, name: &str| {
        let body = [
            &[0x08, id, 0x12, name.len() as u8],
            name.as_bytes(),
            &[0x1a, 3, 0x08, 1, 0],
        ]
        .concat();
        [vec![0x0a, body.len() as u8], body].concat()
    };
    let last = plane(2, if gpu { "/device:GPU:0" } else { "Task Environment" });
    [plane(1, "/host:metadata"), plane(3, "/host:CPU"), last].concat()
}

/// `analyze --json` of `run` by the stand-in for TraceLens.
pub fn with_tracelens(run: &Path, out: &Path) -> Command {
    with_python(run, out, &python())
}

/// `analyze --json` of `run` by the TraceLens of the interpreter `python`.
pub fn with_python(run: &Path, out: &Path, python: &Path) -> Command {
    let mut command = tracemend();
    command.args(["analyze", "--json"]).arg(run).arg("-o").arg(out);
    command.arg("--python").arg(python);
    command
}

/// A run of one clean trace, `a.json`.
pub fn one_trace() -> tempfile::TempDir {
    let run = tempfile::tempdir().unwrap();
    std::fs::copy(
        fixture("run/train/libkineto_trace_48209.json"),
        run.path().join("a.json"),
    )
    .unwrap();
    run
}

/// The record of the reports in `out`.
pub fn record(out: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(out.join("tracemend_record.json")).unwrap()).unwrap()
}

/// Starts an analysis whose every report takes a second longer, one after the other, in a process group of its own.
pub fn start_slow_analysis(run: &Path, out: &Path, scratch: &Path) -> std::process::Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_tracemend"))
        .args(["analyze", "--jobs", "1"])
        .arg(run)
        .arg("-o")
        .arg(out)
        .arg("--python")
        .arg(python())
        .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
        .env("TMPDIR", scratch)
        .env("TRACELENS_STAND_IN_SLEEP", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Waits until something is `met`, at most a minute.
pub fn wait_until(what: &str, mut met: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !met() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub trait Answer {
    fn text(&self) -> String;
    fn errors(&self) -> String;
    fn json(&self) -> Value;
    fn json_lines(&self) -> Vec<Value>;
    /// Exactly one line on standard error, free of control characters.
    fn one_error(&self) -> String;
    fn code(&self) -> i32;
}

impl Answer for Output {
    fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    fn errors(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}{}", self.text(), self.errors()))
    }

    fn json_lines(&self) -> Vec<Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn one_error(&self) -> String {
        let errors = self.errors();
        let lines: Vec<&str> = errors.lines().collect();
        assert_eq!(lines.len(), 1, "{errors}");
        assert!(!lines[0].contains(char::is_control), "{:?}", lines[0]);
        assert!(lines[0].starts_with("tracemend: "), "{errors}");
        lines[0].to_owned()
    }

    fn code(&self) -> i32 {
        self.status.code().expect("ended by a signal")
    }
}
