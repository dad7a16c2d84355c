//! The daemon's reply to a capture request, read as JSON (facts/dynolog.md section 4).

use serde_json::{Map, Value};

/// Who was matched and who will be traced.
#[derive(Debug, PartialEq)]
pub struct Counts {
    pub matched: Vec<i64>,
    pub triggered: Vec<i64>,
    pub busy: u32,
}

/// Reads a reply; an error says in one line why it is none that dynolog gives to a capture request.
pub fn read(json: &str) -> Result<Counts, String> {
    let reply: Value = serde_json::from_str(json).map_err(|e| format!("the reply is not JSON: {e}"))?;
    let Some(reply) = reply.as_object() else {
        return Err("the reply is not a JSON object".into());
    };
    match (pids(reply, "processesMatched")?, reply.get("status")) {
        (Some(matched), _) => Ok(Counts {
            matched,
            triggered: pids(reply, "activityProfilersTriggered")?.unwrap_or_default(),
            busy: reply
                .get("activityProfilersBusy")
                .and_then(Value::as_u64)
                .map_or(0, saturate),
        }),
        (None, Some(Value::String(status))) => Err(format!("the daemon answered: status {status}")),
        (None, Some(status)) => Err(format!("the daemon answered: status {status}")),
        (None, None) => Err("the reply names no processesMatched: is this port dynolog's?".into()),
    }
}

/// The process ids of one member, each once, in order. One process can be registered under two ancestors.
fn pids(reply: &Map<String, Value>, member: &str) -> Result<Option<Vec<i64>>, String> {
    let list = match reply.get(member) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(format!("{member} in the reply is not a list")),
    };
    let mut pids = Vec::with_capacity(list.len());
    for value in list {
        let pid = value
            .as_i64()
            .ok_or_else(|| format!("{value} in the reply's {member} is no process id"))?;
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    Ok(Some(pids))
}

fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_are_signed_and_stand_once() {
        let counts =
            read(r#"{"processesMatched":[7,-1,7],"activityProfilersTriggered":[7,7],"activityProfilersBusy":1}"#);
        assert_eq!(
            counts,
            Ok(Counts {
                matched: vec![7, -1],
                triggered: vec![7],
                busy: 1
            })
        );
    }

    #[test]
    fn what_dynolog_does_not_say_is_refused_in_one_line() {
        for (json, reason) in [
            ("not json", "the reply is not JSON: expected ident at line 1 column 2"),
            ("[]", "the reply is not a JSON object"),
            ("{}", "the reply names no processesMatched: is this port dynolog's?"),
            (r#"{"status":"failed"}"#, "the daemon answered: status failed"),
            (
                r#"{"processesMatched":null,"status":7}"#,
                "the daemon answered: status 7",
            ),
            (
                r#"{"processesMatched":[1.5]}"#,
                "1.5 in the reply's processesMatched is no process id",
            ),
            (
                r#"{"processesMatched":3}"#,
                "processesMatched in the reply is not a list",
            ),
        ] {
            assert_eq!(read(json), Err(reason.to_string()), "{json}");
        }
    }
}
