//! The rank in `record_param_comms` events, for traces without a `distributedInfo`.
//!
//! Their argument "Rank" is the rank inside the event's process group, so the global one only where "Process Group Description" is
//! the default group (facts/dynolog.md section 7). What is at hand is a stretch of text around the key, which may begin and end
//! anywhere. An event counts only if the stretch shows rank and group in one JSON object; all that count must agree.

use crate::group::{DEFAULT, Group, listed};

/// The key to search for, as it stands in the file.
pub const RANK: &str = "\"Rank\"";
/// The key that gives the group's size.
pub const SIZE: &str = "\"Group size\"";

/// What the events of the default group say.
#[derive(Debug, PartialEq, Eq)]
pub enum Proof {
    /// All name this rank; the world size where it stands close by.
    Rank { rank: u32, world_size: Option<u32> },
    /// No event of the default group shows its rank.
    Absent,
    /// They do not agree, or one names what is no rank.
    Contradiction(String),
}

/// Reads the stretches of text around each `RANK`.
pub fn read<'a>(places: impl Iterator<Item = &'a str>) -> Proof {
    let mut proved: Option<(u32, Option<u32>)> = None;
    for object in places.flat_map(|text| objects(text, RANK)).filter(is_of_default_group) {
        let Some(text) = value(&object, "Rank") else { continue };
        let Ok(rank) = text.parse::<u32>() else {
            return Proof::Contradiction(format!("record_param_comms of {DEFAULT} has rank {text}"));
        };
        let group = Group {
            size: value(&object, "Group size").and_then(|size| size.parse().ok()),
            ranks: value(&object, "Process Group Ranks").and_then(|ranks| listed(ranks.trim_matches('"'))),
        };
        let world_size = match group.world_size_of(rank, None) {
            Ok(Some(size)) if rank >= size => {
                return Proof::Contradiction(format!(
                    "record_param_comms: rank {rank} is outside the world of {size}"
                ));
            }
            Ok(size) => size,
            Err(reason) => return Proof::Contradiction(format!("record_param_comms: {reason}")),
        };
        match proved {
            Some((other, _)) if other != rank => {
                return Proof::Contradiction(format!(
                    "record_param_comms events of {DEFAULT} disagree: rank {other} and rank {rank}"
                ));
            }
            Some((_, Some(other))) if world_size.is_some_and(|size| size != other) => {
                return Proof::Contradiction(format!("record_param_comms events of {DEFAULT} name two sizes"));
            }
            _ => proved = Some((rank, proved.and_then(|(_, known)| known).or(world_size))),
        }
    }
    match proved {
        Some((rank, world_size)) => Proof::Rank { rank, world_size },
        None => Proof::Absent,
    }
}

/// The one size that the default group has in the stretches of text around each `SIZE`.
pub fn group_size<'a>(places: impl Iterator<Item = &'a str>) -> Option<u32> {
    let mut sizes = places
        .flat_map(|text| objects(text, SIZE))
        .filter(is_of_default_group)
        .filter_map(|object| value(&object, "Group size")?.parse::<u32>().ok());
    let size = sizes.next()?;
    sizes.all(|other| other == size).then_some(size)
}

/// Members of one object: the keys without quotes, the values as they stand.
type Members<'a> = Vec<(&'a str, &'a str)>;

fn value<'a>(object: &Members<'a>, key: &str) -> Option<&'a str> {
    let mut values = object.iter().filter(|(name, _)| *name == key).map(|(_, value)| *value);
    let value = values.next()?;
    values.all(|other| other == value).then_some(value)
}

fn is_of_default_group(object: &Members) -> bool {
    value(object, "Process Group Description").map(|text| text.trim_matches('"')) == Some(DEFAULT)
}

/// For each place of `key` as a key of an object: the members of that object that stand whole in `text`.
fn objects<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = Members<'a>> {
    text.match_indices(key).map(move |(at, _)| {
        let mut members = before(text, at);
        let mut from = at;
        while let Some((member, end)) = member_at(text, from) {
            let behind = skip_space(text, end);
            match text.as_bytes().get(behind) {
                Some(b',') => from = skip_space(text, behind + 1),
                Some(b'}') => from = text.len(),
                _ => break,
            }
            members.push(member);
        }
        members
    })
}

/// The members of an object before the one at `at`: the longest run of whole members that leads up to it.
fn before(text: &str, at: usize) -> Members<'_> {
    let starts = text[..at].match_indices('"').map(|(start, _)| start);
    let leads_up = |start| {
        let mut members = Vec::new();
        let mut from = start;
        while from < at {
            let (member, end) = member_at(text, from)?;
            let comma = skip_space(text, end);
            if text.as_bytes().get(comma) != Some(&b',') {
                return None;
            }
            members.push(member);
            from = skip_space(text, comma + 1);
        }
        (from == at).then_some(members)
    };
    starts.into_iter().find_map(leads_up).unwrap_or_default()
}

/// The member that begins at `at`, and where it ends.
fn member_at(text: &str, at: usize) -> Option<((&str, &str), usize)> {
    let key_end = string_end(text, at)?;
    let colon = skip_space(text, key_end);
    if text.as_bytes().get(colon) != Some(&b':') {
        return None;
    }
    let start = skip_space(text, colon + 1);
    let end = value_end(text, start)?;
    Some(((&text[at + 1..key_end - 1], &text[start..end]), end))
}

fn skip_space(text: &str, from: usize) -> usize {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Where the string that begins at `at` ends, if it does.
fn string_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Where the value that begins at `start` ends. A number or word must be followed by something: it may be cut else.
fn value_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.get(start)? {
        b'"' => string_end(text, start),
        b'[' | b'{' => {
            let (mut depth, mut at) = (0usize, start);
            loop {
                match bytes.get(at)? {
                    b'"' => {
                        at = string_end(text, at)?;
                        continue;
                    }
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => {
            let length = bytes[start..]
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']' | b'"' | b':'))?;
            (length > 0).then_some(start + length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arguments of a real event, shortened in the middle (facts/tracelens.md section 5).
    const EVENT: &str = r#""args": {
      "External id": 1290,"Collective name": "allreduce", "Process Group Description": "default_pg", "dtype": "BFloat16", "Rank": 3,
      "Input Strides": [[[1]], [], []], "Concrete Inputs": ["", "[]", "8"], "Process Group Name": "0", "Global rank stride": 1,
      "Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4, "Input Dims": [[[2873320]]]
    }
  },"#;

    fn rank(rank: u32, world_size: Option<u32>) -> Proof {
        Proof::Rank { rank, world_size }
    }

    fn read_all(texts: &[&str]) -> Proof {
        read(texts.iter().copied())
    }

    fn contradiction(texts: &[&str]) -> String {
        match read_all(texts) {
            Proof::Contradiction(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_default_groups_rank_is_the_global_one() {
        assert_eq!(read_all(&[EVENT]), rank(3, Some(4)));
        assert_eq!(read_all(&[EVENT, EVENT]), rank(3, Some(4)));
        assert_eq!(
            read_all(&[r#"{"Rank":0,"Process Group Description":"default_pg","Group size":8}"#]),
            rank(0, Some(8))
        );
        assert_eq!(read_all(&[&EVENT.replace("default_pg", "mesh_tp")]), Proof::Absent);
        assert_eq!(
            read_all(&[&EVENT.replace("\"default_pg\"", "\"not default_pg\"")]),
            Proof::Absent
        );
        assert_eq!(read_all(&[]), Proof::Absent);
    }

    /// Wherever the stretch of text is cut, it shows this rank or none.
    #[test]
    fn a_stretch_may_begin_and_end_anywhere() {
        let text = EVENT
            .replace("\"Rank\": 3", "\"Rank\": 13")
            .replace("[0, 1, 2, 3]", "[]")
            .replace(": 4", ": 40");
        let at = text.find(RANK).unwrap();
        let (mut shown, mut absent) = (0, 0);
        for start in 0..=at {
            for end in at..=text.len() {
                match read_all(&[&text[start..end]]) {
                    Proof::Absent => absent += 1,
                    Proof::Rank { rank: 13, world_size } => {
                        assert!(world_size.is_none_or(|size| size == 40), "{}", &text[start..end]);
                        shown += 1;
                    }
                    other => panic!("{other:?}: {}", &text[start..end]),
                }
            }
        }
        assert!(shown > 10_000 && absent > 10_000, "{shown} {absent}");
    }

    #[test]
    fn the_group_must_stand_in_the_same_object() {
        for text in [
            r#"{"Process Group Description": "default_pg"}, {"Rank": 3}"#,
            r#"{"Process Group Description": "default_pg", "x": {"Rank": 3}}"#,
            r#"{"x": {"Process Group Description": "default_pg"}, "Rank": 3}"#,
            r#"{"Rank": 3}, {"Process Group Description": "default_pg"}"#,
            r#"{"Rank": 3, "x": {"Process Group Description": "default_pg"}}"#,
            r#"{"name": "\"Process Group Description\": \"default_pg\", ", "Rank": 3}"#,
            r#"{"x": ["Process Group Description", "default_pg"], "Rank": 3}"#,
            r#"{"Process Group Description": "default_pg", "Process Group Description": "mesh", "Rank": 3}"#,
            r#"{"Process Group Description": "default_pg", "x": "Rank"}"#,
            r#"{"Process Group Description": "default_pg" "Rank": 3}"#,
        ] {
            assert_eq!(read_all(&[text]), Proof::Absent, "{text}");
        }
    }

    #[test]
    fn what_does_not_agree_proves_nothing() {
        assert_eq!(
            contradiction(&[EVENT, &EVENT.replace("\"Rank\": 3", "\"Rank\": 2")]),
            "record_param_comms events of default_pg disagree: rank 3 and rank 2"
        );
        assert_eq!(
            contradiction(&[&EVENT.replace("\"Rank\": 3", "\"Rank\": -1")]),
            "record_param_comms of default_pg has rank -1"
        );
        assert_eq!(
            contradiction(&[&EVENT.replace("\"Group size\": 4", "\"Group size\": 5")]),
            "record_param_comms: default_pg has size 5 but 4 ranks"
        );
        assert_eq!(
            contradiction(&[&EVENT.replace("[0, 1, 2, 3]", "[0, 1, 2, 7]")]),
            "record_param_comms: rank 3 is none of the ranks of default_pg"
        );
        assert_eq!(
            contradiction(&[&EVENT
                .replace("[0, 1, 2, 3]", "[0, ..., 3]")
                .replace("size\": 4", "size\": 3")]),
            "record_param_comms: rank 3 is outside the world of 3"
        );
        let eight = EVENT.replace("[0, 1, 2, 3]", "[]").replace("size\": 4", "size\": 8");
        assert_eq!(
            contradiction(&[EVENT, &eight]),
            "record_param_comms events of default_pg name two sizes"
        );
    }

    #[test]
    fn the_size_may_stand_by_itself() {
        let text = r#"{"Group size": 8, "Process Group Description": "default_pg"}"#;
        assert_eq!(group_size([text, EVENT].into_iter()), None);
        assert_eq!(group_size([text, text].into_iter()), Some(8));
        assert_eq!(group_size([r#"{"Group size": 8}"#].into_iter()), None);
    }

    #[test]
    fn odd_text_is_text() {
        for text in [
            "",
            "\"",
            "\"Rank\"",
            "\"Rank\":",
            "\"Rank\": \"\\",
            "\u{fffd}\"Rank\"\u{fffd}:\u{fffd}3,",
            "\"Rank\":}",
        ] {
            assert_eq!(read_all(&[text]), Proof::Absent, "{text}");
        }
        let quotes = format!("{}\"Rank\": 3, ", "\"".repeat(400));
        assert_eq!(read_all(&[&quotes]), Proof::Absent);
    }
}
