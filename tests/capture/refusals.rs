//! What is refused before anything is asked.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::world::*;
use crate::util::{Answer, tracemend};

#[test]
fn nonsense_is_refused_before_anything_is_asked() {
    for (variable, value, word) in [
        (
            "TORCH_PROFILE_MAX_ATTEMPTS",
            "abc",
            "TORCH_PROFILE_MAX_ATTEMPTS cannot be \"abc\"",
        ),
        (
            "TORCH_PROFILE_ITERATIONS",
            "five",
            "TORCH_PROFILE_ITERATIONS cannot be \"five\"",
        ),
        ("TORCH_PROFILE_WITH_STACKS", "yes", "0 or 1 is wanted"),
        ("TORCH_PROFILE_PROCESS_LIMIT", "0", "from 1 to"),
        ("TORCH_PROFILE_LOG_FILE", "a\"b.json", "pastes it unescaped"),
        ("TORCH_PROFILE_LOG_FILE", "x.json.gz", "must end in .json"),
        (
            "TORCH_PROFILE_KINETO_DIR",
            "/var/tmp/x",
            "Kineto only writes below /tmp",
        ),
        ("TORCH_PROFILE_JOB_ID", "123_4", "no job id"),
        ("SLURM_JOB_ID", "123_4", "SLURM_JOB_ID"),
        ("DYNOLOG_PORT", "http", "DYNOLOG_PORT cannot be \"http\""),
        ("TORCH_PROFILE_PROFILE_MEMORY", "1", "by time only"),
        (
            "TORCH_PROFILE_STABLE_S",
            "soon",
            "TORCH_PROFILE_STABLE_S cannot be \"soon\"",
        ),
        ("TORCH_PROFILE_DURATION_MS", "0", "a whole number from 1"),
    ] {
        let world = World::new();
        let output = world
            .capture("trigger")
            .args(["--via", "rpc"])
            .env(variable, value)
            .output()
            .unwrap();
        assert_eq!(output.code(), 2, "{variable}={value}");
        assert!(output.one_error().contains(word), "{}", output.errors());
    }
    let world = World::new();
    let missing = tracemend()
        .args(["capture", "trigger", "--dyno", "/nowhere/dyno", "-o"])
        .arg(world.path("out"))
        .output()
        .unwrap();
    assert_eq!(missing.code(), 2);
    assert!(
        missing.one_error().contains("--via rpc asks the daemon without it"),
        "{}",
        missing.errors()
    );
}

#[test]
fn log_paths_that_would_go_astray_are_refused_before_dyno_is_looked_for() {
    let world = World::new();
    for (name, word) in [
        (&b"a\"b.json"[..], "holds '\"'"),
        (b"x.json\", \"config\": \"PWNED=1", "holds '\"'"),
        (b"a\\b.json", "holds '\\\\'"),
        (b"a\\u0041.json", "holds '\\\\'"),
        (b"a\nPROFILE_START_TIME=0.json", "holds '\\n'"),
        (b"a\tb.json", "holds '\\t'"),
        (b"a#b.json", "holds '#'"),
        (b"a=b.json", "holds '='"),
        (b"a b.json", "holds ' '"),
        ("spur-\u{e9}.json".as_bytes(), "holds '\u{e9}'"),
        (b"spur-\xff.json", "invalid UTF-8"),
        (b"a..b.json", "\"..\""),
        (b"../a.json", "bare name"),
        (b"/tmp/a.json", "bare name"),
        (b"x.out", "must end in .json"),
        (b"x.json.gz", "must end in .json"),
        (b"x.json.json", "more than once"),
        (b"x.JSON", "must end in .json"),
    ] {
        let mut command = world.capture("trigger");
        command
            .args(["--dyno", "/nowhere/dyno", "--log-file"])
            .arg(OsStr::from_bytes(name));
        let output = command.output().unwrap();
        assert_eq!(output.code(), 2, "{name:?}");
        assert!(output.errors().contains(word), "{name:?}: {}", output.errors());
        assert!(!output.errors().contains("/nowhere/dyno"), "{}", output.errors());
    }
    for (pids, word) in [
        ("abc", "no process id"),
        ("\"4101\"", "no process id"),
        ("4101.9", "no process id"),
        ("", "no process id"),
    ] {
        for option in ["--pids", "--job-id"] {
            let output = world.trigger("rpc").args([option, pids]).output().unwrap();
            let word = if option == "--pids" { word } else { "no job id" };
            assert_eq!(output.code(), 2, "{option} {pids}");
            assert!(output.one_error().contains(word), "{}", output.errors());
        }
    }
    for (option, value) in [
        ("--pids", "4294971397"),
        ("--pids", "0,4101"),
        ("--pids", "-5"),
        ("--job-id", "4294967373"),
        ("--warmup", "-1"),
        ("--retry-interval", "1e99"),
        ("--at-most", "NaN"),
        ("--expect", "0"),
    ] {
        let output = world.trigger("rpc").arg(format!("{option}={value}")).output().unwrap();
        assert_eq!(output.code(), 2, "{option} {value}");
    }
    assert_eq!(world.requests().len(), 0);
}
