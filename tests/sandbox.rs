//! What a plugin gets of the machine, and what it gets for reaching further.

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
