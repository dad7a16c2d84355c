//! What a plugin gets of the machine, and what it gets for reaching further.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracemend::plugins::{Cache, Kind, Limits, NoContents, PluginHost, Reason, Trace, from_file};

use crate::util::{Answer, guest, tracemend, write_trace};

/// What `plugin` does about a run of one trace whose name holds `word`: its own answer, as `ranks --explain` shows it, what was
/// said on standard error, and the exit code.
fn asked(plugin: &str, word: &str, options: &[&str]) -> (String, String, i32) {
    let run = tempfile::tempdir().unwrap();
    let name = format!("{word}.json");
    write_trace(run.path().join(&name), None);
    let output = tracemend()
        .env("SECRET_TOKEN", "hunter2")
        .args(["ranks", "--explain", &name])
        .args(options)
        .arg(run.path())
        .arg("--plugin")
        .arg(guest(plugin))
        .write_stdin("secret input")
        .output()
        .unwrap();
    let text = output.text();
    let told = text.lines().find_map(|line| line.trim().strip_prefix(plugin));
    (
        told.unwrap_or_default().trim().to_owned(),
        output.errors(),
        output.code(),
    )
}

#[test]
fn a_wasi_guest_sees_nothing_of_the_machine_and_the_same_in_every_run() {
    let (told, errors, code) = asked("wasi-user", "look", &[]);
    assert_eq!((errors.as_str(), code), ("", 0));
    for seen in [
        "variables []",
        "arguments []",
        "folder None",
        "folders 0",
        "access-denied",
        "permanent-resolver-failure",
        "input Err(\"closed\")",
        "clocks 0 0",
    ] {
        assert!(told.contains(seen), "{seen}: {told}");
    }
    assert_eq!(asked("wasi-user", "look", &[]).0, told, "random numbers included");
}

#[test]
fn what_a_guest_writes_becomes_log_lines_that_steer_no_terminal() {
    let (told, errors, code) = asked("wasi-user", "print", &[]);
    assert!(told.contains("may write true"), "{told}");
    assert_eq!((errors.as_str(), code), ("tracemend: plugin wasi-user: a warning\n", 0));
    let (_, errors, _) = asked("wasi-user", "print", &["--verbose"]);
    let lines: Vec<&str> = errors.lines().collect();
    let ours = ["first", "a warning", "second \\u{1b}[2J"].map(|line| format!("tracemend: plugin wasi-user: {line}"));
    assert!(ours.iter().all(|line| lines.contains(&line.as_str())), "{errors}");

    let (told, errors, code) = asked("wasi-user", "chatter", &[]);
    assert!(told.contains("hoarse") && code == 0, "a flood is no failure: {told}");
    assert_eq!(errors.lines().count(), 101);
    assert!(errors.lines().all(|line| line.len() < 2100));
    assert!(errors.ends_with("9900 more messages are left out\n"), "{errors}");
}

#[test]
fn sleep_costs_no_time_and_has_the_limit_of_running() {
    let (told, _, code) = asked("wasi-user", "nap", &[]);
    assert!(told.contains("timer [1] after 250 ms") && code == 0, "{told}");
    for (word, slept) in [("sleep", "60s"), ("doze", "6s")] {
        let (_, errors, code) = asked("wasi-user", word, &[]);
        let expected = format!(
            "label-all: stopped, since it slept for {slept} where it may run for 5s (--plugin-timeout, or call-seconds in"
        );
        assert!(errors.contains(&expected) && code == 1, "{errors}");
    }
    let (told, errors, code) = asked("wasi-user", "sleep", &["--plugin-timeout", "61"]);
    assert!(told.contains("awake") && code == 0, "{told}{errors}");
}

#[test]
fn what_ends_a_wasi_guest_is_told_in_words() {
    for (word, why) in [
        ("wait", "it waits for something that can never come"),
        ("exit", "it ended itself with exit code 1 instead of answering"),
        ("random", "requested len 1099511627776 exceeds limit 1048576"),
        ("panic", "panicked at src/lib.rs:1:2: no such rank;"),
    ] {
        let (_, errors, code) = asked("wasi-user", word, &[]);
        assert!(errors.contains(why) && code == 1, "{word}: {errors}");
    }
}

#[test]
fn the_hosts_own_time_for_a_plugin_has_a_limit_too() {
    let site = tempfile::tempdir().unwrap();
    write_trace(site.path().join("run/reader.json"), None);
    std::fs::write(
        site.path().join("tracemend.toml"),
        "[limits]\nhost-seconds = 0.05\ncall-seconds = 60\n",
    )
    .unwrap();
    let output = tracemend()
        .current_dir(&site)
        .args(["ranks", "run", "--plugin"])
        .arg(guest("hostile"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 1);
    let error = output.one_error();
    assert!(
        error.contains(
            "stopped after the host had spent 50ms reading traces for it (host-seconds in [limits] of tracemend.toml"
        ),
        "{error}"
    );
}

#[test]
fn all_calls_of_a_run_together_have_a_limit() {
    let limits = Limits {
        time: Duration::from_millis(50),
        run_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let cache = Cache::in_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/tracemend/components"));
    let host = PluginHost::new(cache, limits, Box::new(|_, _, _| {})).unwrap();
    let plugin = from_file(&host, &guest("hostile"), None).unwrap();
    let trace = Trace {
        path: "spin.json".into(),
        kind: Kind::Kineto,
        size: 1,
        gpu_events: None,
    };
    let reasons: Vec<Reason> = (0..3)
        .map(|_| {
            host.label(&plugin, std::slice::from_ref(&trace), &[], Arc::new(NoContents))
                .unwrap_err()
                .reason
        })
        .collect();
    assert_eq!(reasons[0], Reason::Time(Duration::from_millis(50)));
    assert_eq!(reasons[2], Reason::RunTime(Duration::from_millis(100)));
    assert_eq!(
        reasons[2].to_string(),
        "stopped after 100ms of its own running time in all its calls (run-seconds in [limits] of tracemend.toml raises the limit)"
    );
}

#[test]
fn what_is_no_plugin_for_this_host_is_refused_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    // A core module whose only section is a memory of one page, shared between threads (flag 3).
    let threads = folder.path().join("threads.wasm");
    std::fs::write(&threads, b"\0asm\x01\0\0\0\x05\x04\x01\x03\x01\x01").unwrap();
    for (file, why) in [
        (threads, "it uses threads (a shared memory), and a plugin runs on one"),
        (
            guest("wants-http"),
            "it imports wasi:http/types@0.2.0, which no plugin gets",
        ),
        (
            guest("imposter"),
            "its name is \"\\u{1b}[2Jkineto-content\"; a name has 1 to 64 lower-case letters",
        ),
        (
            guest("tomorrow"),
            "it was built for version 0.2.0 of the plugin contract, this tracemend has 0.1.0",
        ),
        (
            guest("soon-needed"),
            "it was built for version 0.1.9 of the plugin contract and needs what this tracemend, with 0.1.0, has not yet",
        ),
    ] {
        let output = tracemend().args(["plugin", "inspect"]).arg(&file).output().unwrap();
        assert_eq!(output.code(), 1, "{}: {}", file.display(), output.text());
        assert!(
            output.one_error().contains(why),
            "{}: {}",
            file.display(),
            output.errors()
        );
    }
    let (told, errors, code) = asked("soon", "any", &[]);
    assert_eq!((errors.as_str(), code), ("", 0));
    assert!(
        told.contains("nothing new"),
        "a later version of the track, of which nothing new is used: {told}"
    );
}

#[test]
fn many_processes_may_fill_and_empty_one_cache_at_once() {
    let home = tempfile::tempdir().unwrap();
    let components = home.path().join("tracemend/components");
    let list = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tracemend"));
        command
            .args(["plugin", "list", "--json"])
            .env("XDG_CACHE_HOME", home.path());
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let started: Vec<_> = (0..12).map(|_| list()).collect();
    // While they run: the folder goes, and what they have written is damaged.
    for round in 0..20 {
        if round % 5 == 0 {
            let _ = std::fs::remove_dir_all(&components);
        }
        for entry in std::fs::read_dir(&components).into_iter().flatten().flatten() {
            let file = std::fs::OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(entry.path());
            let _ = file.map(|mut file| file.write_all(b"not native code"));
        }
    }
    for process in started {
        let output = process.wait_with_output().unwrap();
        assert_eq!((output.code(), output.errors().as_str()), (0, ""));
        assert_eq!(output.json()["plugins"].as_array().unwrap().len(), 5);
    }
    assert_eq!(list().wait_with_output().unwrap().code(), 0);
    let private = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o077 == 0;
    assert!(private(&components), "the cache is its owner's alone");
    let left: Vec<_> = std::fs::read_dir(&components)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left.len(), 5, "one file a plugin, and no partial one: {left:?}");
    assert!(left.iter().all(|file| private(file)));
}
