use super::label::{Label, of};

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
    assert_eq!(claim("rank_3_and_rank_3.json").0, 3);
}

#[test]
fn ranks_in_folders_share_a_group() {
    let group = Some("run/rank_*/trace".to_string());
    assert_eq!(claim("run/rank_3/trace/pt.trace.json").1, group);
    assert_eq!(claim("run/rank_12/trace/pt.trace.json").1, group);
    assert_eq!(
        claim("out/pp0_tp0_rank_0/m_ts_1.json").1,
        claim("out/pp1_tp1_rank_5/m_ts_2.json").1
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
    assert_eq!(claim("rank_0_step_002.json.gz").1, Some("step 2".into()));
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
        reason("out/pp1_rank_5/llama_ts_20260821_101112_123.pt.trace.json.gz"),
        "pp 1, rank 5 are coordinates, not a global rank"
    );
    assert_eq!(
        reason("send_rank0_to_rank1.json"),
        "the name holds several ranks: rank0, rank1"
    );
    assert_eq!(reason("libkineto_trace_node01_12345.json"), "");
    assert_eq!(reason(""), "");
}

#[test]
fn odd_paths_are_names_like_others() {
    assert_eq!(claim("a\n\u{1b}[31m/rank[3]\u{7}.json").0, 3);
    assert_eq!(claim("\u{fffd}\u{fffd}rank_4294967295.json").0, u32::MAX);
    assert_eq!(reason("rank_4294967296.json"), "");
    assert_eq!(claim(&format!("{}/rank_3.json", "x".repeat(4000))).0, 3);
    assert_eq!(claim(&format!("{}/rank_3.json", "rank_1/".repeat(500))).0, 3);
    assert_eq!(claim("/rank_3.json").0, 3);
    assert_eq!(reason(&"1_".repeat(2048)), "");
}
