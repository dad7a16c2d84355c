//! Files beside the traces of ranks whose names say what they are (facts/traces.md section B, rule 5).

use crate::token::lower_words;

/// Words in a row, in the file name, and the role that they give.
const BY_FILE: &[(&[&str], &str)] = &[
    (&["merged"], "merged"),
    (&["steady", "state"], "split"),
    (&["trace", "annotation"], "split"),
    (&["async", "llm"], "front-end"),
    (&["memory", "snapshot"], "memory-snapshot"),
    (&["key", "averages"], "sidecar"),
    (&["nccl", "trace", "rank"], "flight-recorder"),
];

/// Words in a row, in the file name or a folder's.
const ANYWHERE: &[(&[&str], &str)] = &[
    (&["graph", "capture"], "capture"),
    (&["capture", "graph"], "capture"),
    (&["capture", "traces"], "capture"),
    (&["chakra"], "execution-trace"),
];

/// Endings of files that hold no trace.
const SIDECARS: &[&str] = &[".txt", ".pickle", ".pkl", ".csv", ".log"];

/// The role that the names of `folders` and of `file` give, if any.
pub fn of(folders: &[&str], file: &str) -> Option<&'static str> {
    let lower = file.to_lowercase();
    if lower.ends_with(".tmp") {
        return Some("partial");
    }
    let words = lower_words(file);
    let stem = lower.strip_suffix(".gz").unwrap_or(&lower);
    if SIDECARS.iter().any(|ending| stem.ends_with(ending)) {
        return Some("sidecar");
    }
    if stem.strip_suffix(".json").is_some_and(|stem| stem.ends_with("__et")) {
        return Some("execution-trace");
    }
    if is_composer_events(&words) {
        return Some("events");
    }
    said_by(&words, BY_FILE)
        .or_else(|| said_by(&words, ANYWHERE))
        .or_else(|| {
            folders
                .iter()
                .rev()
                .find_map(|folder| said_by(&lower_words(folder), ANYWHERE))
        })
}

fn said_by(words: &[String], table: &[(&[&str], &'static str)]) -> Option<&'static str> {
    table
        .iter()
        .find(|(phrase, _)| words.windows(phrase.len()).any(|window| window == *phrase))
        .map(|(_, role)| *role)
}

/// composer's JSONTraceHandler writes `ep1-ba42-rank3.json`: its own events, no profiler's (mosaicml/composer). The profiler's
/// trace of the same batch ends in `.pt.trace.json`.
fn is_composer_events(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(
        words.as_slice(),
        ["ep", _, "ba", _, "rank", _, "json"] | ["ep", _, "ba", _, "rank", _, "json", "gz"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_what_they_are() {
        for (path, role) in [
            ("merged-170.12.trace.json.gz", "merged"),
            ("rank3_merged_trace.json", "merged"),
            ("merged.proto", "merged"),
            ("capture_traces/graph_capture_rank_3.1.json.gz", "capture"),
            ("capture_traces/bs_1_q_2_rank3.json.gz", "capture"),
            ("graph_capture_profile/cuda_graph_capture-x-TP-1.json.gz", "capture"),
            ("steady_state_decode_only_rank_3.trace.json.gz", "split"),
            ("rank_0.trace_annotation_iteration_3.json.gz", "split"),
            ("h_84217.async_llm.170.pt.trace.json.gz", "front-end"),
            ("rank3.pt.trace.json.tmp", "partial"),
            ("123456_chakra/rank-3.json", "execution-trace"),
            ("llama_rank_3__et.json", "execution-trace"),
            ("run1/traces/ep1-ba42-rank3.json", "events"),
            ("rank3_stacks.txt", "sidecar"),
            ("rank3_memory_snapshot.pickle", "sidecar"),
            ("nccl_trace_rank_3", "flight-recorder"),
        ] {
            let parts: Vec<&str> = path.split('/').collect();
            assert_eq!(
                of(&parts[..parts.len() - 1], parts[parts.len() - 1]),
                Some(role),
                "{path}"
            );
        }
    }

    #[test]
    fn other_names_say_nothing() {
        for file in [
            "rank-3.json",
            "unmerged_rank3.json",
            "capture-rank3.json",
            "ep1-ba42-rank3.pt.trace.json",
            "x.tmp.json",
        ] {
            assert_eq!(of(&["merged", "steady_state"], file), None, "{file}");
        }
    }
}
