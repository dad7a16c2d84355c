//! From the bytes of one exchange to its verdict.

use dynolog::{Answer, Call, Verdict, without_processes};

/// No reply of dynolog is longer than this; four other bytes ("HTTP") read as a length are.
const LONGEST: usize = 1 << 28;

enum Reply<'a> {
    Whole(&'a [u8]),
    /// The peer began a reply and did not end it.
    Cut,
    None,
    /// Not dynolog's protocol, and why.
    Foreign(String),
}

/// The verdict on `call`. `repair` turns any bytes into text: the host's `bytes.repair`.
pub fn of(call: &Call, repair: impl Fn(&[u8]) -> String) -> Answer {
    match find(&call.stdout) {
        Reply::Whole(json) => dynolog::judge(&repair(json)),
        Reply::Foreign(why) => without_processes(Verdict::Rejected, format!("{why}: is this port dynolog's?")),
        Reply::Cut => without_processes(Verdict::Unreachable, "the connection ended in the middle of a reply"),
        Reply::None if call.timed_out => without_processes(
            Verdict::Unreachable,
            "no reply within the time-out: the daemon accepts, but does not answer",
        ),
        Reply::None => match dynolog::one_line(&repair(&call.stderr)) {
            words if words.is_empty() => {
                without_processes(Verdict::Unreachable, "the daemon closed the connection without a reply")
            }
            words => without_processes(Verdict::Unreachable, words),
        },
    }
}

fn find(bytes: &[u8]) -> Reply<'_> {
    if bytes.is_empty() {
        return Reply::None;
    }
    // As a length, `{` and three characters of JSON are more than dynolog ever sends.
    if bytes[0] == b'{' {
        return Reply::Whole(bytes);
    }
    let Some((length, body)) = bytes.split_first_chunk::<4>() else {
        return Reply::Cut;
    };
    match usize::try_from(i32::from_le_bytes(*length)) {
        Ok(length) if length > LONGEST => {
            let text = String::from_utf8_lossy(&bytes[..4]).into_owned();
            Reply::Foreign(format!("the peer began with {text:?}"))
        }
        Ok(length) if (1..=body.len()).contains(&length) => Reply::Whole(&body[..length]),
        Ok(length) if length > body.len() => Reply::Cut,
        _ => Reply::Foreign("the peer announced a reply without content".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(stdout: &[u8], stderr: &str, timed_out: bool) -> Answer {
        let call = Call {
            exit_code: None,
            signal: None,
            timed_out,
            stdout: stdout.to_vec(),
            stderr: stderr.as_bytes().to_vec(),
            attempt: 1,
        };
        of(&call, |data| String::from_utf8_lossy(data).into_owned())
    }

    fn framed(json: &str) -> Vec<u8> {
        [&(json.len() as i32).to_le_bytes()[..], json.as_bytes()].concat()
    }

    #[test]
    fn framed_and_bare_replies_mean_the_same() {
        let reply = r#"{"activityProfilersBusy":1,"activityProfilersTriggered":[7,7],"processesMatched":[7,8,7]}"#;
        let answer = exchange(&framed(reply), "", false);
        assert_eq!(answer.verdict, Verdict::Accepted);
        assert_eq!(
            (&answer.matched, &answer.triggered, answer.busy),
            (&vec![7, 8], &vec![7], 1)
        );
        let bare = exchange(reply.as_bytes(), "", false);
        assert_eq!((bare.verdict, bare.triggered), (Verdict::Accepted, vec![7]));
    }

    #[test]
    fn each_reply_has_its_verdict() {
        for (reply, verdict) in [
            (r#"{"processesMatched":[]}"#, Verdict::Waiting),
            (
                r#"{"activityProfilersBusy":2,"activityProfilersTriggered":[],"processesMatched":[1,2]}"#,
                Verdict::Busy,
            ),
            (
                r#"{"activityProfilersBusy":0,"activityProfilersTriggered":[],"processesMatched":[1]}"#,
                Verdict::Rejected,
            ),
            (r#"{"status":"failed"}"#, Verdict::Rejected),
            ("nonsense", Verdict::Rejected),
        ] {
            assert_eq!(exchange(&framed(reply), "", false).verdict, verdict, "{reply}");
        }
    }

    #[test]
    fn what_is_no_reply_is_told_apart() {
        let http = exchange(b"HTTP/1.1 400 Bad Request\r\n", "", false);
        assert_eq!(http.verdict, Verdict::Rejected);
        assert!(http.reason.contains("\"HTTP\""), "{}", http.reason);
        assert_eq!(exchange(&0i32.to_le_bytes(), "", false).verdict, Verdict::Rejected);
        assert_eq!(exchange(&(-1i32).to_le_bytes(), "", false).verdict, Verdict::Rejected);
        assert_eq!(exchange(&[9, 0], "", false).verdict, Verdict::Unreachable);
        assert_eq!(exchange(&framed("{}")[..5], "", false).verdict, Verdict::Unreachable);
        assert_eq!(exchange(b"", "", true).verdict, Verdict::Unreachable);
        let refused = exchange(b"", "Connection refused\n(os error 111)", false);
        assert_eq!(
            (refused.verdict, refused.reason.as_str()),
            (Verdict::Unreachable, "Connection refused (os error 111)")
        );
        assert!(exchange(b"", "", false).reason.contains("without a reply"));
    }
}
