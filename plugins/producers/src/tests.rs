use std::collections::BTreeMap;

use crate::label::{Label, all};
use crate::sizes::Sizes;
use crate::table::{BUILT_IN, Scheme, read};

/// The policy that is asked after this one: rank tokens, whoever wrote them.
#[path = "../../rank-in-name/src/label.rs"]
mod rank_in_name;

const NAMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/names/names.tsv");

fn schemes() -> Vec<Scheme> {
    read(BUILT_IN).unwrap()
}

fn labels(paths: &[&str]) -> Vec<Label> {
    let traces: Vec<(&str, bool)> = paths.iter().map(|path| (*path, false)).collect();
    all(&schemes(), &Sizes::default(), &traces)
}

fn label(path: &str) -> Label {
    labels(&[path]).remove(0)
}

fn rank(path: &str) -> (u32, String) {
    match label(path) {
        Label::Rank { rank, evidence, .. } => (rank, evidence),
        other => panic!("{path}: {other:?}"),
    }
}

fn group(path: &str) -> Option<String> {
    match label(path) {
        Label::Rank { group, .. } => group,
        other => panic!("{path}: {other:?}"),
    }
}

fn reason(path: &str) -> String {
    match label(path) {
        Label::Unknown(reason) => reason,
        other => panic!("{path}: {other:?}"),
    }
}

/// Name, role and rank of each row of the table of names.
fn table() -> Vec<(String, String, Option<u32>)> {
    let table = std::fs::read_to_string(NAMES).unwrap();
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("name\trole\trank\tnote"));
    let row = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, role, rank, _] = columns[..] else {
            panic!("{line}")
        };
        (name.to_owned(), role.to_owned(), rank.parse().ok())
    };
    lines.map(row).collect()
}

#[derive(Debug, Default, PartialEq)]
struct Score {
    right: usize,
    missed: Vec<String>,
    wrong: Vec<String>,
}

fn score(claims: impl IntoIterator<Item = Option<u32>>) -> Score {
    let mut score = Score::default();
    for ((name, role, rank), claim) in table().into_iter().zip(claims) {
        let rank = rank.filter(|_| role == "trace");
        match (claim, rank) {
            (claim, rank) if claim == rank => score.right += 1,
            (None, _) => score.missed.push(name),
            (Some(_), _) => score.wrong.push(name),
        }
    }
    score
}

/// Lightning's name holds the rank within the node, which is the global one on the first node only. The table gives it as the
/// rank; this policy tells it as what it is.
const LOCAL_RANK: &str = "train-dist_prof-3-training_step.1724300000123456789.pt.trace.json";

#[test]
fn with_rank_in_name_no_name_of_the_table_is_missed_or_wrong() {
    let table = table();
    let names: Vec<&str> = table.iter().map(|(name, ..)| name.as_str()).collect();
    let by_producer = labels(&names);
    let together = score(names.iter().zip(&by_producer).map(|(name, label)| {
        let by_token = match rank_in_name::of(name) {
            rank_in_name::Label::Rank { rank, .. } => Some(rank),
            rank_in_name::Label::Unknown(_) => None,
        };
        match label {
            Label::Role(_) => None,
            Label::Rank { rank, .. } => {
                assert!(by_token.is_none_or(|other| other == *rank), "{name}");
                Some(*rank)
            }
            Label::Unknown(_) => by_token,
        }
    }));
    assert_eq!(
        together,
        Score {
            right: 49,
            missed: vec![LOCAL_RANK.into()],
            wrong: vec![]
        }
    );
    assert_eq!(reason(LOCAL_RANK), "Lightning: local rank 3 counts within its node");

    let alone = score(by_producer.iter().map(|label| match label {
        Label::Rank { rank, .. } => Some(*rank),
        _ => None,
    }));
    assert_eq!(alone.wrong, [""; 0]);
    assert!(alone.right >= 45, "{alone:?}");
}

#[test]
fn roles_of_the_table_are_told() {
    for (name, role, _) in table() {
        let expected: &[&str] = match role.as_str() {
            "trace" => &[],
            "merged" => &["merged"],
            "split" => &["split"],
            "sidecar-ET" => &["execution-trace"],
            "sidecar-capture" => &["capture"],
            "sidecar-text" => &["sidecar"],
            "sidecar-other" => &["events"],
            other => panic!("{name}: {other}"),
        };
        match label(&name) {
            Label::Role(role) => assert!(expected.contains(&role.as_str()), "{name}: {role}"),
            label => assert_eq!(expected, [""; 0], "{name}: {label:?}"),
        }
    }
}

#[test]
fn every_scheme_that_tells_a_rank() {
    for (path, producer, expected) in [
        ("traces/iteration_10/rank3_trace.json.gz", "torchtitan", 3),
        ("traces/iteration_10/replica_1/rank3_trace.json", "torchtitan", 3),
        (
            "iteration_3/r5-2025-8-21-10-11.1724300000123456789.pt.trace.json.gz",
            "torchtune",
            5,
        ),
        ("tb/torch_profile/rank-12.json.gz", "Megatron-LM", 12),
        ("4711_kineto/rank-12.json", "NeMo", 12),
        ("device/rank-12.json", "NeMo", 12),
        (
            "primus-megatron-exp[llama3[8B]]-rank[3].1724300000123456789.pt.trace.json",
            "Primus",
            3,
        ),
        ("run/torch_traces/rank3.42.pt.trace.json", "composer", 3),
        ("ep1-ba42-rank3.pt.trace.json", "composer", 3),
        ("profiler/rank-3-step-120.chrome_trace.json.gz", "OLMo-core", 3),
        (
            "dp0_pp1_tp2_dcp0_ep1_rank7.1724300000123456789.pt.trace.json.gz",
            "vLLM",
            7,
        ),
        (
            "my_run_dp0_pp1_tp2_dcp0_ep1_rank7.1724300000123456789.pt.trace.json.gz",
            "vLLM",
            7,
        ),
        ("vllm-rank-1.1724300000123838034.pt.trace.json.gz", "vLLM", 1),
        ("req-7f3a-5_steps-global-rank3.trace.json.gz", "sglang multimodal", 3),
        ("actor_rank_3.1724300000123456789.pt.trace.json.gz", "slime", 3),
        ("save/actor/prof_rank-3.json.gz", "verl", 3),
        ("save/actor/step_prof_rank-3.json.gz", "verl", 3),
        ("rank_3/llama_ts_20260821_101112_123.pt.trace.json.gz", "ATOM", 3),
        ("rank_3/decode/llama_ts_20260821_101112_123.pt.trace.json.gz", "ATOM", 3),
        ("trace-rank-3.json", "TensorRT-LLM", 3),
        ("lmdeploy_profile_3.json.gz", "lmdeploy", 3),
        ("rank_3.trace.json.gz", "xDiT", 3),
        (
            "rank3_test_overlap_u2_r1_bs1_h24_w128.1724300000123456789.pt.trace.json",
            "xDiT",
            3,
        ),
        (
            "rank3_test_overlap_u2_r1_b1_h24_w128.1724300000123456789.pt.trace.json",
            "xDiT",
            3,
        ),
        ("profiler_trace/rank-3.pt.json.gz", "PARAM", 3),
        ("device.3.json", "chakra", 3),
        ("rank-0.Mar_18_14_37_22.4155151.pt.trace.json.gz", "HTA", 0),
        ("inference_rank_3.json.gz", "HTA", 3),
        ("rank3/trace/pt.trace.json", "aorta", 3),
        ("rank_03/trace_step5.json", "aorta", 3),
        ("rank3_trace.json", "TraceLens", 3),
        ("rank_3.json", "TraceFusion", 3),
        (
            "ubuntu-latest.3000020.1/ubuntu-latest/3000020_results.json",
            "rocprofv3",
            1,
        ),
        ("out/n01.site.org.300.7/n01/300_results.db", "rocprofv3", 7),
        ("trace-r3.json", "a script", 3),
    ] {
        assert_eq!(rank(path), (expected, format!("{producer}: rank {expected}")), "{path}");
    }
}

#[test]
fn every_scheme_without_a_rank_says_so() {
    for (path, expected) in [
        (
            "n01_12345.1724300000123456789.pt.trace.json.gz",
            "torch.profiler: the name has pid 12345 but no rank",
        ),
        (
            "n01_12345.1724300000123.pt.trace.json",
            "torch.profiler: the name has pid 12345 but no rank",
        ),
        (
            "profile_traces/n01_7.1724300000123456789.pt.trace.json",
            "fms-fsdp: the name has pid 7 but no rank",
        ),
        (
            "libkineto_activities_12345.json",
            "kineto: the name has pid 12345 but no rank",
        ),
        (
            "libkineto_trace_node01_12345.json",
            "dynolog: the name has pid 12345 but no rank",
        ),
        (
            "libkineto_trace_12345.json",
            "dynolog: the name has pid 12345 but no rank",
        ),
        (
            "gputrace_10.0.0.7_1724300000_12345.json",
            "Ray: the name has pid 12345 but no rank",
        ),
        (
            "trace_12345.json",
            "kineto: the number is a pid, if Kineto named the file on demand",
        ),
        (
            "run_12345.pt.trace.json",
            "kineto: the number is a pid, if Kineto named the file on demand",
        ),
        (
            "3_results.json",
            "rocprofv3: the number is a pid, or a rank that is 0 for all under torchrun",
        ),
        (
            "prof.12345_results.pftrace",
            "rocprofv3: the number is a pid, or a rank that is 0 for all under torchrun",
        ),
        (
            "n01.300.1/n01/301_results.json",
            "rocprofv3: the number is a pid, or a rank that is 0 for all under torchrun",
        ),
        ("out_results.json", "rocprofv3: one name for all processes"),
        ("results.json", "rocprofv3: one name for all processes"),
        ("trace.json", "RPD: one name for all processes"),
        (
            "app-output/2026-08-21_10.11/perfetto-trace-3.proto",
            "rocprof-sys: the number is a pid or a rank, by version and settings",
        ),
        (
            "dump_14680643012345678901_3.json",
            "NCCL profiler: rank 3 counts within a communicator",
        ),
        (
            "pid_12345_time_2026_08_21.paddle_trace.json",
            "Paddle: the name has pid 12345 but no rank",
        ),
        (
            "n01_123_2026_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json",
            "torch_npu: the name has pid 123 but no rank",
        ),
        (
            "plugins/profile/2026_08_21/n01.trace.json.gz",
            "JAX: the name has no rank",
        ),
        (
            "dp_rank_1/n01_12345.1724300000123456789.pt.trace.json.gz",
            "tpu-inference: DP 1 is a coordinate, not the global rank",
        ),
        (
            "1724300000.12-TP-3.trace.json.gz",
            "sglang: TP 3 is a coordinate, not the global rank",
        ),
        (
            "1724300000.12-TP-3-DP-1-PP-0-EP-3-DECODE.trace.json.gz",
            "sglang: TP 3, DP 1, PP 0, EP 3 are coordinates, not the global rank",
        ),
        (
            "tp4_test-TP-1-EP-0.trace.json.gz",
            "sglang: TP 1, EP 0 are coordinates, not the global rank",
        ),
        ("x-DP-1-TP-3.trace.json.gz", ""),
        (
            "rpd-1724300000-TP-3.trace.json.gz",
            "sglang: TP 3 is a coordinate, not the global rank",
        ),
        (
            "pp1_rank_5/llama_ts_20260821_101112_123.pt.trace.json.gz",
            "ATOM: PP 1, TP 5 are coordinates, not the global rank",
        ),
        (
            "dp1_tp5/llama_ts_20260821_101112_123.pt.trace.json.gz",
            "ATOM: DP 1, TP 5, and its DP number counts within one node",
        ),
        ("3_trace.json", "Lightning: local rank 3 counts within its node"),
        (
            "fit-run-7-3-[Strategy]DDP.step.1724300000123456789.pt.trace.json",
            "Lightning: local rank 3 counts within its node",
        ),
        (
            "fit-profiler-[Strategy]SingleDeviceStrategy-ts.pt.trace.json",
            "Lightning: the name has no rank",
        ),
        (
            "profile_12345.json",
            "accelerate: 12345 is a rank or a pid: no file of the folder has 0",
        ),
        ("trace_step_4.json", "a script: the number is a step"),
        ("what_is_this.json", ""),
    ] {
        assert_eq!(reason(path), expected, "{path}");
    }
}

#[test]
fn files_that_are_no_ranks_traces() {
    for (path, role) in [
        ("merged-1724300000.12.trace.json.gz", "merged"),
        ("rank3_merged_trace.json", "merged"),
        ("merged.proto", "merged"),
        ("capture_traces/graph_capture_rank_3.1.json.gz", "capture"),
        ("capture_traces/bs_1_q_2_rank3.json.gz", "capture"),
        (
            "rank_0/capture_graph_llama_ts_20260821_101112_123.pt.trace.json.gz",
            "capture",
        ),
        ("graph_capture_profile/cuda_graph_capture-x-TP-1.json.gz", "capture"),
        ("graph_capture_profile/deep/x-TP-1.trace.json.gz", "capture"),
        ("steady_state_decode_only_rank_3.trace.json.gz", "split"),
        ("prefilldecode_steady_state_1_rank_3.trace.json.gz", "split"),
        ("rank_0.trace_annotation_iteration_3.json.gz", "split"),
        (
            "pip-test-0_84217.async_llm.1724300000123456789.pt.trace.json.gz",
            "front-end",
        ),
        ("rank3.pt.trace.json.tmp", "partial"),
        ("123456_chakra/rank-3.json", "execution-trace"),
        ("chakra/rank-3.json.gz", "execution-trace"),
        ("host/rank-3.json", "execution-trace"),
        ("host.3.json", "execution-trace"),
        ("linked.3.json", "execution-trace"),
        ("chakra_trace.3.et", "execution-trace"),
        ("llama_rank_3__et.json", "execution-trace"),
        ("run1/traces/ep1-ba42-rank3.json", "events"),
        ("rank3_stacks.txt", "sidecar"),
        ("rank3_key_averages.txt", "sidecar"),
        ("profiler_out_3.txt", "sidecar"),
        ("proton_3", "sidecar"),
        ("proton_worker_3.hatchet", "sidecar"),
        ("wall-clock-3.json", "sidecar"),
        ("rank3_memory_snapshot.pickle", "memory-snapshot"),
        ("1724300000.12-TP-3-memory-decode.pickle", "memory-snapshot"),
        ("nccl_trace_rank_3", "flight-recorder"),
        ("nccl_trace_rank_container-node02_5", "flight-recorder"),
    ] {
        assert_eq!(label(path), Label::Role(role.into()), "{path}");
    }
    for path in [
        "unmerged_rank3.json",
        "capture-rank3.json",
        "x.tmp.json",
        "merged/rank_3.json",
        "steady_state/rank_3.json",
        "proton_run/rank_3.json",
        "proton_rank_3.json",
    ] {
        assert!(!matches!(label(path), Label::Role(_)), "{path}");
    }
}

#[test]
fn a_word_before_the_rank_makes_it_another_rank() {
    for path in [
        "local-rank-3.json",
        "my-local-rank-3.json",
        "dp-rank-1.1724300000123456789.pt.trace.json",
        "gpu_rank_3.1724300000123456789.pt.trace.json",
        "from-rank-0-to-rank-1.json",
        "primus-megatron-exp[a-rank[9]]-rank[3].1724300000123456789.pt.trace.json",
        "torch_traces/rank3.1724300000123456789.pt.trace.json",
        "prank3_trace.json",
        "rank4294967296_trace.json",
        "local_rank_3/trace.json",
    ] {
        assert!(matches!(label(path), Label::Unknown(_)), "{path}: {:?}", label(path));
    }
    // A bare number is no pid where its word says that it is the rank.
    assert_eq!(reason("trace_rank_3.json"), "");
}

#[test]
fn numbers_from_0_are_no_pids() {
    let ranks = labels(&[
        "a/profile_0.json",
        "a/profile_1.json",
        "a/profile_3.json",
        "b/profile_1.json",
    ]);
    assert!(matches!(&ranks[2], Label::Rank { rank: 3, evidence, .. }
        if evidence == "accelerate: rank 3, since its folder's numbers begin at 0"));
    assert!(matches!(&ranks[3], Label::Unknown(_)));
}

#[test]
fn groups_are_steps_as_numbers_and_captures() {
    assert_eq!(group("traces/iteration_10/rank3_trace.json.gz"), None);
    assert_eq!(
        group("traces/iteration_0010/rank3_trace.json.gz"),
        Some("traces/iteration_10".into())
    );
    assert_eq!(group("p/rank-3-step-0120.chrome_trace.json"), Some("p step 120".into()));
    assert_eq!(
        group("torch_traces/rank3.42.pt.trace.json"),
        Some("torch_traces step 42".into())
    );
    assert_eq!(group("out/rank_3/trace_step5.json"), Some("out/rank_* step 5".into()));
    assert_eq!(
        group("out/n01.300.1/n01/300_results.json"),
        group("out/n02.311.9/n02/311_results.json")
    );
    assert_eq!(
        group("rank_3/a_ts_20260821_101112_123.pt.trace.json"),
        group("rank_12/a_ts_20260821_101113_007.pt.trace.json")
    );
}

#[test]
fn settings_make_ranks_of_coordinates() {
    let sizes = Sizes::read("tp=8,pp=2,ep=8", "pp,tp", "").unwrap();
    let paths = [
        "1724300000.12-TP-3-PP-1-EP-3-DECODE.trace.json.gz",
        "1724300000.12-TP-3-PP-1-EP-3-EXTEND.trace.json.gz",
        "1724300000.12-TP-3.trace.json.gz",
        "1724300000.12-TP-9-PP-1.trace.json.gz",
        "pp1_rank_5/llama_ts_20260821_101112_123.pt.trace.json.gz",
        "pp0_rank_0/llama_ts_20260821_101112_456.pt.trace.json.gz",
    ];
    let labels = all(&schemes(), &sizes, &paths.map(|path| (path, false)));
    let claim = |rank, group: &str, evidence: &str| Label::Rank {
        rank,
        world_size: Some(16),
        group: Some(group.into()),
        node: None,
        evidence: evidence.into(),
    };
    assert_eq!(
        labels,
        [
            claim(
                11,
                "capture 1724300000.12 decode",
                "sglang: TP 3, PP 1, EP 3 make rank 11 in the order pp,tp"
            ),
            claim(
                11,
                "capture 1724300000.12 extend",
                "sglang: TP 3, PP 1, EP 3 make rank 11 in the order pp,tp"
            ),
            Label::Unknown("sglang: TP 3: the name has no pp, and pp has size 2".into()),
            Label::Unknown("sglang: TP 9, PP 1: tp 9 is outside of the setting sizes, tp=8".into()),
            claim(13, "pp*_rank_*", "ATOM: PP 1, TP 5 make rank 13 in the order pp,tp"),
            claim(0, "pp*_rank_*", "ATOM: PP 0, TP 0 make rank 0 in the order pp,tp"),
        ]
    );
}

#[test]
fn a_site_adds_schemes_of_its_own() {
    let mut schemes = read("our cluster | trace | gpu{local-rank}@n{node-rank}.json | the scheduler's prolog").unwrap();
    schemes.extend(self::schemes());
    let sizes = Sizes::read("", "", "4").unwrap();
    let labels = all(&schemes, &sizes, &[("gpu2@n03.json", false), ("gpu4@n03.json", false)]);
    assert!(matches!(&labels[0], Label::Rank { rank: 14, evidence, .. }
        if evidence == "our cluster: local rank 2 of node 3"));
    assert_eq!(
        labels[1],
        Label::Unknown(
            "our cluster: local rank 4 of node 3: local rank 4 is outside of the setting gpus-per-node, 4".into()
        )
    );
}

#[test]
fn odd_names_are_names_like_others() {
    assert_eq!(rank("a\n\u{1b}[31m/rank3_trace.json").0, 3);
    let odd = "\u{fffd}[\u{7}*?-rank-4294967295.1724300000123456789.pt.trace.json";
    assert_eq!(rank(odd), (u32::MAX, "vLLM: rank 4294967295".into()));
}

#[test]
fn many_and_long_names_take_linear_time() {
    assert_eq!(labels(&[]), []);
    let many: Vec<String> = (0..10_000).map(|rank| format!("x/profile_{rank}.json")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let ranks: BTreeMap<u32, usize> = labels(&many)
        .into_iter()
        .filter_map(|label| match label {
            Label::Rank { rank, .. } => Some((rank, 1)),
            _ => None,
        })
        .collect();
    assert_eq!(ranks.len(), 10_000);
    for long in [
        "1".repeat(4096),
        "_1".repeat(2048),
        "a/".repeat(2048),
        "merged".repeat(682),
        "-rank-".repeat(682),
        "rank_1_".repeat(585) + ".json",
        "(".repeat(4096),
        "\u{fffd}".repeat(1365),
        "{...}".repeat(819),
        "graph_".repeat(682) + ".json.gz",
    ] {
        assert!(!matches!(label(&long), Label::Rank { .. }), "{long}");
    }
    assert_eq!(rank(&format!("{}/rank3_trace.json", "x".repeat(4000))).0, 3);
}
