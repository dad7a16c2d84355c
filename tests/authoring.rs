//! What the author of a plugin meets: a folder to start from, a build, a check.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::util::{Answer, BUILT_IN, fixture, guest, tracemend};

fn check(arguments: &[&str]) -> std::process::Output {
    tracemend().args(["plugin", "check"]).args(arguments).output().unwrap()
}

#[test]
fn every_built_in_plugin_passes_what_it_asks_of_others() {
    for name in BUILT_IN {
        let output = check(&[name, "--json"]);
        let report = output.json();
        assert_eq!((output.code(), &report["passed"]), (0, &json!(true)), "{report}");
        assert_eq!(report["conformance"].as_array().unwrap().len(), 7);
        assert_eq!(report["cases"], Value::Null);
    }
}

#[test]
fn recorded_calls_are_cases_as_they_stand() {
    let calls = fixture("dyno/calls.jsonl");
    let output = check(&["dyno-cli", "--cases", calls.to_str().unwrap()]);
    assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
    assert!(
        output.text().contains("232 of 232 cases as expected in "),
        "{}",
        output.text()
    );

    // The same calls with one verdict that is not so.
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.jsonl");
    let text = fs::read_to_string(&calls).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let changed = first.replace(r#""verdict": "accepted""#, r#""verdict": "busy""#);
    assert_ne!(first, changed);
    fs::write(&wrong, format!("{changed}\n\n{rest}")).unwrap();
    let output = check(&["dyno-cli", "--json", "--cases", wrong.to_str().unwrap()]);
    assert_eq!(output.code(), 1);
    let report = output.json();
    let differences = report["cases"]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{report}");
    assert_eq!(
        (&differences[0]["line"], &differences[0]["expected"]),
        (&json!(1), &json!("busy, matched [4101], triggered [4101], busy 0"))
    );
    assert!(
        differences[0]["got"]
            .as_str()
            .unwrap()
            .starts_with("accepted, matched [4101]")
    );
    assert_eq!(
        (&report["cases"]["total"], &report["passed"]),
        (&json!(232), &json!(false))
    );
}

#[test]
fn each_difference_shows_what_was_expected_and_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.tsv");
    fs::write(
        &cases,
        "name\trole\trank\tnode\ngpu2@n03.json\ttrace\t14\tn03\ngpu2@n03.json\ttrace\t9\nlogin.json\ttrace\t\n\
         gpu1@n00.json\tmerged\t\ngpu1@\u{1b}[2J.json\ttrace\t5\n",
    )
    .unwrap();
    let gpu_slot = guest("gpu-slot");
    let arguments = [gpu_slot.to_str().unwrap(), "--cases", cases.to_str().unwrap()];
    let output = check(&arguments);
    assert_eq!(output.code(), 1, "{}", output.errors());
    let text = output.text();
    for line in [
        "2 of 5 cases as expected in ",
        "  line 3: gpu2@n03.json\n    expected  rank 9\n    got       rank 14 on n03 (slot 2 of n03)\n",
        "  line 5: gpu1@n00.json\n    expected  no rank (merged)\n    got       rank 1 on n00 (slot 1 of n00)\n",
        "  line 6: gpu1@\\u{1b}[2J.json\n    expected  rank 5\n    got       ",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    assert!(!text.contains('\u{1b}'));

    // Settings are the site's; with eight GPUs a node the first row is wrong too.
    let output = tracemend()
        .args(["plugin", "check", "--json", "--set", "gpus-per-node=8"])
        .args(arguments)
        .output()
        .unwrap();
    let report = output.json();
    assert_eq!(
        report["cases"]["differences"][0]["got"],
        "rank 26 on n03 (slot 2 of n03)"
    );
}

#[test]
fn a_plugin_that_traps_or_exceeds_a_limit_does_not_pass() {
    let hostile = guest("hostile");
    let hostile = hostile.to_str().unwrap();
    let output = check(&[hostile, "--plugin-memory", "2"]);
    assert_eq!(output.code(), 1, "{}", output.text());
    let text = output.text();
    assert!(
        text.contains("FAILED  10,000 traces, within the limits: given 10000 traces: label-all: stopped when it wanted more than 2 MiB"),
        "{text}"
    );
    assert!(text.contains("passed  empty list"), "{text}");

    // A list that was lost is lost for each of its cases, and each says why.
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.tsv");
    fs::write(&cases, "name\trole\trank\npanic.json\ttrace\t\nother.json\ttrace\t\n").unwrap();
    let output = check(&[hostile, "--json", "--cases", cases.to_str().unwrap()]);
    assert_eq!(output.code(), 1);
    let report = output.json();
    let differences = report["cases"]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 2, "{report}");
    assert!(
        differences[1]["got"].as_str().unwrap().starts_with("panicked at"),
        "{report}"
    );
}

#[test]
fn what_cannot_be_checked_is_said_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (no_table, no_calls) = (file("table", "a,b\n1,2\n"), file("calls", "{\"name\": 1}\n"));
    let no_verdict = file(
        "verdict",
        r#"{"name":"a","exit":0,"stdout":"","stderr":"","expected":{"verdict":"maybe"}}"#,
    );
    let nothing_expected = file("nothing", r#"{"name":"a","exit":0,"stdout":"","stderr":""}"#);
    let text = file("text.wasm", "#!/bin/sh\n");
    let tomorrow = guest("tomorrow");
    for (arguments, code, why) in [
        (vec!["no-such-plugin"], 2, "cannot read no-such-plugin"),
        (vec![text.as_str()], 1, "it is not WebAssembly"),
        (
            vec![tomorrow.to_str().unwrap()],
            1,
            "it was built for version 0.2.0 of the plugin contract",
        ),
        (
            vec!["producers", "--cases", "/nowhere.tsv"],
            2,
            "cannot read /nowhere.tsv: No such file",
        ),
        (vec!["producers", "--cases", &no_table], 2, "line 1: no column \"name\""),
        (vec!["dyno-cli", "--cases", &no_calls], 2, "line 1: invalid type"),
        (
            vec!["dyno-cli", "--cases", &no_verdict],
            2,
            "line 1: there is no verdict \"maybe\"",
        ),
        (
            vec!["dyno-cli", "--cases", &nothing_expected],
            2,
            "line 1: no \"expected\"",
        ),
        (
            vec!["rank-in-name", "--set", "a=b"],
            2,
            "--set a: rank-in-name has no settings",
        ),
        (
            vec!["producers", "--set", "size=1"],
            2,
            "--set size: producers has only sizes",
        ),
    ] {
        let output = check(&arguments);
        assert_eq!(output.code(), code, "{arguments:?}: {}", output.errors());
        assert!(output.one_error().contains(why), "{arguments:?}: {}", output.errors());
    }
}

#[path = "../examples/embed.rs"]
mod embed;

#[test]
fn the_library_labels_a_list_and_mends_a_stream() {
    let labels = embed::label(&guest("gpu-slot"), &["gpu2@n03.json", "login.json"]).unwrap();
    assert!(matches!(&labels[0], tracemend::plugins::Label::Rank(claim) if claim.rank == 14));
    assert!(matches!(&labels[1], tracemend::plugins::Label::Unknown(_)));
    assert!(embed::label(&fixture("names/names.tsv"), &[]).is_err());

    let mut mended = Vec::new();
    let damaged = std::io::Cursor::new(b"{\"traceEvents\":[{\"name\":\"a\xffb\"}]}".to_vec());
    assert_eq!(embed::mend_stream(damaged, &mut mended).unwrap(), 1);
    assert_eq!(mended, "{\"traceEvents\":[{\"name\":\"a\u{fffd}b\"}]}".as_bytes());
    let mut nothing = Vec::new();
    assert!(embed::mend_stream(std::io::Cursor::new(Vec::new()), &mut nothing).is_err());
    assert!(nothing.is_empty());
}

/// The binary as an author runs it, in `folder`, with the tools that `cargo xtask setup` fetched.
fn author(folder: &Path) -> assert_cmd::Command {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let tools = target.parent().unwrap().join("authoring-tools");
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    for bin in ["python/bin", "js/node_modules/.bin"] {
        path.push(":");
        path.push(tools.join(bin));
    }
    let mut command = tracemend();
    command.current_dir(folder).env("PATH", path);
    // The standard library that cargo may have to build for it is kept between runs.
    command.env("CARGO_TARGET_DIR", target.join("authoring-rust"));
    command
}

/// new, then build and check what it made, then the same with the worked example in place of the template's source. Where the tool of
/// the language is missing, that is said, and is a failure if `cargo xtask setup` found or fetched it.
fn the_ten_minutes(lang: &str, source: &str, worlds: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for &world in worlds {
        let name = format!("my-{world}");
        let output = author(folder.path())
            .args(["plugin", "new", &name, "--world", world, "--lang", lang])
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        if !build_and_check(folder.path(), lang, &name, None) {
            return;
        }
    }
    let output = author(folder.path())
        .args(["plugin", "new", "gpu-nodes", "--world", "trace-naming", "--lang", lang])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/examples");
    let file = Path::new(source).file_name().unwrap();
    fs::copy(
        examples.join(lang).join(file),
        folder.path().join("gpu-nodes").join(source),
    )
    .unwrap();
    build_and_check(folder.path(), lang, "gpu-nodes", Some(&examples.join("cases.tsv")));
}

fn build_and_check(folder: &Path, lang: &str, name: &str, cases: Option<&Path>) -> bool {
    let output = author(folder)
        .args(["plugin", "build", "--json", name])
        .output()
        .unwrap();
    if output.code() == 2 && output.errors().starts_with("tracemend: no ") {
        let expected = std::env::var("TRACEMEND_TEST_LANGUAGES").unwrap_or_default();
        assert!(
            !expected.split(',').any(|expected| expected == lang),
            "{}",
            output.errors()
        );
        eprintln!("SKIPPED {lang}: {}", output.errors());
        return false;
    }
    assert_eq!(output.code(), 0, "{lang}: {}", output.errors());
    let built = output.json();
    let file = folder.join(name).join(format!("{name}.wasm"));
    assert_eq!(
        (&built["name"], &built["size"]),
        (&json!(name), &json!(fs::metadata(&file).unwrap().len()))
    );
    for import in built["imports"].as_array().unwrap() {
        assert!(
            import.as_str().unwrap().starts_with("tracemend:plugin/"),
            "{lang}: {built}"
        );
    }
    eprintln!(
        "{lang} {name}: {} bytes, built in {} s, loaded in {} s",
        built["size"], built["build_seconds"], built["load_seconds"]
    );
    let cases = cases.map_or_else(
        || {
            let cases = ["cases.tsv", "cases.jsonl"].map(|cases| folder.join(name).join(cases));
            cases.into_iter().find(|cases| cases.is_file()).unwrap()
        },
        Path::to_owned,
    );
    let mut check = author(folder);
    check
        .args(["plugin", "check", "--json"])
        .arg(&file)
        .arg("--cases")
        .arg(&cases);
    // Python in an interpreter in WebAssembly, beside other tests.
    check.args(["--plugin-timeout", "60"]);
    if name == "gpu-nodes" {
        check.args(["--set", "nodes=n07,n03,login-2"]);
    }
    let output = check.output().unwrap();
    assert_eq!(output.code(), 0, "{lang} {name}: {}{}", output.text(), output.errors());
    let report = output.json();
    assert!(report["cases"]["total"].as_u64().unwrap() >= 8);
    true
}

const BOTH: [&str; 2] = ["trace-naming", "dyno-interpreter"];

#[test]
fn ten_minutes_in_rust() {
    the_ten_minutes("rust", "src/lib.rs", &BOTH);
}

#[test]
fn ten_minutes_in_python() {
    the_ten_minutes("python", "plugin.py", &["dyno-interpreter"]);
}

#[test]
fn ten_minutes_in_js() {
    the_ten_minutes("js", "plugin.js", &BOTH);
}

#[test]
fn ten_minutes_in_c() {
    the_ten_minutes("c", "plugin.c", &BOTH);
}

#[test]
fn a_new_folder_never_takes_the_place_of_an_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let new = |name: &str| {
        author(folder.path())
            .args(["plugin", "new", name, "--world", "trace-naming", "--lang", "c", "-q"])
            .output()
            .unwrap()
    };
    let output = new("gpu-nodes");
    assert_eq!((output.code(), output.text().as_str()), (0, ""));
    let readme = folder.path().join("gpu-nodes/README.md");
    assert!(fs::read_to_string(&readme).unwrap().lines().count() < 50, "one screen");
    fs::write(&readme, "mine").unwrap();
    let output = new("gpu-nodes");
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("is there already: nothing was changed"));
    assert_eq!(fs::read_to_string(&readme).unwrap(), "mine");

    fs::write(folder.path().join("taken"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
    for (name, why) in [
        ("taken", "is there already"),
        ("dangling", "is there already"),
        ("../up", "letters, digits and dashes"),
        ("Gpu", "lower-case letters"),
        ("fn", "taken in Rust"),
        ("producers", "a built-in plugin is called so"),
    ] {
        let output = new(name);
        assert_eq!(output.code(), 2, "{name}");
        assert!(output.one_error().contains(why), "{}", output.errors());
    }
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["dangling", "gpu-nodes", "taken"], "and nothing is left behind");
}

#[test]
fn what_cannot_be_built_is_said_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let build = |name: &str, path: Option<&str>| {
        let mut command = author(folder.path());
        command.args(["plugin", "build", name]);
        if let Some(path) = path {
            command.env("PATH", path).env_remove("VIRTUAL_ENV");
        }
        command.output().unwrap()
    };
    for lang in ["python", "js", "c"] {
        let output = author(folder.path())
            .args(["plugin", "new", lang, "--world", "trace-naming", "--lang", lang])
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        // Each missing tool is one line that says how to get it.
        let output = build(lang, Some("/nowhere"));
        assert_eq!(output.code(), 2);
        let error = output.one_error();
        assert!(
            error.starts_with("tracemend: no ") && error.contains('`') || error.contains("http"),
            "{error}"
        );
    }
    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("python/plugin.toml"), "lang = \"cobol\"\n").unwrap();
    for (name, why) in [
        ("missing", "there is no folder"),
        ("empty", "has no plugin.toml"),
        ("python", "there is no language \"cobol\""),
    ] {
        let output = build(name, None);
        assert_eq!(output.code(), 2, "{name}: {}", output.errors());
        assert!(output.one_error().contains(why), "{}", output.errors());
    }
    // A compiler's refusal is shown, is bad news, and leaves what was built before.
    let old = folder.path().join("c/c.wasm");
    fs::write(&old, "old").unwrap();
    fs::write(folder.path().join("c/plugin.c"), "this is no C\n").unwrap();
    let output = build("c", None);
    if output.code() != 2 {
        assert_eq!(output.code(), 1);
        assert!(output.errors().contains("plugin.c:1:"), "{}", output.errors());
        assert!(output.errors().contains("tracemend: clang"), "{}", output.errors());
    }
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
}
