use std::fs;
use std::path::Path;

use serde_json::json;

use crate::util::{Answer, BUILT_IN, copy_of, fixture, guest, tracemend, write_trace};

fn built_in(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("plugins/built")
        .join(format!("{name}.wasm"))
}

/// A run of one trace of rank 0 whose name asks the hostile guest for `word`.
fn run_with(word: &str) -> tempfile::TempDir {
    let run = tempfile::tempdir().unwrap();
    write_trace(
        run.path().join(format!("{word}.json")),
        Some(r#"{"rank": 0, "world_size": 2}"#),
    );
    write_trace(
        run.path().join(format!("{word}-more.json")),
        Some(r#"{"rank": 1, "world_size": 2}"#),
    );
    run
}

#[test]
fn a_plugin_from_outside_ranks_what_only_its_site_can_know() {
    let run = tempfile::tempdir().unwrap();
    for (node, slot) in [(0, 0), (0, 3), (1, 2)] {
        write_trace(run.path().join(format!("gpu{slot}@n{node:02}.json")), None);
    }
    let output = tracemend()
        .args(["ranks", "--json"])
        .arg(run.path())
        .arg("--plugin")
        .arg(guest("gpu-slot"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let ranks = output.json();
    let told: Vec<_> = ranks["traces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (&t["rank"], &t["by"], &t["node"]))
        .collect();
    let by = json!("gpu-slot");
    assert_eq!(
        told,
        [
            (&json!(0), &by, &json!("n00")),
            (&json!(6), &by, &json!("n01")),
            (&json!(3), &by, &json!("n00"))
        ],
        "{ranks}"
    );
}

#[test]
fn a_plugin_that_fails_costs_only_its_own_claims() {
    for (word, why) in [
        ("panic", "panicked at"),
        (
            "spin",
            "stopped after 300ms of its own running time (--plugin-timeout, or call-seconds in [limits] of tracemend.toml, raises the limit)",
        ),
        (
            "glutton",
            "stopped when it wanted more than 64 MiB of memory (--plugin-memory, or memory-mib in [limits] of tracemend.toml, raises the limit)",
        ),
        (
            "flood",
            "stopped when it handed over more than 64 MiB of data in one call (result-mib in [limits] of tracemend.toml raises the limit)",
        ),
        ("beyond", "it asked for trace 4294967295 of a list of 2"),
        ("recurse", "endless recursion"),
        ("short", "nonsense: 1 labels for 2 traces"),
        ("sulk", "it gave up: "),
    ] {
        let run = run_with(word);
        let output = tracemend()
            .args([
                "ranks",
                "--json",
                "--plugin-timeout",
                if word == "spin" { "0.3" } else { "60" },
            ])
            .args(["--plugin-memory", if word == "glutton" { "64" } else { "1024" }])
            .arg(run.path())
            .arg("--plugin")
            .arg(guest("hostile"))
            .output()
            .unwrap();
        assert_eq!(output.code(), 1, "{word}: {}", output.errors());
        let error = output.one_error();
        assert!(error.starts_with("tracemend: plugin hostile: label-all: "), "{error}");
        assert!(error.contains(why), "{word}: {error}");
        let ranks = output.json();
        assert_eq!(
            ranks["groups"][0]["ranks"],
            json!([0, 1]),
            "{word}: the others still rank"
        );
    }
}

#[test]
fn files_that_are_no_plugin_are_refused_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let whole = fs::read(guest("gpu-slot")).unwrap();
    let cases = [
        (file("text.wasm", b"#!/bin/sh\n"), "it is not WebAssembly"),
        (file("empty.wasm", b""), "it is not WebAssembly"),
        (
            file("cut.wasm", &whole[..whole.len() / 2]),
            "it is damaged or cut short",
        ),
        (
            file("module.wasm", b"\0asm\x01\0\0\0"),
            "a core module that says nothing of its world",
        ),
        (
            built_in("dyno-cli"),
            "it is a dyno-interpreter plugin, and a trace-naming plugin is wanted here",
        ),
        (
            guest("wants-http"),
            "it imports wasi:http/types@0.2.0, which no plugin gets",
        ),
        (
            guest("tomorrow"),
            "it was built for version 0.2.0 of the plugin contract, this tracemend has 0.1.0",
        ),
        (
            folder.path().join("missing.wasm"),
            "it cannot be opened: No such file or directory",
        ),
        (folder.path().to_owned(), "it is no regular file"),
    ];
    let run = run_with("calm");
    for (path, why) in cases {
        let output = tracemend()
            .args(["ranks", "--json"])
            .arg(run.path())
            .arg("--plugin")
            .arg(&path)
            .output()
            .unwrap();
        assert_eq!(output.code(), 1, "{}: {}", path.display(), output.errors());
        let error = output.one_error();
        assert!(error.contains(why), "{}: {error}", path.display());
        assert_eq!(output.json()["groups"][0]["ranks"], json!([0, 1]));
    }
}

#[test]
fn inspect_tells_a_plugin_from_a_file_that_is_none() {
    let output = tracemend()
        .args(["plugin", "inspect", "--json"])
        .arg(guest("gpu-slot"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let card = output.json();
    assert_eq!(
        (&card["name"], &card["world"]),
        (&json!("gpu-slot"), &json!("trace-naming"))
    );
    assert_eq!(card["settings"][0]["name"], "gpus-per-node");
    assert_eq!(card["size"], fs::metadata(guest("gpu-slot")).unwrap().len());
    assert!(
        card["exports"]
            .as_array()
            .unwrap()
            .contains(&json!("tracemend:plugin/naming@0.1.0"))
    );

    for name in BUILT_IN {
        let output = tracemend().args(["plugin", "inspect", name]).output().unwrap();
        assert_eq!(output.code(), 0);
        assert!(output.text().starts_with(name), "{}", output.text());
    }
    let output = tracemend()
        .args(["plugin", "inspect"])
        .arg(guest("wants-http"))
        .output()
        .unwrap();
    assert_eq!(output.code(), 1);
    assert!(output.one_error().contains("an empty WASI 0.2"));
    let output = tracemend()
        .args(["plugin", "inspect", "no-such-plugin"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("cannot read no-such-plugin"));
}

#[test]
fn list_shows_the_order_in_which_policies_are_asked() {
    let output = tracemend()
        .args(["plugin", "list", "--json", "--plugin"])
        .arg(guest("gpu-slot"))
        .output()
        .unwrap();
    let listing = output.json();
    let names: Vec<_> = listing["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "capture-manifest",
            "kineto-content",
            "gpu-slot",
            "producers",
            "rank-in-name",
            "dyno-cli"
        ]
    );
}

#[test]
fn the_cache_may_be_damaged_or_deleted_or_read_only_at_any_time() {
    let home = tempfile::tempdir().unwrap();
    let inspect = || {
        let mut command = tracemend();
        command
            .env("XDG_CACHE_HOME", home.path())
            .args(["plugin", "inspect", "--json", "kineto-content"]);
        let output = command.output().unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        output.json()["cached"].as_bool().unwrap()
    };
    assert!(!inspect());
    assert!(inspect());
    let folder = home.path().join("tracemend/components");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&file, &bytes).unwrap();
    assert!(!inspect(), "damaged native code is not run");
    assert!(inspect(), "and is replaced");
    fs::write(&file, &bytes[..100]).unwrap();
    assert!(!inspect());
    fs::remove_dir_all(home.path().join("tracemend")).unwrap();
    assert!(!inspect());
    fs::remove_dir_all(home.path().join("tracemend")).unwrap();
    fs::write(home.path().join("tracemend"), "a file in the way").unwrap();
    assert!(!inspect());
}

#[test]
fn plugins_share_the_hosts_bytes() {
    // dyno-cli turns output that is no UTF-8 into text through the host.
    let call = json!({"name": "noise", "exit": "1", "stdout": {"base64": "//5h"}, "stderr": {"base64": "RXJyb3I6IP9vb3BzCg=="}});
    let output = tracemend()
        .args(["interpret", "--json", "--calls", "-"])
        .write_stdin(call.to_string())
        .output()
        .unwrap();
    let answer = output.json();
    assert_eq!(answer["verdict"], "rejected");
    assert!(answer["reason"].as_str().unwrap().contains("\u{fffd}oops"), "{answer}");
    let inspected = tracemend()
        .args(["plugin", "inspect", "--json", "dyno-cli"])
        .output()
        .unwrap()
        .json();
    assert!(
        inspected["imports"]
            .as_array()
            .unwrap()
            .contains(&json!("tracemend:plugin/bytes@0.1.0"))
    );
}

#[test]
fn a_plugin_finds_and_mends_the_same_as_the_command_line() {
    // A stray byte, a character cut short, a surrogate in UTF-8, a character that is well-formed.
    let noise = b"a\x80b\xE2\x82c\xED\xA0\x80 caf\xC3\xA9";
    let call = json!({"name": "noise", "exit": "1", "stdout": {"base64": "YYBi4oJj7aCAIGNhZsOp"}, "stderr": ""});
    let output = tracemend()
        .args(["interpret", "--json", "--calls", "-", "--plugin"])
        .arg(guest("mirror"))
        .write_stdin(call.to_string())
        .output()
        .unwrap();
    let told = output.json()["reason"].as_str().unwrap().to_owned();

    let folder = tempfile::tempdir().unwrap();
    let (trace, copy) = (folder.path().join("noise"), folder.path().join("copy"));
    fs::write(&trace, noise).unwrap();
    let repaired = tracemend()
        .args(["repair", "--only", "utf8", "--json"])
        .arg(&trace)
        .arg("-o")
        .arg(&copy)
        .output()
        .unwrap();
    assert_eq!(repaired.code(), 0, "{}", repaired.errors());
    let listed = repaired.json()["flaws"]["listed"].as_array().unwrap().clone();
    let flaws: Vec<String> = listed
        .iter()
        .map(|flaw| format!("{}+{}", flaw["offset"], flaw["length"]))
        .collect();
    assert_eq!(flaws.len(), 5);
    assert_eq!(
        told,
        format!("{}: {}", flaws.join(" "), fs::read_to_string(&copy).unwrap())
    );
}

#[test]
fn analyze_uses_a_plugin_from_outside_and_outlives_a_trapping_one() {
    let run = copy_of("run/serve");
    fs::rename(
        run.path().join("vllm-rank-0.1724300000123456789.pt.trace.json.gz"),
        run.path().join("panic.json.gz"),
    )
    .unwrap();
    let out = tempfile::tempdir().unwrap();
    let output = tracemend()
        .args(["analyze", "--json", "--reporter", "builtin"])
        .arg(run.path())
        .arg("-o")
        .arg(out.path().join("reports"))
        .args([
            "--plugin".as_ref(),
            guest("hostile").as_os_str(),
            "--plugin".as_ref(),
            guest("gpu-slot").as_os_str(),
        ])
        .output()
        .unwrap();
    assert_eq!(output.code(), 1, "{}", output.errors());
    assert!(
        output.one_error().contains("plugin hostile: label-all: panicked at"),
        "{}",
        output.errors()
    );
    let summary = output.json();
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(2), &json!(0)));
    assert!(fixture("run/serve").is_dir());
}
