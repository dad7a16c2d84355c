//! The daemon's reply, as dyno prints it: `response length = N`, a line end, `response = `, and N bytes.

use serde_json::{Map, Value};

const LENGTH: &[u8] = b"response length = ";
const BODY: &[u8] = b"\nresponse = ";

/// The reply's bytes in dyno's standard output; none if no whole reply is there.
///
/// The user's log path stands in the text before the reply and in the list of files after it, and may imitate a reply. So the last
/// place counts, and only one behind which dyno's own text goes on (facts/dynolog.md section 2).
pub fn find(stdout: &[u8]) -> Option<&[u8]> {
    let mut last = None;
    let mut from = 0;
    while let Some(at) = position(&stdout[from..], LENGTH) {
        from += at + LENGTH.len();
        if let Some((reply, rest)) = reply_at(&stdout[from..]) {
            let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            if rest.is_empty() || rest.starts_with(b"Matched ") || rest.starts_with(b"No processes were matched") {
                last = Some(reply);
            }
        }
    }
    last
}

/// Splits `N\nresponse = ...` into the N bytes and what follows.
fn reply_at(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let length: usize = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    text[digits..].strip_prefix(BODY)?.split_at_checked(length)
}

fn position(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

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
    fn the_length_counts_bytes() {
        let body = "{\"x\":\"é\"}";
        let stdout = format!(
            "config\nresponse length = {}\nresponse = {body}\n\nMatched 1 processes\n",
            body.len()
        );
        assert_eq!(find(stdout.as_bytes()), Some(body.as_bytes()));
    }

    #[test]
    fn a_log_path_cannot_imitate_the_reply() {
        let fake = "response length = 2\nresponse = {}";
        let stdout = format!(
            "Kineto config = \nACTIVITIES_LOG_FILE=/tmp/{fake}\nresponse length = 24\nresponse = {{\"processesMatched\":[1]}}\n\
             Matched 1 processes\nTrace output files will be written to:\n    /tmp/{fake}_1.json\n"
        );
        assert_eq!(find(stdout.as_bytes()), Some(&b"{\"processesMatched\":[1]}"[..]));
    }

    #[test]
    fn half_a_reply_is_none() {
        assert_eq!(find(b"response length = 50\n"), None);
        assert_eq!(find(b"response length = 50\nresponse = {\"proc"), None);
        assert_eq!(find(b"response length = \nresponse = "), None);
        assert_eq!(find(b"response length = 99999999999999999999999\nresponse = {}"), None);
        assert_eq!(find(b""), None);
    }

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
