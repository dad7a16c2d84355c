//! `tracemend doctor`, `tracemend completions`.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::util::{Answer, bare_environment, fixture, guest, python, tracemend};

fn doctor() -> assert_cmd::Command {
    let mut command = tracemend();
    command
        .args(["doctor", "--json"])
        .env("PATH", "/usr/bin:/bin")
        .env_remove("DYNOLOG_PORT")
        // Nothing listens on the port of a listener that is gone.
        .args(["--port", &unused_port().to_string()]);
    command
}

fn unused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["name"] == name)
        .unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

#[test]
fn all_is_well_with_the_stand_in() {
    let output = doctor()
        .arg("--python")
        .arg(python())
        .arg("--traceconv")
        .arg(fixture("tracelens/traceconv"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    let document = output.json();
    assert_eq!(document["bad"], 0);
    for name in [
        "scratch",
        "interpreter",
        "tracelens",
        "orjson",
        "openpyxl",
        "generators",
        "plugins",
        "cache",
    ] {
        assert_eq!(check(&document, name)["status"], "ok", "{document:#}");
    }
    assert!(
        check(&document, "tracelens")["found"]
            .as_str()
            .unwrap()
            .contains("stand-in 0.1.0")
    );
    assert_eq!(
        check(&document, "traceconv")["status"],
        "note",
        "a script fetches the program itself"
    );
    for name in ["dyno", "dynolog"] {
        let check = check(&document, name);
        assert!(
            check["status"] == "note" && check["advice"].as_str().unwrap().contains("tracemend capture"),
            "{check}"
        );
    }
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let places = tempfile::tempdir().unwrap();
    let bare = bare_environment(places.path());
    // TraceLens is there, and what it imports is not.
    let packages = places.path().join("packages/TraceLens");
    fs::create_dir_all(&packages).unwrap();
    fs::write(packages.join("__init__.py"), "import pandas_that_is_not_there").unwrap();
    let half = |command: &mut assert_cmd::Command| {
        command
            .arg("--python")
            .arg(bare.join("bin/python"))
            .arg("--keep-pythonpath")
            .env("PYTHONPATH", places.path().join("packages"));
    };
    type Change<'a> = &'a dyn Fn(&mut assert_cmd::Command);
    let cases: [(Change, &str, &str); 8] = [
        (
            &|command| {
                command.args(["--python", "/nowhere/python"]);
            },
            "interpreter",
            "no interpreter at /nowhere/python",
        ),
        (
            &|command| {
                command.arg("--python").arg(bare.join("bin/python"));
            },
            "interpreter",
            "TraceLens is not installed",
        ),
        (&half, "tracelens", "pandas_that_is_not_there"),
        (&half, "orjson", "No module named 'orjson'"),
        (
            &|command| {
                command.args(["--traceconv", "/nowhere/traceconv"]);
            },
            "traceconv",
            "no program at",
        ),
        (
            &|command| {
                command.env("TMPDIR", "/nowhere");
            },
            "scratch",
            "cannot write to /nowhere",
        ),
        (
            &|command| {
                command.arg("--plugin").arg(fixture("names/names.tsv"));
            },
            "plugins",
            "names.tsv",
        ),
        (
            &|command| {
                command.arg("--plugin").arg("/nowhere/x.wasm");
            },
            "plugins",
            "/nowhere/x.wasm",
        ),
    ];
    for (change, name, why) in cases {
        let mut command = doctor();
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.code(), 1, "{name}, {why}: {}", output.text());
        let document = output.json();
        let checks = document["checks"].as_array().unwrap();
        let bad: Vec<&Value> = checks.iter().filter(|check| check["status"] == "bad").collect();
        let told = bad
            .iter()
            .any(|check| check["name"] == name && check["found"].as_str().unwrap().contains(why));
        assert!(
            told && document["bad"] == json!(bad.len()),
            "{name}, {why}: {document:#}"
        );
        assert!(bad.iter().all(|check| !check["advice"].as_str().unwrap().is_empty()));
    }
    let output = doctor().env("DYNOLOG_PORT", "abc").output().unwrap();
    assert_eq!(output.code(), 0, "--port counts more");
    let output = tracemend()
        .args(["doctor", "--json"])
        .env("DYNOLOG_PORT", "abc")
        .output()
        .unwrap();
    assert_eq!(output.code(), 1);
    assert!(
        check(&output.json(), "dynolog")["found"]
            .as_str()
            .unwrap()
            .contains("\"abc\", which is no port")
    );
}

#[test]
fn a_note_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cache"), "a file").unwrap();
    let output = doctor()
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let document = output.json();
    assert_eq!(check(&document, "cache")["status"], "note");
    assert!(
        check(&document, "tracelens")["found"]
            .as_str()
            .unwrap()
            .contains("embedded reporter")
    );
    let output = doctor()
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOME")
        .output()
        .unwrap();
    assert!(
        check(&output.json(), "cache")["found"]
            .as_str()
            .unwrap()
            .starts_with("none")
    );
}

#[test]
fn text_has_a_line_a_check_and_no_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let evil = folder.path().join("py\u{1b}[31mthon");
    fs::write(&evil, "#!/bin/sh\nprintf '\\033[2Jno'\n").unwrap();
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    let output = tracemend().arg("doctor").arg("--python").arg(&evil).output().unwrap();
    assert_eq!(output.code(), 1);
    let text = output.text();
    assert!(!text.contains('\u{1b}') && text.contains("BAD   interpreter"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("ok    plugins")), "{text}");
    let quiet = tracemend().args(["-q", "doctor"]).output().unwrap().text();
    assert!(!quiet.lines().any(|line| line.starts_with("ok")), "{quiet}");
}

#[test]
fn a_plugin_from_outside_is_looked_at_too() {
    let output = doctor().arg("--plugin").arg(guest("gpu-slot")).output().unwrap();
    assert_eq!(output.code(), 0, "{}", output.text());
}

#[test]
fn completions_are_written_for_each_shell() {
    for (shell, part) in [
        ("bash", "complete -F _tracemend"),
        ("zsh", "#compdef tracemend"),
        ("fish", "complete -c tracemend"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let output = tracemend().args(["completions", shell]).output().unwrap();
        assert_eq!(output.code(), 0);
        assert!(output.text().contains(part), "{shell}");
    }
    let output = tracemend().args(["completions", "csh"]).output().unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.errors().contains("invalid value 'csh'"));
}
