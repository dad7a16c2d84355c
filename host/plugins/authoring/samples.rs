//! What no plugin expects: traces, calls and texts for the conformance checks, and how they are named in messages.

use crate::plugins::{Call, Kind, Trace};

/// A Kineto trace of 1 MiB with GPU events at `path`.
pub(super) fn trace(path: String) -> Trace {
    Trace {
        path,
        kind: Kind::Kineto,
        size: 1 << 20,
        gpu_events: Some(true),
    }
}

/// A first call that ended with 0 and wrote `stdout`.
pub(super) fn call(stdout: Vec<u8>) -> Call {
    Call {
        exit_code: Some(0),
        signal: None,
        timed_out: false,
        stdout,
        stderr: Vec::new(),
        attempt: 1,
    }
}

/// Texts that programs stumble over: nothing, too much, numbers that fit no type, what steers terminals, what has no letters.
pub(super) fn hostile_texts() -> Vec<String> {
    let plain = [
        "",
        " ",
        "/",
        "//////",
        "../../../../etc/passwd",
        "\u{0}",
        "\n",
        "a\nb\r\n\tc",
        "\u{1b}[2J\u{7}rank3.json",
        "\u{fffd}\u{fffd}.json",
        "\u{202e}nosj.3knar",
        "模型/第三/rank３.json",
        "🜲🜳\u{1f468}\u{200d}\u{1f469}.json",
        "e\u{301}\u{301}\u{301}.json",
        "-1",
        "rank-1.json",
        "rank.json",
        "rank[].json",
        "gpu@.json",
        "@",
        "gpu1@@n01.json",
        "rank4294967295.json",
        "rank4294967296.json",
        "rank99999999999999999999999999.json",
        "gpu4294967295@n4294967295.json",
        "0x10",
        "1e9",
        "NaN",
        "\"; DROP TABLE ranks; --",
        "${HOME}/$(id)/%s%n%p",
        "{\"processesMatched\":[",
        "response = {\"processesMatched\":[-1,-1,99999999999999999999]}",
        ",,,,",
        "=",
        "CON.json",
    ];
    let mut texts: Vec<String> = plain.map(str::to_owned).to_vec();
    texts.push("rank".repeat(25_000));
    texts.push("9".repeat(100_000));
    texts.push("a/".repeat(50_000));
    texts.push(format!("{}{}", "[".repeat(50_000), "{\"a\":".repeat(10_000)));
    texts
}

/// Every byte, every pair of a leading byte with each other byte, and sequences cut short: what UTF-8 does not allow, between ASCII.
pub(super) fn no_utf8_bytes() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=255).collect();
    for first in [0xc0, 0xc3, 0xe0, 0xed, 0xf0, 0xf4, 0xff] {
        for second in 0..=255 {
            bytes.extend_from_slice(&[b'r', b'a', b'n', b'k', first, second, b'3', b'"', b'\n']);
        }
    }
    bytes.extend_from_slice(b"response = {\"processesMatched\":[\xff]}\nMatched \xf0\x9f processes\n\xe2\x82");
    bytes
}

/// A name as it can stand in a message: short and quoted.
pub(super) fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}... ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}

/// `traces` as they can stand in a message.
pub(super) fn list(traces: &[Trace]) -> String {
    match traces {
        [] => "an empty list".to_owned(),
        [one] => shown(&one.path),
        many => format!("{} traces", many.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_utf8_are_none() {
        assert!(String::from_utf8(no_utf8_bytes()).is_err());
    }
}
