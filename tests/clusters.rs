//! Clusters: found, chosen, checked, and what they change.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::util::{Answer, guest, tracemend, write_trace};

const LATER: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A folder with a run of two traces that only gpu-slot ranks, the plugin, and `config` as its tracemend.toml.
fn site(config: &str) -> tempfile::TempDir {
    let site = tempfile::tempdir().unwrap();
    write_trace(site.path().join("run/gpu0@n00.json"), None);
    write_trace(site.path().join("run/gpu1@n01.json"), None);
    fs::copy(guest("gpu-slot"), site.path().join("slots.wasm")).unwrap();
    fs::write(site.path().join("tracemend.toml"), config).unwrap();
    site
}

fn two_clusters() -> String {
    let cluster = |name: &str, hosts: &str, gpus: &str| {
        format!(
            "[cluster.{name}]\nhosts = {hosts}\nnaming = ['capture-manifest', 'kineto-content', 'gpu-slot', 'rank-in-name']\n\
             [cluster.{name}.plugins.gpu-slot]\npath = 'slots.wasm'\nsettings = {{ gpus-per-node = {gpus} }}\n"
        )
    };
    cluster("small", "['nowhere-*']", "2") + &cluster("big", "['*']", "'8'")
}

fn ranks(output: &std::process::Output) -> Vec<Value> {
    let traces = output.json()["traces"].as_array().unwrap().clone();
    traces.iter().map(|trace| trace["rank"].clone()).collect()
}

#[test]
fn the_same_run_under_two_clusters_gets_two_assignments() {
    let site = site(&two_clusters());
    for (cluster, expected) in [("small", [0, 3]), ("big", [0, 9])] {
        let output = tracemend()
            .current_dir(&site)
            .args(["ranks", "--json", "run", "--cluster", cluster])
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        assert_eq!(ranks(&output), expected);
        assert_eq!(output.json()["cluster"], cluster);

        let output = tracemend()
            .current_dir(&site)
            .env("TRACEMEND_CLUSTER", cluster)
            .args(["analyze", "--json", "--reporter", "builtin", "run", "-o", cluster])
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        let summary = output.json();
        assert_eq!(summary["cluster"], cluster);
        let rows = summary["results"].as_array().unwrap();
        let rows: Vec<&Value> = rows
            .iter()
            .map(|row| &row["rank"])
            .filter(|rank| !rank.is_null())
            .collect();
        assert_eq!(rows, [&json!(expected[0]), &json!(expected[1])], "{summary}");
    }
    // The command line's word is the last one.
    let output = tracemend()
        .current_dir(&site)
        .args([
            "ranks",
            "--json",
            "run",
            "--cluster",
            "small",
            "--set",
            "gpu-slot.gpus-per-node=16",
        ])
        .output()
        .unwrap();
    assert_eq!(ranks(&output), [0, 17]);
}

#[test]
fn a_cluster_is_chosen_by_option_then_variable_then_host() {
    let site = site(&two_clusters());
    let chosen = |option: Option<&str>, variable: Option<&str>| {
        let mut command = tracemend();
        command.current_dir(&site).args(["clusters", "--json"]);
        command.args(option.map(|name| format!("--cluster={name}")));
        variable.map(|name| command.env("TRACEMEND_CLUSTER", name));
        let output = command.output().unwrap();
        assert_eq!(output.code(), 0, "{}{}", output.text(), output.errors());
        let document = output.json();
        (document["chosen"].clone(), document["why"].as_str().unwrap().to_owned())
    };
    let (cluster, why) = chosen(None, None);
    assert_eq!(cluster, "big");
    assert!(why.starts_with("its pattern * matches this host, "), "{why}");
    assert_eq!(
        chosen(None, Some("small")),
        (json!("small"), "$TRACEMEND_CLUSTER names it".into())
    );
    assert_eq!(
        chosen(Some("big"), Some("small")),
        (json!("big"), "--cluster names it".into())
    );
    assert_eq!(chosen(None, Some("")).0, "big");

    let output = tracemend()
        .current_dir(&site)
        .args(["ranks", "run", "--cluster", "smal"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert_eq!(
        output.one_error(),
        "tracemend: --cluster: there is no cluster smal in tracemend.toml; did you mean small?"
    );
}

#[test]
fn the_configuration_is_looked_for_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let cluster = name.split('/').next().unwrap();
        fs::write(&path, format!("[cluster.{cluster}]\nhosts = ['*']\n")).unwrap();
        path
    };
    let (option, variable) = (path("option/any.toml"), path("variable/any.toml"));
    path("here/tracemend.toml");
    path("user/tracemend/tracemend.toml");
    fs::create_dir(folder.path().join("empty")).unwrap();
    let chosen = |current: &str, option: Option<&Path>, variable: Option<&Path>| {
        let mut command = tracemend();
        command
            .current_dir(folder.path().join(current))
            .args(["clusters", "--json"]);
        command.env("XDG_CONFIG_HOME", folder.path().join("user"));
        option.map(|path| command.arg("--config").arg(path));
        variable.map(|path| command.env("TRACEMEND_CONFIG", path));
        command.output().unwrap().json()["chosen"].clone()
    };
    assert_eq!(chosen("here", Some(&option), Some(&variable)), "option");
    assert_eq!(chosen("here", None, Some(&variable)), "variable");
    assert_eq!(chosen("here", None, None), "here");
    assert_eq!(chosen("empty", None, None), "user");
    assert_eq!(chosen("here", Some(Path::new("/dev/null")), None), Value::Null);

    for (arguments, why) in [
        (
            ["--config", "gone.toml"],
            "--config names gone.toml, which is not there",
        ),
        (
            ["--cluster", "banff"],
            "there is no cluster banff, since there is no configuration; looked for tracemend.toml, ",
        ),
    ] {
        let output = tracemend()
            .current_dir(folder.path().join("empty"))
            .args(["ranks", "."])
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains(why), "{}", output.errors());
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line_and_the_nearest_word() {
    for (config, problem) in [
        (
            "[cluster.a]\nnamig = []\n",
            "line 2: unknown key cluster.a.namig; did you mean naming?",
        ),
        ("[clusters.a]\n", "line 1: unknown key clusters; did you mean cluster?"),
        (
            "\n[limits]\nmemory-mb = 3\n",
            "line 3: unknown key limits.memory-mb; did you mean memory-mib?",
        ),
        (
            "[limits]\ncall-seconds = 0\n",
            "line 2: limits.call-seconds must be a number from 0.001 to 86400",
        ),
        (
            "[limits]\ncall-seconds = '5'\n",
            "line 2: limits.call-seconds must be a number",
        ),
        (
            "[cluster.a]\nhosts = 'x'\n",
            "line 2: cluster.a.hosts is a text, and a list of texts is wanted",
        ),
        (
            "[cluster.a]\nhosts = ['x[']\n",
            "line 2: x[ is no pattern of host names",
        ),
        (
            "[cluster.a]\nnaming = ['producer']\n",
            "line 2: there is no plugin producer: ",
        ),
        ("[cluster.a]\nnaming = ['producer']\n", "did you mean producers?"),
        (
            "[cluster.a]\nnaming = ['producers', 'producers']\n",
            "line 2: naming has producers twice",
        ),
        ("[cluster.a]\ninterpreter = 'dynocli'\n", "did you mean dyno-cli?"),
        (
            "[cluster.a]\ninterpreter = '../x'\n",
            "line 2: there is no plugin ../x: ",
        ),
        (
            "[cluster.a.plugins.producers]\nsha256 = 'abc'\n",
            "line 2: a sha256 has 64 hexadecimal digits",
        ),
        (
            "[cluster.a.plugins.slots]\npath = 'slots.wasm'\n",
            "line 1: cluster.a.plugins.slots is neither in naming nor the interpreter; ",
        ),
        (
            "[cluster.a.plugins.producers.settings]\nsizes = [8]\n",
            "line 2: setting sizes is a list",
        ),
        ("cluster = 3\n", "line 1: cluster is a number, and a table is wanted"),
        (
            "[cluster]\na = 3\n",
            "line 2: cluster.a is a number, and a table is wanted",
        ),
        ("[cluster.a\n", "line 1: it is no TOML: "),
        ("[limits]\nx = 1\ny = 2\n", "(1 more: `tracemend clusters` lists all)"),
    ] {
        let site = site(config);
        let output = tracemend().current_dir(&site).args(["ranks", "run"]).output().unwrap();
        assert_eq!(output.code(), 2, "{config}");
        assert!(output.one_error().contains(problem), "{config}: {}", output.errors());

        let output = tracemend().current_dir(&site).arg("clusters").output().unwrap();
        assert_eq!(output.code(), 1, "{config}");
        assert!(
            output.text().contains("no run starts with this file"),
            "{}",
            output.text()
        );
    }
    let site = site("");
    fs::write(site.path().join("tracemend.toml"), b"[cluster.\xff]\n").unwrap();
    let output = tracemend().current_dir(&site).arg("clusters").output().unwrap();
    assert_eq!(
        (output.code(), output.one_error().contains("is no UTF-8 text")),
        (2, true)
    );
}

#[test]
fn settings_are_those_that_the_plugin_describes() {
    let config = |settings: &str| {
        format!(
            "[cluster.a]\nhosts = ['*']\nnaming = ['gpu-slot']\n[cluster.a.plugins.gpu-slot]\npath = 'slots.wasm'\nsettings = {settings}\n"
        )
    };
    let site = site(&config("{ gpus-per-nod = 8 }"));
    let output = tracemend().current_dir(&site).args(["ranks", "run"]).output().unwrap();
    assert_eq!(output.code(), 2);
    assert_eq!(
        output.one_error(),
        "tracemend: plugin gpu-slot has no setting gpus-per-nod; did you mean gpus-per-node?"
    );
    // What only the plugin can judge, it judges before a run.
    fs::write(site.path().join("tracemend.toml"), config("{ gpus-per-node = 'many' }")).unwrap();
    let output = tracemend().current_dir(&site).arg("clusters").output().unwrap();
    assert_eq!(output.code(), 1);
    assert!(
        output
            .text()
            .contains("plugin gpu-slot: label-all: it gave up: gpus-per-node must be a whole number from 1"),
        "{}",
        output.text()
    );
    fs::write(site.path().join("tracemend.toml"), config("{ gpus-per-node = 0x10 }")).unwrap();
    let output = tracemend()
        .current_dir(&site)
        .args(["clusters", "--verbose"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 0);
    assert!(
        output.text().contains("gpus-per-node = 16  How many GPUs a node has."),
        "{}",
        output.text()
    );
}

#[test]
fn a_pinned_plugin_is_that_file_or_none() {
    let pinned = tracemend()
        .args(["plugin", "inspect", "--json"])
        .arg(guest("gpu-slot"))
        .output()
        .unwrap()
        .json()["sha256"]
        .as_str()
        .unwrap()
        .to_uppercase();
    let config = |sum: &str| {
        format!(
            "[cluster.a]\nhosts = ['*']\nnaming = ['gpu-slot']\n[cluster.a.plugins.gpu-slot]\npath = 'slots.wasm'\nsha256 = '{sum}'\n"
        )
    };
    let site = site(&config(&pinned));
    let run = || {
        tracemend()
            .current_dir(&site)
            .args(["ranks", "--json", "run"])
            .output()
            .unwrap()
    };
    assert_eq!((run().code(), ranks(&run())), (0, vec![json!(0), json!(5)]));
    fs::write(site.path().join("tracemend.toml"), config(LATER)).unwrap();
    let output = run();
    assert_eq!((output.code(), ranks(&output)), (1, vec![Value::Null, Value::Null]));
    let error = output.one_error();
    assert!(
        error.contains(&format!("its SHA-256 is {}", pinned.to_lowercase())) && error.contains(LATER),
        "{error}"
    );
}

#[test]
fn plugins_come_from_folders_and_keep_their_own_names() {
    let site = site("plugin-folders = ['far', 'near']\n[cluster.a]\nhosts = ['*']\nnaming = ['gpu-slot', 'hostile']\n");
    fs::create_dir(site.path().join("near")).unwrap();
    fs::copy(guest("gpu-slot"), site.path().join("near/gpu-slot.wasm")).unwrap();
    fs::copy(guest("gpu-slot"), site.path().join("near/hostile.wasm")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let output = tracemend()
        .current_dir(&elsewhere)
        .args(["ranks", "--json", "--config"])
        .arg(site.path().join("tracemend.toml"))
        .arg(site.path().join("run"))
        .output()
        .unwrap();
    assert_eq!((output.code(), ranks(&output)), (1, vec![json!(0), json!(5)]));
    assert!(
        output
            .one_error()
            .contains("the configuration calls it hostile, and it calls itself gpu-slot"),
        "{}",
        output.errors()
    );
}

#[test]
fn a_clusters_interpreter_and_limits_are_used() {
    let site =
        site("[cluster.a]\nhosts = ['*']\ninterpreter = 'dynolog-rpc'\n[cluster.a.limits]\ncall-seconds = 0.25\n");
    let reply = r#"{"activityProfilersBusy":0,"activityProfilersTriggered":[7],"eventProfilersBusy":0,"eventProfilersTriggered":[],"processesMatched":[7]}"#;
    let call = json!({"name": "reply", "exit": 0, "stdout": reply, "stderr": ""}).to_string();
    let interpret = |cluster: &[&str]| {
        let mut command = tracemend();
        command
            .current_dir(&site)
            .args(["interpret", "--json", "--calls", "-"])
            .args(cluster);
        command.write_stdin(call.clone()).output().unwrap().json()["verdict"].clone()
    };
    assert_eq!(interpret(&[]), "accepted");
    assert_ne!(
        interpret(&["--config", "/dev/null"]),
        "accepted",
        "dyno-cli reads no bare reply"
    );

    let listed = tracemend()
        .current_dir(&site)
        .args(["plugin", "list", "--json"])
        .output()
        .unwrap()
        .json();
    let names: Vec<&Value> = listed["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|plugin| &plugin["name"])
        .collect();
    assert_eq!(names.last().unwrap().as_str(), Some("dynolog-rpc"));

    write_trace(site.path().join("run/spin.json"), None);
    let spin = |options: &[&str]| {
        let mut command = tracemend();
        command
            .current_dir(&site)
            .args(["ranks", "run", "--plugin"])
            .arg(guest("hostile"))
            .args(options);
        command.output().unwrap().one_error()
    };
    let error = spin(&[]);
    assert!(error.contains("stopped after 250ms of its own running time"), "{error}");
    assert!(
        error.contains("--plugin-timeout, or call-seconds in [limits] of tracemend.toml, raises the limit"),
        "{error}"
    );
    assert!(spin(&["--plugin-timeout", "0.1"]).contains("stopped after 100ms"));
}
