//! What the members of a trace say, apart from the bindings: plain functions over text.

use crate::group::Group;
use serde_json::Value;

/// What the `distributedInfo` members of one trace come to.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// All of them name this rank. The world size is that of the last, as JSON readers keep the last.
    Rank { rank: u32, world_size: Option<u32> },
    /// There is no such member, or none with a rank; the text says which.
    Absent(String),
    /// One of them names no rank that can be, or two disagree; the text says which.
    Unreadable(String),
}

/// Reads the JSON texts of all `distributedInfo` members of a trace, in file order.
pub fn read(members: &[String]) -> Verdict {
    let ranks = match members.iter().map(|text| rank_of(text)).collect::<Result<Vec<_>, _>>() {
        Ok(ranks) => ranks,
        Err(reason) => return Verdict::Unreadable(format!("distributedInfo: {reason}")),
    };
    // Members without a rank leave it to those that have one.
    let ranks: Vec<(u32, Option<u32>)> = ranks.into_iter().flatten().collect();
    let Some(&(rank, world_size)) = ranks.last() else {
        return Verdict::Absent(match members.is_empty() {
            true => "no distributedInfo".into(),
            false => "distributedInfo: it has no rank".into(),
        });
    };
    match ranks.iter().find(|(other, _)| *other != rank) {
        Some((other, _)) => Verdict::Unreadable(format!(
            "two distributedInfo members disagree: rank {other} and rank {rank}"
        )),
        None => Verdict::Rank { rank, world_size },
    }
}

/// Rank and world size of one `distributedInfo`; none if it has no rank.
fn rank_of(text: &str) -> Result<Option<(u32, Option<u32>)>, String> {
    let info: Value = serde_json::from_str(text).map_err(|e| format!("not JSON ({e})"))?;
    let info = info.as_object().ok_or("not an object")?;
    let Some(rank) = info.get("rank") else {
        return Ok(None);
    };
    // Profilers started before init_process_group write rank -1 of 0 (facts/traces.md, B6).
    let rank = small_integer(rank).ok_or_else(|| format!("rank {rank} is no rank"))?;
    let world_size = match info.get("world_size") {
        None => None,
        Some(size) => Some(small_integer(size).ok_or_else(|| format!("world size {size} is no world size"))?),
    };
    let world_size = match info.get("pg_config").and_then(Group::of_config) {
        Some(group) => group.world_size_of(rank, world_size)?,
        None => world_size,
    };
    match world_size {
        Some(size) if rank >= size => Err(format!("rank {rank} is outside the world of {size}")),
        _ => Ok(Some((rank, world_size))),
    }
}

fn small_integer(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|n| u32::try_from(n).ok())
}

/// The claim's basis, for people.
pub fn evidence(source: &str, rank: u32, world_size: Option<u32>) -> String {
    match world_size {
        Some(size) => format!("{source}: rank {rank} of {size}"),
        None => format!("{source}: rank {rank}"),
    }
}

/// The node, from the JSON texts of all `host_name` members; the last one stands.
pub fn host_name(members: &[String]) -> Option<String> {
    serde_json::from_str(members.last()?)
        .ok()
        .filter(|name: &String| !name.is_empty())
}

/// Whether the places around the `"ph"` keys of a trace show events, all of them, and no complete (`X`) event.
/// `limit` is how many places were asked for: as many as that means that more may follow.
pub fn only_metadata<'a>(places: impl Iterator<Item = &'a str>, limit: usize) -> bool {
    let mut events = 0;
    for around in places {
        events += 1;
        if holds_complete_event(around) {
            return false;
        }
    }
    (1..limit).contains(&events)
}

/// Finds `"ph":"X"` with any space around the colon.
fn holds_complete_event(text: &str) -> bool {
    text.split("\"ph\"").skip(1).any(|rest| {
        rest.trim_start()
            .strip_prefix(':')
            .is_some_and(|value| value.trim_start().starts_with("\"X\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(members: &[&str]) -> Verdict {
        read(&members.iter().map(|m| m.to_string()).collect::<Vec<_>>())
    }

    fn reason(members: &[&str]) -> String {
        match read_all(members) {
            Verdict::Unreadable(reason) => reason,
            other => panic!("{members:?} gave {other:?}"),
        }
    }

    #[test]
    fn a_rank_is_read_with_its_world() {
        let expected = Verdict::Rank {
            rank: 3,
            world_size: Some(8),
        };
        assert_eq!(read_all(&[r#"{"backend":"nccl","rank":3,"world_size":8}"#]), expected);
        assert_eq!(
            read_all(&["{\n \"rank\" : 3,\n \"world_size\": 8, \"pg_config\": [{\"ranks\": \"[0, 1]\"}]}"]),
            expected
        );
        assert_eq!(
            read_all(&[r#"{"rank":0}"#]),
            Verdict::Rank {
                rank: 0,
                world_size: None
            }
        );
        assert_eq!(evidence("distributedInfo", 3, Some(8)), "distributedInfo: rank 3 of 8");
        assert_eq!(evidence("x", 3, None), "x: rank 3");
    }

    #[test]
    fn absent_and_unreadable_are_two_things() {
        assert_eq!(read_all(&[]), Verdict::Absent("no distributedInfo".into()));
        assert_eq!(
            read_all(&[r#"{"backend":"nccl"}"#]),
            Verdict::Absent("distributedInfo: it has no rank".into())
        );
        assert_eq!(
            reason(&[r#"{"rank":-1,"world_size":0}"#]),
            "distributedInfo: rank -1 is no rank"
        );
        assert_eq!(
            reason(&[r#"{"rank":8,"world_size":8}"#]),
            "distributedInfo: rank 8 is outside the world of 8"
        );
        assert_eq!(reason(&[r#"{"rank":3.0}"#]), "distributedInfo: rank 3.0 is no rank");
        assert_eq!(reason(&[r#"{"rank":"3"}"#]), "distributedInfo: rank \"3\" is no rank");
        assert_eq!(
            reason(&[r#"{"rank":4294967296}"#]),
            "distributedInfo: rank 4294967296 is no rank"
        );
        assert_eq!(
            reason(&[r#"{"rank":1,"world_size":-8}"#]),
            "distributedInfo: world size -8 is no world size"
        );
        assert_eq!(reason(&["[3]"]), "distributedInfo: not an object");
        assert!(reason(&["{\"rank\":3"]).starts_with("distributedInfo: not JSON"));
    }

    #[test]
    fn the_default_group_must_agree() {
        let info =
            |rank: u32, rest: &str| format!(r#"{{"rank":{rank},{rest}"pg_config":[{{"pg_desc":"default_pg",PG}}]}}"#);
        let with = |text: String, group: &str| text.replace("PG", group);
        for group in [
            r#""pg_size":2,"ranks":[0,1]"#,
            r#""pg_size":2,"ranks":"[0, 1]""#,
            r#""ranks":[0,1]"#,
            r#""pg_size":2"#,
        ] {
            let expected = Verdict::Rank {
                rank: 1,
                world_size: Some(2),
            };
            assert_eq!(
                read_all(&[&with(info(1, r#""world_size":2,"#), group)]),
                expected,
                "{group}"
            );
            assert_eq!(read_all(&[&with(info(1, ""), group)]), expected, "{group}");
        }
        assert_eq!(
            reason(&[&with(info(1, r#""world_size":4,"#), r#""pg_size":2,"ranks":[0,1]"#)]),
            "distributedInfo: world size 4, but default_pg has size 2"
        );
        assert_eq!(
            reason(&[&with(
                info(5, r#""world_size":8,"#),
                r#""ranks":"[0, 1, 2, 3, 4, 6, 7, 8]""#
            )]),
            "distributedInfo: rank 5 is none of the ranks of default_pg"
        );
        assert_eq!(
            reason(&[&with(info(2, ""), r#""pg_size":2"#)]),
            "distributedInfo: rank 2 is outside the world of 2"
        );
    }

    #[test]
    fn a_member_without_a_rank_leaves_it_to_one_that_has_it() {
        let expected = Verdict::Rank {
            rank: 3,
            world_size: Some(8),
        };
        let without = r#"{"backend":"nccl"}"#;
        assert_eq!(read_all(&[without, r#"{"rank":3,"world_size":8}"#]), expected);
        assert_eq!(read_all(&[r#"{"rank":3,"world_size":8}"#, without]), expected);
    }

    #[test]
    fn several_members_must_agree() {
        let three = r#"{"rank":3,"world_size":8}"#;
        assert_eq!(
            read_all(&[three, three]),
            Verdict::Rank {
                rank: 3,
                world_size: Some(8)
            }
        );
        assert_eq!(
            reason(&[three, r#"{"rank":5}"#]),
            "two distributedInfo members disagree: rank 3 and rank 5"
        );
    }

    #[test]
    fn the_node_is_a_string_or_nothing() {
        assert_eq!(
            host_name(&["\"n01\"".into(), "\"n\\u00f6rd\"".into()]),
            Some("nörd".into())
        );
        assert_eq!(host_name(&["7".into()]), None);
        assert_eq!(host_name(&["\"\"".into()]), None);
        assert_eq!(host_name(&[]), None);
    }

    #[test]
    fn metadata_only_means_some_events_all_seen_none_complete() {
        let metadata = "{ \"ph\": \"M\", \"name\": \"process_name\" }";
        let work = "{ \"ph\" :\n \"X\", \"cat\": \"cpu_op\" }";
        assert!(only_metadata([metadata, metadata].into_iter(), 3));
        assert!(!only_metadata([metadata, work].into_iter(), 3));
        assert!(!only_metadata([metadata, metadata, metadata].into_iter(), 3));
        assert!(!only_metadata(std::iter::empty(), 3));
        assert!(!holds_complete_event("{\"name\": \"X\", \"ph\": \"M\"}"));
    }
}
