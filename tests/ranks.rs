use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::util::{Answer, fixture, real_traces, tracemend, write_trace};

fn ranks(run: &Path, extra: &[&str]) -> Value {
    let output = tracemend()
        .args(["ranks", "--json"])
        .args(extra)
        .arg(run)
        .output()
        .unwrap();
    assert_eq!(output.code(), 0, "{}", output.errors());
    output.json()
}

/// Path and rank of each trace.
fn told(ranks: &Value) -> Vec<(String, Option<u64>)> {
    let traces = ranks["traces"].as_array().unwrap();
    traces
        .iter()
        .map(|t| (t["path"].as_str().unwrap().to_owned(), t["rank"].as_u64()))
        .collect()
}

#[test]
fn content_ranks_the_bundled_run_and_the_launcher_is_no_rank() {
    let ranks = ranks(&fixture("run"), &[]);
    let train: Vec<_> = told(&ranks)
        .into_iter()
        .filter(|(path, _)| path.starts_with("train/"))
        .collect();
    assert_eq!(
        train,
        [
            ("train/libkineto_trace_48170.json".to_owned(), None),
            ("train/libkineto_trace_48209.json".to_owned(), Some(1)),
            ("train/libkineto_trace_48211.json".to_owned(), Some(3)),
            ("train/libkineto_trace_48213.json".to_owned(), Some(0)),
            ("train/libkineto_trace_48216.json".to_owned(), Some(2)),
        ]
    );
    let launcher = ranks["traces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|t| t["role"] == "launcher")
        .unwrap();
    assert_eq!(
        (&launcher["path"], &launcher["by"]),
        (&json!("train/libkineto_trace_48170.json"), &json!("kineto-content"))
    );
    let group = ranks["groups"]
        .as_array()
        .unwrap()
        .iter()
        .find(|g| g["group"] == "train")
        .unwrap();
    assert_eq!(
        *group,
        json!({"group": "train", "world_size": 4, "ranks": [0, 1, 2, 3], "missing": [], "conflicts": []})
    );
}

#[test]
fn on_demand_traces_without_a_rank_stay_unknown() {
    let ranks = ranks(&fixture("kineto-cpu"), &[]);
    let told = told(&ranks);
    assert!(
        told.contains(&("api/ddp_rank0.json".into(), Some(0)))
            && told.contains(&("api/ddp_rank1.json".into(), Some(1)))
    );
    assert!(
        told.contains(&("ondemand/b_24715.json".into(), None))
            && told.contains(&("ondemand/b_24716.json".into(), None))
    );
    let by_name = ranks["traces"]
        .as_array()
        .unwrap()
        .iter()
        .find(|t| t["path"] == "ondemand/b_24715.json")
        .unwrap();
    assert!(
        by_name["evidence"].as_str().unwrap().contains("no distributedInfo"),
        "{by_name}"
    );
}

#[test]
fn content_beats_name_and_both_sides_are_shown() {
    let run = tempfile::tempdir().unwrap();
    write_trace(run.path().join("rank0.json"), Some(r#"{"rank": 1, "world_size": 2}"#));
    write_trace(run.path().join("rank1.json"), Some(r#"{"rank": 0, "world_size": 2}"#));
    let ranks = ranks(run.path(), &[]);
    assert_eq!(
        told(&ranks),
        [("rank0.json".into(), Some(1)), ("rank1.json".into(), Some(0))]
    );
    let conflicts = ranks["groups"][0]["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 2);
    let first = conflicts[0].as_str().unwrap();
    assert!(
        first.contains("kineto-content says 1") && first.contains("rank-in-name says 0"),
        "{first}"
    );
}

#[test]
fn missing_and_duplicate_ranks_are_shown() {
    let run = tempfile::tempdir().unwrap();
    for (name, rank) in [("a", 0), ("b", 2), ("c", 2)] {
        write_trace(
            run.path().join(format!("{name}.json")),
            Some(&format!(r#"{{"rank": {rank}, "world_size": 5}}"#)),
        );
    }
    let group = &ranks(run.path(), &[])["groups"][0];
    assert_eq!(
        (&group["ranks"], &group["missing"]),
        (&json!([0, 2]), &json!([1, 3, 4]))
    );
    assert_eq!(group["conflicts"], json!(["rank 2 is claimed by b.json and c.json"]));
    let text = tracemend().arg("ranks").arg(run.path()).output().unwrap().text();
    assert!(text.contains("missing: ranks 1, 3, 4"), "{text}");
    assert_eq!(
        ranks(run.path(), &["--world-size", "3"])["groups"][0]["missing"],
        json!([1])
    );
}

#[test]
fn nonsense_in_the_content_is_no_rank() {
    for info in [
        r#"{"rank": -1, "world_size": 2}"#,
        r#"{"rank": 2, "world_size": 2}"#,
        r#"{"rank": "0", "world_size": 2}"#,
        r#"{"rank": 4294967296}"#,
        r#"{"backend": "nccl"}"#,
        "null",
        "7",
        r#"{"rank": 0}, "distributedInfo": {"rank": 1}"#,
    ] {
        let run = tempfile::tempdir().unwrap();
        write_trace(run.path().join("trace.json"), Some(info));
        assert_eq!(told(&ranks(run.path(), &[])), [("trace.json".into(), None)], "{info}");
    }
}

#[test]
fn a_rank_deeper_in_the_file_or_in_a_string_is_not_taken() {
    let run = tempfile::tempdir().unwrap();
    fs::write(
        run.path().join("trace.json"),
        r#"{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "\"distributedInfo\": {\"rank\": 3}", "distributedInfo": {"rank": 4}}],
            "distributedInfo" : {"rank" :5,"world_size":8}}"#,
    )
    .unwrap();
    assert_eq!(told(&ranks(run.path(), &[])), [("trace.json".into(), Some(5))]);
}

#[test]
fn ranks_in_folders_form_one_group_and_steps_stay_apart() {
    let run = tempfile::tempdir().unwrap();
    for (iteration, rank) in [(5, 0), (5, 1), (10, 0), (10, 1)] {
        write_trace(
            run.path()
                .join(format!("steps/iteration_{iteration}/rank{rank}_trace.json")),
            None,
        );
    }
    for rank in 0..2 {
        write_trace(run.path().join(format!("folders/rank_{rank}/trace.json")), None);
    }
    for rank in 0..4 {
        let node = rank / 2;
        let info = format!(r#"{{"rank": {rank}, "world_size": 4}}"#);
        write_trace(
            run.path().join(format!("nodes/node{node}/host_{}.json", 900 + rank)),
            Some(&info),
        );
    }
    let ranks = ranks(run.path(), &[]);
    let groups: Vec<_> = ranks["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| (g["group"].as_str().unwrap(), &g["ranks"]))
        .collect();
    let two = json!([0, 1]);
    assert_eq!(groups.len(), 4, "{groups:?}");
    assert!(groups.contains(&("nodes", &json!([0, 1, 2, 3]))), "{groups:?}");
    assert!(
        groups.contains(&("steps/iteration_5", &two)) && groups.contains(&("steps/iteration_10", &two)),
        "{groups:?}"
    );
    assert!(
        groups
            .iter()
            .any(|(name, ranks)| name.starts_with("folders") && **ranks == two),
        "{groups:?}"
    );
}

#[test]
fn a_missing_or_empty_run_is_one_line() {
    let output = tracemend().args(["ranks", "/nowhere/at/all"]).output().unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("no run at /nowhere/at/all"));
    let run = tempfile::tempdir().unwrap();
    let output = tracemend().arg("ranks").arg(run.path()).output().unwrap();
    assert_eq!(output.code(), 0);
    assert!(
        output.text().contains("No supported trace artifacts found under"),
        "{}",
        output.text()
    );
}

#[test]
fn real_traces_get_their_ranks() {
    let Some(traces) = real_traces() else { return };
    let expected = [
        ("hta_amd_mi250_kineto.json.gz", None),
        ("hta_cpu_only_rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", Some(34)),
        ("hta_cupti_di_at_tail.json.gz", Some(0)),
        ("hta_di_at_tail_rank1_12k.json.gz", Some(1)),
        ("hta_di_without_rank.json.gz", None),
        ("hta_nccl_data_rank0_ws2.json.gz", Some(0)),
        ("hta_no_di.json.gz", None),
        ("hta_sampled_rank-0.json.gz", Some(0)),
        ("hta_sampled_rank-1.json.gz", Some(1)),
        ("tl_bert_small_mi300_metadata_first.json.gz", None),
        ("tl_gpu_only.json.gz", None),
        ("tl_resnet_rank0_ws8_nccl.json.gz", Some(0)),
        ("tl_rocprof_908_results.json.gz", None),
        ("tl_sglang_decode_rank0_ws1.json.gz", Some(0)),
        ("tl_torch_compile_triton_nodi.json.gz", None),
        ("tl_vllm_b200_rank0_ws8.json.gz", Some(0)),
    ];
    let pids = [1255, 1276, 1241, 1262, 1283, 1234, 1269, 1248];
    let told = told(&ranks(&traces, &[]));
    assert_eq!(told.len(), expected.len() + 16);
    for (path, rank) in &told {
        let wanted = match path.split_once('/') {
            Some(("multirank", name)) => name["rank".len()..][..1].parse().ok(),
            Some((_, name)) => {
                let pid: u64 = name["libkineto_trace_".len()..][..4].parse().unwrap();
                pids.iter().position(|&known| known == pid).map(|rank| rank as u64)
            }
            None => {
                expected
                    .iter()
                    .find(|(name, _)| name == path)
                    .unwrap_or_else(|| panic!("{path}"))
                    .1
            }
        };
        assert_eq!(*rank, wanted, "{path}");
    }
}

#[test]
fn several_captures_of_one_folder_are_told_apart_by_time() {
    let run = tempfile::tempdir().unwrap();
    let write = |stamp: &str, rank: u32| {
        let info = format!(r#"{{"rank": {rank}, "world_size": 2}}"#);
        write_trace(
            run.path().join(format!("node_{}.{stamp}.pt.trace.json", 77 + rank)),
            Some(&info),
        );
    };
    for (stamp, rank) in [
        ("1724300000123456789", 0),
        ("1724300000123999999", 1),
        ("1724300009123456789", 0),
        ("1724300009000000000", 1),
    ] {
        write(stamp, rank);
    }
    let told = ranks(run.path(), &[]);
    let groups: Vec<_> = told["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|g| (g["group"].as_str().unwrap(), &g["conflicts"]))
        .collect();
    assert_eq!(groups, [(". capture 1", &json!([])), (". capture 2", &json!([]))]);
    // A third trace of one rank only: nobody knows which capture it belongs to.
    write("1724300019000000000", 1);
    let group = &ranks(run.path(), &[])["groups"][0];
    assert_eq!(group["conflicts"].as_array().unwrap().len(), 2, "{group}");
}

#[test]
fn the_map_is_the_last_word() {
    let run = tempfile::tempdir().unwrap();
    write_trace(run.path().join("a/rank5.json"), Some(r#"{"rank": 0, "world_size": 2}"#));
    write_trace(run.path().join("a/other[1].json"), None);
    write_trace(run.path().join("a/extra.json"), Some(r#"{"rank": 1, "world_size": 2}"#));
    let map = run.path().join("map.csv");
    fs::write(
        &map,
        "pattern,rank,world size\na/rank*.json,1,2\n\"a/other[[]1].json\",0,2\n**/extra.json,-\nb/*,7\n",
    )
    .unwrap();
    let output = tracemend()
        .args(["ranks", "--json", "--map"])
        .arg(&map)
        .arg(run.path())
        .output()
        .unwrap();
    assert_eq!(output.code(), 0);
    assert!(
        output.one_error().contains("line 5 of the map matches no trace"),
        "{}",
        output.errors()
    );
    let told_ranks = output.json();
    assert_eq!(
        told(&told_ranks),
        [
            ("a/extra.json".into(), None),
            ("a/other[1].json".into(), Some(0)),
            ("a/rank5.json".into(), Some(1))
        ]
    );
    assert_eq!(told_ranks["groups"][0]["missing"], json!([]));
    assert_eq!(told_ranks["groups"][0]["conflicts"], json!([]));

    fs::write(&map, "a/*,zero\n").unwrap();
    let output = tracemend()
        .args(["ranks", "--map"])
        .arg(&map)
        .arg(run.path())
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(
        output.one_error().contains("line 1: \"zero\" is no rank"),
        "{}",
        output.errors()
    );
}

#[test]
fn explain_shows_every_answer_and_why_the_winner_won() {
    let run = tempfile::tempdir().unwrap();
    write_trace(run.path().join("rank0.json"), Some(r#"{"rank": 1, "world_size": 2}"#));
    let explain = |extra: &[&str]| {
        tracemend()
            .arg("ranks")
            .arg(run.path())
            .args(["--explain", "rank0.json"])
            .args(extra)
            .output()
            .unwrap()
    };
    let text = explain(&[]).text();
    assert!(text.contains("> kineto-content"), "{text}");
    assert!(text.contains("rank 0, a guess: name: rank0"), "{text}");
    assert!(
        text.contains("rank 1 of group .: the first certain claim wins"),
        "{text}"
    );
    let json = explain(&["--json"]).json();
    assert_eq!((&json["rank"], &json["by"]), (&json!(1), &json!("kineto-content")));
    let output = tracemend()
        .arg("ranks")
        .arg(run.path())
        .args(["--explain", "no.json"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("no trace no.json in"));
}

#[test]
fn a_link_farm_has_the_names_that_its_reader_wants() {
    for (reader, names) in [
        (
            "tracelens",
            [
                "rank0_trace.json",
                "rank1_trace.json",
                "rank2_trace.json",
                "rank3_trace.json",
            ],
        ),
        (
            "hta",
            [
                "rank-0.pt.trace.json",
                "rank-1.pt.trace.json",
                "rank-2.pt.trace.json",
                "rank-3.pt.trace.json",
            ],
        ),
        (
            "chakra",
            ["device.0.json", "device.1.json", "device.2.json", "device.3.json"],
        ),
    ] {
        let place = tempfile::tempdir().unwrap();
        let farm = place.path().join("farm");
        let link = |run: &Path| {
            tracemend()
                .args(["ranks", "--for", reader, "--link-farm"])
                .arg(&farm)
                .arg(run)
                .output()
                .unwrap()
        };
        let output = link(&fixture("run/train"));
        assert_eq!(output.code(), 0);
        assert!(
            output.one_error().contains("3 links and 1 mended copy"),
            "{}",
            output.errors()
        );
        let mut made: Vec<String> = fs::read_dir(&farm)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        made.sort();
        assert_eq!(made, names);
        for (rank, name) in names.iter().enumerate() {
            let trace: Value = serde_json::from_slice(&fs::read(farm.join(name)).unwrap()).unwrap();
            assert_eq!(trace["distributedInfo"]["rank"], rank);
        }
        let output = link(&fixture("run/train"));
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains("is not empty"));
    }
}

#[test]
fn a_rank_claimed_twice_is_left_out_of_the_farm_and_said() {
    let run = tempfile::tempdir().unwrap();
    for (name, rank) in [("a", 0), ("b", 1), ("c", 1)] {
        write_trace(
            run.path().join(format!("{name}.json")),
            Some(&format!(r#"{{"rank": {rank}, "world_size": 2}}"#)),
        );
    }
    let farm = run.path().join("farm");
    let output = tracemend()
        .args(["ranks", "--for", "tracelens", "--link-farm"])
        .arg(&farm)
        .arg(run.path())
        .output()
        .unwrap();
    assert_eq!(output.code(), 1);
    assert!(
        output
            .errors()
            .contains("left out: rank 1 of .: claimed by b.json and c.json"),
        "{}",
        output.errors()
    );
    assert_eq!(fs::read_dir(farm).unwrap().count(), 1);
}

#[test]
fn hostile_names_do_no_harm() {
    let run = tempfile::tempdir().unwrap();
    let names: [&[u8]; 6] = [
        b"rank1\n.json",
        b"rank\xff2.json",
        b"\x1b[2Jrank3.json",
        b"rank[4]*?.json",
        b"rank4294967295.json",
        b"rank99999999999.json",
    ];
    for name in names {
        write_trace(run.path().join(std::ffi::OsStr::from_bytes(name)), None);
    }
    let deep = std::iter::repeat_n("rank_7", 30).collect::<Vec<_>>().join("/");
    write_trace(run.path().join(deep).join("x.json"), None);
    let output = tracemend().arg("ranks").arg(run.path()).output().unwrap();
    assert_eq!(output.code(), 0);
    assert!(
        !output.text().chars().any(|c| c.is_control() && c != '\n'),
        "{}",
        output.text()
    );
    let told = told(&ranks(run.path(), &[]));
    let rank = |part: &str| told.iter().find(|(path, _)| path.contains(part)).unwrap().1;
    assert_eq!(
        (rank("rank[4]"), rank("4294967295"), rank("99999999999"), rank("x.json")),
        (Some(4), Some(4294967295), None, Some(7))
    );
}

#[test]
fn settings_reach_the_plugin_that_declares_them() {
    let run = tempfile::tempdir().unwrap();
    write_trace(run.path().join("gpu1@n02.json"), None);
    let ranks = |set: &str| {
        let plugin = crate::util::guest("gpu-slot");
        tracemend()
            .args(["ranks", "--json", "--set", set, "--plugin"])
            .arg(plugin)
            .arg(run.path())
            .output()
            .unwrap()
    };
    assert_eq!(told(&ranks("gpu-slot.gpus-per-node=8").json())[0].1, Some(17));
    for (set, why) in [
        (
            "gpu-slot.gpus=8",
            "plugin gpu-slot has no setting gpus; did you mean gpus-per-node?",
        ),
        ("gpu-slots.gpus-per-node=8", "there is no plugin gpu-slots in this run"),
        (
            "kineto-content.x=8",
            "plugin kineto-content has no setting x; it has no settings",
        ),
    ] {
        let output = ranks(set);
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains(why), "{}", output.errors());
    }
    let output = ranks("gpu-slot.gpus-per-node=many");
    assert_eq!(output.code(), 1);
    assert!(
        output.one_error().contains("plugin gpu-slot: label-all: it gave up"),
        "{}",
        output.errors()
    );
}

#[test]
fn a_manifest_of_the_capture_ranks_traces_named_after_process_ids() {
    let run = tempfile::tempdir().unwrap();
    for pid in [24598, 24715, 24716] {
        let name = format!("b_{pid}.json");
        fs::copy(fixture("kineto-cpu/ondemand").join(&name), run.path().join(name)).unwrap();
    }
    let process =
        |pid: u32, rank: Value| json!({"pid": pid, "rank": rank, "world_size": 2, "trace": format!("b_{pid}.json")});
    let manifest = json!({"tracemend_manifest": 1, "host": "vm", "processes": [
        process(24598, Value::Null), process(24715, json!(0)), process(24716, json!(1))]});
    fs::write(run.path().join("tracemend-manifest-vm.json"), manifest.to_string()).unwrap();
    let told_ranks = ranks(run.path(), &[]);
    let of = |path: &str| {
        told_ranks["traces"]
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["path"] == path)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&of("b_24715.json")["rank"], &of("b_24716.json")["rank"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(of("b_24715.json")["node"], "vm");
    assert_eq!(
        (&of("b_24598.json")["role"], &of("tracemend-manifest-vm.json")["role"]),
        (&json!("launcher"), &json!("manifest"))
    );
    assert_eq!(told_ranks["groups"][0]["missing"], json!([]));

    fs::write(
        run.path().join("tracemend-manifest-vm.json"),
        r#"{"tracemend_manifest": 1, "processes": "none"}"#,
    )
    .unwrap();
    let output = tracemend().args(["ranks", "--json"]).arg(run.path()).output().unwrap();
    assert!(
        output.one_error().contains("plugin capture-manifest: "),
        "{}",
        output.errors()
    );
    assert!(told(&output.json()).iter().all(|(_, rank)| rank.is_none()));
}

#[test]
fn elimination_is_a_guess_and_only_on_request() {
    let run = tempfile::tempdir().unwrap();
    for worker in 0..3 {
        write_trace(run.path().join(format!("worker_{worker}_v7.json")), None);
    }
    assert!(told(&ranks(run.path(), &[])).iter().all(|(_, rank)| rank.is_none()));
    let guessed = ranks(run.path(), &["--by-elimination"]);
    assert_eq!(
        told(&guessed).iter().map(|(_, rank)| rank.unwrap()).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    let explained = tracemend()
        .args(["ranks", "--by-elimination", "--explain", "worker_1_v7.json"])
        .arg(run.path())
        .output()
        .unwrap();
    assert!(explained.text().contains("rank 1, a guess: "), "{}", explained.text());
}

#[test]
fn coordinates_become_a_rank_only_with_sizes_and_order() {
    let run = tempfile::tempdir().unwrap();
    for (tp, dp) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        write_trace(
            run.path()
                .join(format!("1724300000.12-TP-{tp}-DP-{dp}-PP-0-EP-0.trace.json")),
            None,
        );
    }
    let unknown = ranks(run.path(), &[]);
    assert!(told(&unknown).iter().all(|(_, rank)| rank.is_none()));
    assert!(
        unknown["traces"][0]["evidence"].as_str().unwrap().contains("TP 0"),
        "{unknown}"
    );
    let known = ranks(
        run.path(),
        &[
            "--set",
            "producers.sizes=tp=2,dp=2,pp=1,ep=1",
            "--set",
            "producers.order=pp,dp,ep,tp",
        ],
    );
    let rank = |part: &str| told(&known).iter().find(|(path, _)| path.contains(part)).unwrap().1;
    assert_eq!(
        [
            rank("TP-0-DP-0"),
            rank("TP-1-DP-0"),
            rank("TP-0-DP-1"),
            rank("TP-1-DP-1")
        ],
        [Some(0), Some(1), Some(2), Some(3)]
    );
}
