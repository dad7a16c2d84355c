use super::*;
use serde_json::Value;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/dyno/calls.jsonl");

fn repair(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

fn call(exit_code: i32, stdout: &[u8], stderr: &[u8]) -> Call {
    let (stdout, stderr) = (stdout.to_vec(), stderr.to_vec());
    Call {
        exit_code: Some(exit_code),
        signal: None,
        timed_out: false,
        stdout,
        stderr,
        attempt: 1,
    }
}

fn recorded(line: &Value) -> Call {
    let exit = line["exit"].as_str().unwrap();
    let text = |stream: &str| {
        line[stream]
            .as_str()
            .expect("recorded streams are text")
            .as_bytes()
            .to_vec()
    };
    Call {
        exit_code: exit.parse().ok(),
        signal: None,
        timed_out: exit.starts_with("timeout"),
        stdout: text("stdout"),
        stderr: text("stderr"),
        attempt: 1,
    }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Waiting => "waiting",
        Verdict::Busy => "busy",
        Verdict::Unreachable => "unreachable",
        Verdict::Rejected => "rejected",
    }
}

#[test]
fn every_recorded_call_gets_its_verdict() {
    let lines = std::fs::read_to_string(RECORDED).unwrap();
    let calls: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(calls.len(), 232);
    let mut wrong = Vec::new();
    for line in &calls {
        let answer = of(&recorded(line), repair);
        let expected = &line["expected"];
        let pids = |list: &str| -> Vec<i64> {
            expected[list].as_array().map_or(Vec::new(), |pids| {
                pids.iter().map(|pid| pid.as_i64().unwrap()).collect()
            })
        };
        let right = expected["verdict"] == name(answer.verdict)
            && pids("matched") == answer.matched
            && pids("triggered") == answer.triggered
            && expected["busy"].as_u64().unwrap_or(0) == u64::from(answer.busy);
        if !right {
            wrong.push(format!("{}: {answer:?}, expected {expected}", line["name"]));
        }
        assert!(
            !answer.reason.is_empty() && !answer.reason.contains('\n'),
            "{}: {:?}",
            line["name"],
            answer.reason
        );
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn refusals_quote_dyno() {
    let refused = call(
        101,
        b"response length = 18\nresponse = {\"status\":\"error\"}\n",
        b"\nthread 'main' panicked at src/x.rs:1:1:\nx\n",
    );
    assert_eq!(of(&refused, repair).reason, "the daemon answered: status error");
    let usage = call(
        2,
        b"",
        b"error: Invalid value \"5s\" for '--duration-ms'\n\nFor more information try --help\n",
    );
    assert_eq!(
        of(&usage, repair).reason,
        "error: Invalid value \"5s\" for '--duration-ms'"
    );
}

#[test]
fn a_flag_that_this_dyno_lacks_says_how_to_go_on() {
    let old = call(2, b"", b"error: Found argument '--fail-on-no-process' which wasn't expected, or isn't valid in this context\n\nUSAGE:\n");
    let answer = of(&old, repair);
    assert_eq!(answer.verdict, Verdict::Rejected);
    assert!(
        answer.reason.ends_with("leave --fail-on-no-process out"),
        "{}",
        answer.reason
    );
}

#[test]
fn a_whole_reply_decides_even_if_dyno_died_printing_the_rest() {
    let reply = r#"{"activityProfilersTriggered":[41],"processesMatched":[41,42]}"#;
    let stdout = format!("response length = {}\nresponse = {reply}\n", reply.len());
    let answer = of(
        &call(101, stdout.as_bytes(), b"failed printing to stdout: Broken pipe"),
        repair,
    );
    assert_eq!(
        (answer.verdict, answer.triggered, answer.matched),
        (Verdict::Accepted, vec![41], vec![41, 42])
    );
    assert_eq!(
        answer.reason,
        "1 of 2 matched processes triggered: raise --process-limit for the other 1"
    );
}

#[test]
fn any_bytes_are_read() {
    let stdout = b"\xff\xfe config \xf0\x9f\nresponse length = 15\nresponse = {\"status\":\"\xe2\x82\"}\n";
    assert_eq!(
        of(&call(101, stdout, b"\x80\x80"), repair).reason,
        "the daemon answered: status \u{fffd}"
    );
    assert_eq!(
        of(&call(127, b"", b"\xffnot found\n"), repair).reason,
        "\u{fffd}not found"
    );
}

#[test]
fn calls_without_an_exit_code_are_no_answer() {
    let killed = Call {
        exit_code: None,
        signal: Some(9),
        ..call(0, b"", b"")
    };
    let answer = of(&killed, repair);
    assert_eq!(
        (answer.verdict, answer.reason.as_str()),
        (Verdict::Unreachable, "dyno was ended by signal 9 before an answer came")
    );
    assert_eq!(of(&call(0, b"hello\n", b""), repair).verdict, Verdict::Rejected);
}
