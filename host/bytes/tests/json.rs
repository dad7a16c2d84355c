//! RFC 8259, what is learned on the way, and who hears it.

use super::*;
use proptest::prelude::*;

/// Documents every reader accepts.
const GOOD: &[&str] = &[
    "{}",
    "[]",
    "[[]]",
    "[{}]",
    "{\"\":0}",
    "0",
    "-0.5e-3",
    "true",
    "false",
    "null",
    "\"\"",
    "\"x\"",
    " [1] ",
    "\n[\t1\r\n,2 ]\n",
    "[1,2]",
    "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"e\"}",
    "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"]",
    "[\"\\ud83d\\ude00\"]",
    "[\"\u{7f}\u{2028}\u{1F600}\"]",
    "{\"a\":1,\"a\":2}",
    "[18446744073709551616]",
    "[-0]",
    "[1E+2]",
    "[\"\\u0061\"]",
    "[\"a\\\\\"]",
];

/// Documents RFC 8259 forbids.
const BAD: &[&str] = &[
    "",
    " ",
    "[",
    "{",
    "]",
    "}",
    "[1",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "\"",
    "\"a",
    "[\"a",
    "[\"\\",
    "[1,",
    "[,1]",
    "[1,,2]",
    "[1,]",
    "{,}",
    "{\"a\":1,}",
    "{\"a\":1,,\"b\":2}",
    "{a:1}",
    "{1:1}",
    "{'a':1}",
    "['a']",
    "{\"a\" 1}",
    "{\"a\"::1}",
    "{\"a\":}",
    "{\"a\",1}",
    "[1 2]",
    "[\"a\" \"b\"]",
    "[1}",
    "{\"a\":1]",
    "[1]]",
    "{}}",
    "{}{}",
    "[][]",
    "1 2",
    "[01]",
    "[1.]",
    "[.5]",
    "[+1]",
    "[-]",
    "[1e]",
    "[0x1]",
    "[NaN]",
    "[Infinity]",
    "[-Infinity]",
    "[nul]",
    "[nulll]",
    "[True]",
    "[tru",
    "nul",
    "[\"\\x41\"]",
    "[\"\\u12\"]",
    "[\"\\u12g4\"]",
    "[\"\\'\"]",
    "[\"\n\"]",
    "[\"\t\"]",
    "[\"\u{0}\"]",
    "[\u{1}]",
    "\u{FEFF}[]",
    "[1]\u{0}",
    "[\u{a0}1]",
    "[1]//",
    "[1e400]",
    "[\"\\ud800\"]",
    "[\"\\udc00\"]",
    "[\"\\ud800\\ud800\"]",
    "[\"\\udc00\\ud800\"]",
    "[\u{c}1]",
    "[1\u{1a}2]",
    "{\"a\":\"b\"c}",
    "[\"a\"1]",
    "[1\"a\"]",
    "[true\"\"]",
    "[\\n]",
    "*",
    "{\"a\":1 \"b\":2}",
    "[1:2]",
];

#[test]
fn the_grammar_is_that_of_rfc_8259() {
    let readers = Readers {
        spreadsheet: false,
        perfetto: false,
    };
    let options = Options {
        readers,
        ..Options::default()
    };
    for reach in [Reach::default(), TINY] {
        let scanned = |data: &[u8]| scan_within(data, &options, &mut (), reach).unwrap();
        for good in GOOD {
            let findings = scanned(good.as_bytes());
            assert_eq!((findings.verdict, findings.reason), (Verdict::Clean, None), "{good}");
        }
        for bad in BAD {
            assert_ne!(scanned(bad.as_bytes()).verdict, Verdict::Clean, "{bad:?}");
        }
    }
}

#[test]
fn documents_nest_as_deep_as_readers_read() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert_eq!(scanned_tiny(nested(1024).as_bytes()).verdict, Verdict::Clean);
    let findings = scanned_tiny(nested(1025).as_bytes());
    assert_eq!(findings.verdict, Verdict::Refused);
    assert_eq!(
        findings.reason.as_deref(),
        Some("nested more than 1024 deep, at byte 1024 (line 1, column 1025)")
    );
}

#[test]
fn a_refusal_names_its_place_and_keeps_what_was_learned() {
    let findings = scanned(b"{\"rank\":3,\n\"a\":[1 2],\"later\":4}");
    assert_eq!(findings.verdict, Verdict::Refused);
    let reason = "expected ',' or the end of the container, found '2', at byte 18 (line 2, column 8)";
    assert_eq!(findings.reason.as_deref(), Some(reason));
    assert_eq!(findings.flaws.listed.len(), 1);
    assert_eq!(
        findings.members,
        [Member {
            key: "rank".into(),
            text: "3".into()
        }]
    );
    assert_eq!(findings.keys, ["rank", "a"]);
    assert_eq!(findings.root, Some(Root::Object));
}

#[test]
fn members_are_found_before_and_after_a_long_array_and_keep_their_text() {
    let events = (0..20_000)
        .map(|number| format!("{{\"ts\":{number},\"args\":{{\"rank\":9}}}}"))
        .collect::<Vec<_>>()
        .join(",");
    let data = format!(
        "{{\"schemaVersion\": 1,\"traceEvents\":[{events}],\"distributedInfo\":{{\"rank\": 2, \"x\":[1]}} ,\"na\\u006de\":\"t\",\
         \"distributedInfo\":{{\"rank\":3}}}}"
    );
    let findings = scanned(data.as_bytes());
    assert_eq!(findings.verdict, Verdict::Clean);
    let members: Vec<_> = findings
        .members
        .iter()
        .map(|member| (member.key.as_str(), member.text.as_str()))
        .collect();
    assert_eq!(
        members,
        [
            ("schemaVersion", "1"),
            ("distributedInfo", "{\"rank\": 2, \"x\":[1]}"),
            ("name", "\"t\""),
            ("distributedInfo", "{\"rank\":3}")
        ]
    );
    assert_eq!(
        findings.keys,
        ["schemaVersion", "traceEvents", "distributedInfo", "name"]
    );
    assert_eq!(findings.warnings.len(), 1);
    assert!(
        findings.warnings[0].contains("distributedInfo"),
        "{:?}",
        findings.warnings
    );
    assert_eq!(findings.head, &data.as_bytes()[..LONGEST_END]);
    assert_eq!(findings.tail, &data.as_bytes()[data.len() - LONGEST_END..]);
}

#[test]
fn large_integers_are_warned_of() {
    let findings = scanned(b"[9223372036854775808, 99999999999999999999, 1]");
    assert_eq!(findings.verdict, Verdict::Clean);
    assert_eq!(findings.warnings.len(), 2);
}

/// Writes down all it hears.
#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    const MAX_DEPTH: usize = 3;

    fn begin(&mut self, structure: Structure, depth: usize, key: Option<&[u8]>) -> bool {
        let key = key.map(String::from_utf8_lossy);
        self.0.push(format!("begin {structure:?} {depth} {key:?}"));
        key.as_deref() != Some("skip")
    }

    fn end(&mut self, depth: usize) {
        self.0.push(format!("end {depth}"));
    }

    fn scalar(&mut self, value: Scalar<'_>, depth: usize, key: Option<&[u8]>) {
        self.0
            .push(format!("{value:?} {depth} {:?}", key.map(String::from_utf8_lossy)));
    }
}

#[test]
fn an_observer_hears_what_it_asked_for() {
    let data = br#"{"skip":{"x":[1]},"list":[{"ph":"X","deep":{"y":1},"n":-1.5},true,[null]],"last":"\u0041"}"#;
    for reach in [Reach::default(), TINY] {
        let mut notes = Notes::default();
        scan_within(&data[..], &Options::default(), &mut notes, reach).unwrap();
        let expected = [
            "begin Object 1 None",
            "begin Object 2 Some(\"skip\")",
            "begin Array 2 Some(\"list\")",
            "begin Object 3 None",
            "String([88]) 3 Some(\"ph\")",
            "Number([45, 49, 46, 53]) 3 Some(\"n\")",
            "end 3",
            "Bool(true) 2 None",
            "begin Array 3 None",
            "Null 3 None",
            "end 3",
            "end 2",
            "String([92, 117, 48, 48, 52, 49]) 1 Some(\"last\")",
            "end 1",
        ];
        assert_eq!(notes.0, expected);
    }
}

proptest! {
    #[test]
    fn verdicts_are_those_of_serde_json(text in "[\\[\\]{}:,\"\\\\a1e.\\- tn]{0,24}") {
        // serde_json is as strict, but for the numbers and escapes that it leaves alone, none of which occur here.
        let valid = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        let findings = scanned(text.as_bytes());
        prop_assert_eq!(findings.verdict == Verdict::Clean, valid, "{} {:?}", text, findings.reason);
        let tiny = scanned_tiny(text.as_bytes());
        prop_assert_eq!((tiny.verdict, tiny.reason, tiny.flaws), (findings.verdict, findings.reason, findings.flaws));
    }

    #[test]
    fn long_tokens_and_small_windows_change_nothing(
        lengths in prop::collection::vec(0usize..400, 1..8),
        sizes in prop::collection::vec(1usize..50, 1..4),
    ) {
        let items: Vec<_> = lengths.iter().map(|&length| format!("{{\"{}\":\"{}\\n\"}}", "k".repeat(length % 90), "v".repeat(length))).collect();
        let data = format!("{{\"a\":[{}],\"b\":1}}", items.join(", "));
        let findings = scan_within(Pieces::new(data.as_bytes(), &sizes), &Options::default(), &mut (), TINY).unwrap();
        prop_assert_eq!((findings.verdict, findings.reason), (Verdict::Clean, None));
        prop_assert_eq!(findings.keys, ["a", "b"]);
    }
}
