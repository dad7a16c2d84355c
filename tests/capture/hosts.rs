//! Several daemons at once.

use std::fs;

use super::world::*;
use crate::util::Answer;

#[test]
fn several_hosts_are_asked_at_once_for_one_moment() {
    let (one, two) = (World::new(), World::new());
    let (_a, _b) = (one.daemon(), two.daemon());
    register(&one, &["4101,1"]);
    register(&two, &["4101,1"]);
    let hosts = one.path("hosts");
    fs::write(&hosts, format!("# nodes\n127.0.0.1:{}\n[::1]:{}\n", one.port, two.port)).unwrap();
    let output = one
        .trigger("rpc")
        .arg("--hosts")
        .arg(format!("@{}", hosts.display()))
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    let attempts = one.attempts();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0]["start_time_ms"], attempts[1]["start_time_ms"]);
    let room = attempts[0]["start_time_ms"].as_f64().unwrap() - attempts[0]["time"].as_f64().unwrap() * 1000.0;
    assert!(room > 10_000.0, "{room}");
    let paths: Vec<_> = output.json()["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["processes"][0]["trace"].clone())
        .collect();
    assert_eq!(
        paths,
        ["libkineto_trace_127.0.0.1_4101.json", "libkineto_trace_--1_4101.json"]
    );
}

#[test]
fn slurm_expands_its_own_node_lists() {
    let world = World::new();
    let _daemon = world.daemon();
    register(&world, &["2147480000,1"]);
    let bin = world.path("bin");
    fs::create_dir(&bin).unwrap();
    write_script(
        &bin.join("scontrol"),
        "[ \"$1 $2\" = 'show hostnames' ] || exit 9\ncase $3 in\n'n[1-2]') printf '127.0.0.1\\n127.0.0.1\\n';;\n\
         *) echo \"Invalid hostlist: $3\" >&2; exit 1;;\nesac",
    );
    let path = std::env::join_paths([bin.clone(), "/usr/bin".into(), "/bin".into()]).unwrap();
    let ask = |hosts: &str, nodes: Option<&str>| {
        let mut command = world.trigger("rpc");
        command
            .args(["--hosts", hosts, "--max-attempts", "1"])
            .env("PATH", &path);
        nodes.map(|nodes| command.env("SLURM_JOB_NODELIST", nodes));
        command.output().unwrap()
    };
    let output = ask("slurm", Some("n[1-2]"));
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(
        output.json()["hosts"].as_array().unwrap().len(),
        1,
        "one node named twice is one"
    );
    assert_eq!(output.json()["hosts"][0]["host"], "127.0.0.1");
    // Expanded, and asked; nobody new is there.
    let listed = ask("n[1-2]", None);
    assert_eq!(
        (listed.code(), &listed.json()["result"]),
        (1, &serde_json::json!("busy")),
        "{}",
        listed.errors()
    );
    for (hosts, nodes, word) in [
        ("slurm", Some("n[1-"), "Invalid hostlist: n[1-"),
        ("slurm", None, "SLURM_JOB_NODELIST is not set"),
        ("slurm", Some("--help"), "is no node list"),
        ("n[9]", None, "Invalid hostlist"),
    ] {
        let refused = ask(hosts, nodes);
        assert_eq!(refused.code(), 2, "{hosts} {nodes:?}");
        assert!(refused.one_error().contains(word), "{}", refused.errors());
    }
    fs::remove_file(bin.join("scontrol")).unwrap();
    let path = std::env::join_paths([bin]).unwrap();
    let mut command = world.trigger("rpc");
    let missing = command.args(["--hosts", "n[1-2]"]).env("PATH", path).output().unwrap();
    assert_eq!(missing.code(), 2);
    assert!(
        missing.one_error().contains("name the hosts one by one"),
        "{}",
        missing.errors()
    );
}
