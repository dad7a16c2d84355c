//! What the numbers in a file or folder name mean.

use crate::words::{Word, words};

/// What a number in a name is.
#[derive(Debug, PartialEq, Clone, Copy)]
pub enum Meaning {
    /// The global rank, and the world size of an `N of M`.
    Rank { rank: u32, world_size: Option<u32> },
    /// A place inside one node or along one axis of parallelism (`dp_rank_1`, `TP-3`): no global rank.
    Coordinate,
    /// A step or iteration of the job.
    Step(u64),
}

/// A word with its number.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Token<'a> {
    pub meaning: Meaning,
    /// As it stands in the name: `rank-3`, `TP-3`, `dp_rank_1`.
    pub text: &'a str,
    /// Byte range of the digits in the name.
    pub digits: (usize, usize),
}

/// Words before `rank` that make it another rank than the global one. A closed list, since any other word may stand there
/// (`trace_rank_1`, `inference_rank_0`, `graph_capture_rank_3`).
const QUALIFIERS: &[&str] = &[
    "local", "node", "host", "machine", "gpu", "device", "cuda", "hip", "group", "subgroup", "pg", "comm", "intra",
    "inter", "dp", "tp", "pp", "ep", "cp", "sp", "mp", "dcp", "pcp", "etp", "edp", "vpp", "tensor", "pipeline",
    "expert", "context", "sequence", "parallel", "ring", "lora", "low", "page",
];

/// Axes of parallelism that stand with a number of their own (facts/traces.md, section B: vLLM, sglang, ATOM).
pub const AXES: &[&str] = &[
    "dp", "tp", "pp", "ep", "cp", "sp", "mp", "dcp", "pcp", "etp", "edp", "vpp",
];

/// Every rank, coordinate and step in `name`, in order.
pub fn tokens(name: &str) -> Vec<Token<'_>> {
    let words = words(name);
    let mut tokens: Vec<Token> = (0..words.len()).filter_map(|at| token_at(name, &words, at)).collect();
    if counts_ranks_in_a_stage(&tokens) {
        for token in tokens
            .iter_mut()
            .filter(|token| matches!(token.meaning, Meaning::Rank { .. }))
        {
            token.meaning = Meaning::Coordinate;
        }
    }
    tokens
}

/// Whether the name gives pipeline stage or replica but no place inside it: then its `rank` is that place. ATOM writes `pp1_rank_5`
/// for TP 5 of stage 1 (ROCm/ATOM model_runner.py), while vLLM's `dp0_pp1_tp5_.._rank13` has the place and the global rank.
fn counts_ranks_in_a_stage(tokens: &[Token]) -> bool {
    let has = |axis: &str| {
        tokens
            .iter()
            .filter(|token| token.meaning == Meaning::Coordinate)
            .any(|token| words(token.text)[0].text.eq_ignore_ascii_case(axis))
    };
    (has("pp") || has("dp")) && !has("tp")
}

/// The token whose word is `words[at]`. The word must begin where a word can begin: directly behind a letter or digit it is the
/// tail of another one (`prank`, `dp0rank3`).
fn token_at<'a>(name: &'a str, words: &[Word<'a>], at: usize) -> Option<Token<'a>> {
    let word = words[at];
    let before = at.checked_sub(1).map(|before| words[before]);
    let number = *words.get(at + 1).filter(|number| number.is_number())?;
    if before.is_some_and(|before| before.end == word.start) {
        return None;
    }
    let lower = word.text.to_ascii_lowercase();
    let separator = &name[word.end..number.start];
    let bracketed = separator == "[";
    if bracketed != name[number.end..].starts_with(']') && bracketed || !matches!(separator, "" | "-" | "_" | "[") {
        return None;
    }
    let token = |meaning, start: usize, end: usize| {
        Some(Token {
            meaning,
            text: &name[start..end],
            digits: (number.start, number.end),
        })
    };
    let end = number.end + usize::from(bracketed);
    match lower.as_str() {
        "rank" | "globalrank" => {
            let qualifier = before.filter(|before| is_joined(name, before, &word) && is_qualifier(before.text));
            if let Some(qualifier) = qualifier {
                return token(Meaning::Coordinate, qualifier.start, end);
            }
            let rank = number.text.parse().ok()?;
            match world_size(name, words, at + 1) {
                Some((size, _)) if size <= rank => None,
                Some((size, end)) => token(
                    Meaning::Rank {
                        rank,
                        world_size: Some(size),
                    },
                    word.start,
                    end,
                ),
                None if ends_at(name, words, at + 1) => {
                    token(Meaning::Rank { rank, world_size: None }, word.start, end)
                }
                None => None,
            }
        }
        "step" | "iteration" | "iter" if ends_at(name, words, at + 1) => {
            token(Meaning::Step(number.text.parse().ok()?), word.start, end)
        }
        axis if AXES.contains(&axis) && ends_at(name, words, at + 1) => token(Meaning::Coordinate, word.start, end),
        _ => None,
    }
}

/// Whether one sign alone stands between two words: `dp_rank`, `local-rank`.
fn is_joined(name: &str, before: &Word, word: &Word) -> bool {
    matches!(&name[before.end..word.start], "_" | "-" | "." | " ")
}

/// Whether a number behind `word` counts within something smaller than the job: a node, a group, an axis of parallelism.
pub fn is_qualifier(word: &str) -> bool {
    QUALIFIERS.iter().any(|qualifier| word.eq_ignore_ascii_case(qualifier))
}

/// Whether the number is not the head of something longer (`rank3b`, `rank0x1f`).
fn ends_at(name: &str, words: &[Word], number: usize) -> bool {
    debug_assert!(words[number].is_number(), "{name}");
    words.get(number + 1).is_none_or(|next| next.start > words[number].end)
}

/// `of M` behind a number: M and where it ends.
fn world_size(name: &str, words: &[Word], number: usize) -> Option<(u32, usize)> {
    let of = words.get(number + 1).filter(|of| of.text.eq_ignore_ascii_case("of"))?;
    let size = words.get(number + 2).filter(|size| size.is_number())?;
    let gaps = [&name[words[number].end..of.start], &name[of.end..size.start]];
    let close = gaps.iter().all(|gap| matches!(*gap, "" | "_" | "-"));
    if !close || !ends_at(name, words, number + 2) {
        return None;
    }
    Some((size.text.parse().ok()?, size.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(name: &str) -> Vec<(u32, Option<u32>, &str)> {
        let rank = |token: &Token<'static>| match token.meaning {
            Meaning::Rank { rank, world_size } => Some((rank, world_size, token.text)),
            _ => None,
        };
        let name: &'static str = name.to_string().leak();
        tokens(name).iter().filter_map(rank).collect()
    }

    #[test]
    fn the_four_forms_in_any_case() {
        assert_eq!(ranks("x-rank[3].7.json"), [(3, None, "rank[3]")]);
        assert_eq!(ranks("rank-3.json.gz"), [(3, None, "rank-3")]);
        assert_eq!(ranks("a_RANK_03.json"), [(3, None, "RANK_03")]);
        assert_eq!(ranks("Rank10"), [(10, None, "Rank10")]);
        assert_eq!(ranks("req-global-rank3.json"), [(3, None, "rank3")]);
        assert_eq!(ranks("rank_4294967295"), [(u32::MAX, None, "rank_4294967295")]);
        assert_eq!(ranks("spår_rank_3.json"), [(3, None, "rank_3")]);
    }

    #[test]
    fn n_of_m_gives_the_world() {
        assert_eq!(ranks("trace_rank_1_of_8.json"), [(1, Some(8), "rank_1_of_8")]);
        assert_eq!(ranks("rank3of8"), [(3, Some(8), "rank3of8")]);
        assert_eq!(ranks("rank_8_of_8"), []);
        assert_eq!(ranks("rank_3_offset_8"), [(3, None, "rank_3")]);
    }

    #[test]
    fn what_only_looks_like_a_rank() {
        for name in [
            "prank3.json",
            "graph3.json",
            "frank-3",
            "ranks_3",
            "rank3b",
            "rank_0x1f",
            "rank",
            "rank_",
            "rank.3",
            "rank[3",
            "rank__3",
            "rank_container-node02_5",
            "rank_99999999999",
            "rank_4294967296",
            "rank_\u{0663}",
            "rank_\n3",
            "dp0rank3",
            "örank3",
            "franc3",
        ] {
            assert_eq!(ranks(name), [], "{name}");
        }
    }

    #[test]
    fn qualified_ranks_and_axes_are_coordinates() {
        for (name, text) in [
            ("dp_rank_1", "dp_rank_1"),
            ("local-rank3.json", "local-rank3"),
            ("gpu-rank3-host_7", "gpu-rank3"),
            ("tensor_parallel_rank_2", "parallel_rank_2"),
            ("170.12-TP-3.trace.json.gz", "TP-3"),
            ("lora_rank_16", "lora_rank_16"),
            ("node_rank_1", "node_rank_1"),
        ] {
            let found = tokens(name);
            assert_eq!(found.len(), 1, "{name}: {found:?}");
            assert_eq!((found[0].meaning, found[0].text), (Meaning::Coordinate, text));
        }
        assert_eq!(
            ranks("dp0_pp0_tp1_dcp0_ep1_rank5.170.pt.trace.json"),
            [(5, None, "rank5")]
        );
    }

    #[test]
    fn a_rank_beside_a_stage_counts_within_it() {
        assert_eq!(ranks("pp1_rank_5"), []);
        assert_eq!(ranks("dp1-rank-5"), []);
        assert_eq!(tokens("pp1_rank_5").len(), 2);
        assert_eq!(ranks("ep1-ba42-rank3"), [(3, None, "rank3")]);
        assert_eq!(ranks("pp1_tp5_rank13"), [(13, None, "rank13")]);
    }
}
