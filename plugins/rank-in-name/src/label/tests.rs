use super::*;

const NAMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/names/names.tsv");

/// Schemes that only a policy with knowledge of the producer can read.
const NEEDS_THE_PRODUCER: &[&str] = &[
    "lmdeploy_profile_3.json",
    "train-dist_prof-3-training_step.1724300000123456789.pt.trace.json",
    "device.3.json",
    "out/ubuntu.3000020.1/ubuntu/3000020_results.json",
    "trace-r3.json",
];

#[test]
fn no_name_of_the_list_gets_a_wrong_rank() {
    let table = std::fs::read_to_string(NAMES).unwrap();
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("name\trole\trank\tnote"));
    let (mut right, mut missed) = (0, Vec::new());
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, role, rank, _] = columns[..] else {
            panic!("{line}")
        };
        let expected: Option<u32> = if role == "trace" { rank.parse().ok() } else { None };
        match (of(name), expected) {
            (Label::Rank { rank, .. }, Some(expected)) if rank == expected => right += 1,
            (Label::Rank { rank, evidence, .. }, _) => {
                panic!("{name}: claimed {rank} by {evidence}, expected {expected:?}")
            }
            (Label::Role(role), Some(_)) => panic!("{name}: {role}, but it is a trace"),
            (_, Some(_)) => missed.push(name),
            (Label::Unknown(_), None) if role == "trace" => right += 1,
            (Label::Role("merged"), None) if role == "merged" => right += 1,
            (Label::Role("split"), None) if role == "split" => right += 1,
            (label, None) => {
                assert!(role.starts_with("sidecar"), "{name} is {role}, labelled {label:?}");
                right += 1;
            }
        }
    }
    assert_eq!(missed, NEEDS_THE_PRODUCER);
    assert_eq!(right + missed.len(), 50);
}

fn claim(path: &str) -> (u32, Option<String>, String) {
    match of(path) {
        Label::Rank {
            rank, group, evidence, ..
        } => (rank, group, evidence),
        other => panic!("{path}: {other:?}"),
    }
}

fn reason(path: &str) -> String {
    match of(path) {
        Label::Unknown(reason) => reason,
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn the_nearest_name_wins() {
    assert_eq!(claim("node1/rank_3/trace_rank_11.json").0, 11);
    assert_eq!(
        claim("rank_1/rank_3/x.json"),
        (3, Some("rank_*/rank_*".into()), "folder: rank_3".into())
    );
    assert_eq!(claim("torch_profile/rank-3.json.gz"), (3, None, "name: rank-3".into()));
    assert_eq!(claim("r3-2026-8-21.170.pt.trace.json").2, "name: r3");
}

#[test]
fn ranks_in_folders_share_a_group() {
    let group = Some("run/rank_*/trace".to_string());
    assert_eq!(claim("run/rank_3/trace/pt.trace.json").1, group);
    assert_eq!(claim("run/rank_12/trace/pt.trace.json").1, group);
    assert_eq!(
        claim("out/pp0_rank_0/m_ts_1.json").1,
        claim("out/pp1_rank_5/m_ts_2.json").1
    );
    assert_ne!(claim("a/rank_0/x.json").1, claim("b/rank_0/x.json").1);
}

#[test]
fn steps_in_file_names_part_the_groups() {
    assert_eq!(
        claim("profiler/rank-3-step-120.json.gz").1,
        Some("profiler step 120".into())
    );
    assert_eq!(claim("rank_0_step_2.json.gz").1, Some("step 2".into()));
    assert_eq!(claim("run/rank_3/trace_step7.json").1, Some("run/rank_* step 7".into()));
    assert_eq!(claim("iteration_5/rank3_trace.json").1, None);
}

#[test]
fn coordinates_and_contradictions_are_told() {
    assert_eq!(
        reason("170.12-TP-3.trace.json.gz"),
        "TP 3 is a coordinate, not a global rank"
    );
    assert_eq!(
        reason("170-TP-3-DP-1.json"),
        "TP 3, DP 1 are coordinates, not a global rank"
    );
    assert_eq!(
        reason("dp_rank_1/node01_12345.170.pt.trace.json.gz"),
        "dp_rank 1 is a coordinate, not a global rank"
    );
    assert_eq!(
        reason("send_rank0_to_rank1.json"),
        "the name holds several ranks: rank0, rank1"
    );
    assert_eq!(reason("libkineto_trace_node01_12345.json"), "");
    assert_eq!(reason(""), "");
}
