//! Each rule of mending and of refusing, one by one.

use super::*;

fn mended_to(data: &str, expected: &str, kinds: &[FlawKind]) {
    let findings = scanned(data.as_bytes());
    assert_eq!(
        (findings.verdict, &findings.reason),
        (Verdict::Damaged, &None),
        "{data}"
    );
    let copy = String::from_utf8(mended(data.as_bytes(), &findings).0).unwrap();
    assert_eq!(copy, expected, "{data}");
    assert_eq!(found_again(data.as_bytes(), &findings), expected.as_bytes(), "{data}");
    assert_eq!(scanned(copy.as_bytes()).verdict, Verdict::Clean, "{copy}");
    let found: Vec<_> = findings.flaws.listed.iter().map(|flaw| flaw.kind).collect();
    assert_eq!(found, kinds, "{data}");
}

fn refused(data: &[u8], part: &str) {
    let findings = scanned(data);
    let reason = findings.reason.unwrap_or_default();
    assert_eq!(findings.verdict, Verdict::Refused, "{}", data.escape_ascii());
    assert!(reason.contains(part), "{}: {reason}", data.escape_ascii());
    assert!(!findings.flaws.listed.is_empty());
}

#[test]
fn strings() {
    use FlawKind::*;
    mended_to("[\"a\tb\nc\rd\"]", r#"["a\tb\nc\rd"]"#, &[ControlCharacter; 3]);
    mended_to(
        "[\"a\0\u{1f}\u{7f}\"]",
        "[\"a\u{FFFD}\u{FFFD}\u{7f}\"]",
        &[ControlCharacter; 2],
    );
    mended_to(
        r#"{"\x41":"C:\Users\q\'s\u12"}"#,
        r#"{"\\x41":"C:\\Users\\q's\\u12"}"#,
        &[IllegalEscape; 5],
    );
    mended_to(
        r#"["\ud800","\udc00\ud83d","\ud83d\ude00"]"#,
        "[\"\u{FFFD}\",\"\u{FFFD}\u{FFFD}\",\"\\ud83d\\ude00\"]",
        &[LoneSurrogate; 3],
    );
    mended_to(
        r#"["\u0001","\b\u001F","\u0009\n\u000d"]"#,
        "[\"\u{FFFD}\",\"\u{FFFD}\u{FFFD}\",\"\\u0009\\n\\u000d\"]",
        &[ControlEscape; 3],
    );
    mended_to(
        "[\"\\\u{1}\"]",
        "[\"\\\\\u{FFFD}\"]",
        &[IllegalEscape, ControlCharacter],
    );
}

#[test]
fn values() {
    use FlawKind::*;
    mended_to(
        "[NaN,-nan,inf,-Infinity,1e400,1.#IND]",
        "[null,null,null,null,null,null]",
        &[NonFiniteNumber; 6],
    );
    mended_to(
        "{\"a\":N/A,\"b\":0x7f,\"c\":ncclFloat32,\"d\":007}",
        r#"{"a":"N/A","b":"0x7f","c":"ncclFloat32","d":"007"}"#,
        &[BareWord; 4],
    );
    mended_to("[+1,.5,-5.,1.e5]", "[1,0.5,-5.0,1.0e5]", &[MalformedNumber; 4]);
    mended_to("{\"a\":,\"b\":}", "{\"a\":null,\"b\":null}", &[MissingValue; 2]);
    mended_to("[caf\u{e9}]", "[\"caf\u{e9}\"]", &[BareWord]);
}

#[test]
fn structure() {
    use FlawKind::*;
    mended_to("[,1,,2, ,]", "[1,2 ]", &[StrayComma; 4]);
    mended_to("{,\"a\":1,,\"b\":2 , }", "{\"a\":1,\"b\":2  }", &[StrayComma; 3]);
    mended_to("[{\"a\":1}\n{\"a\":2}]", "[{\"a\":1}\n,{\"a\":2}]", &[MissingComma]);
    mended_to(
        "{\"a\":1 \"b\":{} \"c\":[]}",
        "{\"a\":1 ,\"b\":{} ,\"c\":[]}",
        &[MissingComma; 2],
    );
    mended_to(
        "{pid:1,tid\": 2,\"ts\":3}",
        "{\"pid\":1,\"tid\": 2,\"ts\":3}",
        &[UnquotedKey; 2],
    );
    mended_to("{\"a\":[1]}\0\0\0", "{\"a\":[1]}", &[TrailingBytes]);
    mended_to("{\"a\":[{\"b\":1}", "{\"a\":[{\"b\":1}]}", &[MissingBracket]);
    mended_to("[\n{\"b\":1},\n", "[\n{\"b\":1}\n]", &[MissingBracket]);
    mended_to("[{\"b\":1},{\"c\":[1,2", "[{\"b\":1}]", &[Cut]);
    mended_to("[{\"b\":1},{\"c\":\0\0\0\0", "[{\"b\":1}]", &[Cut]);
    mended_to("[1,2,37", "[1,2]", &[Cut]);
    mended_to(",{\"a\":1}\n", "[{\"a\":1}\n]", &[MissingBracket; 2]);
}

#[test]
fn unescaped_quotes_of_known_writers() {
    let kineto = |name: &str| {
        format!(
            "{{\"schemaVersion\":1,\"traceEvents\":[{{\"ph\":\"X\",\"cat\":\"f\",\"name\":\"{name}\",\"pid\":1,\"tid\":2,\"ts\":3}}]}}"
        )
    };
    for (name, escaped) in [
        (r#"lib("_ind", "IMPL")"#, r#"lib(\"_ind\", \"IMPL\")"#),
        (r#"operator""_kg"#, r#"operator\"\"_kg"#),
        (r#""all""#, r#"\"all\""#),
        (r#"a "b\" c\x "d"#, r#"a \"b\" c\\x \"d"#),
        ("a \"b\u{1}\n\" c", "a \\\"b\u{FFFD}\\n\\\" c"),
    ] {
        let data = kineto(name);
        let findings = scanned(data.as_bytes());
        assert_eq!(findings.verdict, Verdict::Damaged, "{name}: {:?}", findings.reason);
        assert_eq!(
            String::from_utf8(mended(data.as_bytes(), &findings).0).unwrap(),
            kineto(escaped)
        );
        let quotes = findings
            .flaws
            .listed
            .iter()
            .filter(|flaw| flaw.kind == FlawKind::UnescapedQuote);
        assert!(quotes.clone().count() > 0 && quotes.clone().all(|flaw| flaw.guess));
        assert_eq!(
            quotes.clone().next().unwrap().path.as_deref(),
            Some("traceEvents[0].name")
        );
    }
    // Nothing proves where these end.
    refused(
        br#"{"traceEvents":[{"ph":"X","args":{"note":"say "hi" now","x":1}}]}"#,
        "found 'h', at byte 47",
    );
    refused(br#"{"traceName":"say "hi" now","pid":1,"tid":2}"#, "found 'h'");
    // A closing quote is missing, or another event came in between.
    refused(kineto(r#"torn,"pid":0},{"ph":"X","name":"b"#).as_bytes(), "expected");
    refused(
        kineto(r#"ge{"schemaVersion":1,"traceEvents":[{"name":"b"#).as_bytes(),
        "two writers",
    );
}

#[test]
fn what_cannot_be_mended_is_refused_with_its_place_and_cause() {
    refused(b"", "empty: 0 bytes");
    refused(b" \n", "empty");
    refused(b"\0\0\0\0", "empty");
    refused(b"hello", "not JSON: it starts with \"hello\", at byte 0");
    refused(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
        "git lfs pull",
    );
    refused(b"SQLite format 3\0\x10", "SQLite");
    refused(b"PK\x03\x04", "zip");
    refused(b"<html>", "HTML");
    refused(b"{\"a\":1}\n{\"a\":2}\n", "NDJSON");
    refused(b"{\n\"a\":1}\n{\"a\":2}\n", "a second document, in line 3");
    refused(b"[1][2]", "a second document");
    refused(b"{\"a\":[{\"b\":1},\n{\"a\":[{\"b\":2}", "another one starts in it");
    refused(b"[{\"b\":1},\n[{\"b\":2}", "another one starts in it");
    refused(b"[{\"b\":1},\n[{\"b\":2}]\n", "another one starts in it");
    refused(b"{\"traceEvents\":[{\"ph\"", "nothing to keep");
    refused(b"[1}", "found '}', at byte 2 (line 1, column 3)");
    refused(b"{\"a\":1]", "found ']'");
    refused(b"{} x", "expected the end of the file, found 'x'");
    refused(
        b"{\"a\"\n 1}",
        "expected ':' after a key, found '1', at byte 6 (line 2, column 2)",
    );
    refused(b"['a']", "expected");
    refused(
        &[b"[\"a\"".to_vec(), vec![0; 100], b",1]".to_vec()].concat(),
        "100 zero bytes",
    );
    refused(
        &[b"[\"a".to_vec(), vec![0; 70_000], b"\",1]".to_vec()].concat(),
        "70000 zero bytes",
    );
}

#[test]
fn perfetto_gets_no_surrogate_escapes() {
    let data = br#"{"a\u00e9":"\ud83d\ude00 \ud83d","b":"\ud83d\ude00"}"#;
    let options = Options {
        readers: Readers {
            perfetto: true,
            ..Readers::default()
        },
        ..Options::default()
    };
    let findings = scan(&data[..], &options, &mut ()).unwrap();
    assert_eq!(findings.flaws.by_kind[&FlawKind::SurrogatePair], 2);
    let expected = "{\"a\\u00e9\":\"\u{1F600} \u{FFFD}\",\"b\":\"\u{1F600}\"}";
    assert_eq!(String::from_utf8(mended(data, &findings).0).unwrap(), expected);
    assert_eq!(
        scan(expected.as_bytes(), &options, &mut ()).unwrap().verdict,
        Verdict::Clean
    );
}

#[test]
fn escapes_that_stop_no_reader_stay() {
    // rocprofv3's garbage arguments are printed nowhere, and a Windows path was never meant as escapes.
    for data in [
        r#"{"rocprofiler-sdk-tool":[{"hip_api":[{"args":{"kname":"\u0001\b"}}]}]}"#,
        r#"{"name":"C:\temp\bin\run.py"}"#,
        r#"{"name":"C:\\Users\bin\run.py"}"#,
    ] {
        assert_eq!(scanned(data.as_bytes()).verdict, Verdict::Clean, "{data}");
    }
    let findings = scanned(br#"{"name":"C:\temp\bin\run.py"}"#);
    assert!(
        findings.warnings.iter().any(|warning| warning.contains("Windows")),
        "{:?}",
        findings.warnings
    );
    let relaxed = Options {
        readers: Readers {
            spreadsheet: false,
            perfetto: false,
        },
        ..Options::default()
    };
    assert_eq!(
        scan(&br#"["\u0000\b"]"#[..], &relaxed, &mut ()).unwrap().verdict,
        Verdict::Clean
    );
}

#[test]
fn flaws_say_which_member_they_stand_in() {
    let data = b"{\"rocprofiler-sdk-tool\":[{\"hip_api\":[{},{\"args\":{\"kname\":\"\xFF\",\"two words\":NaN}}]}],\"x\":\"\t\"}";
    let paths: Vec<_> = scanned(data)
        .flaws
        .listed
        .into_iter()
        .map(|flaw| flaw.path.unwrap())
        .collect();
    let inside = "rocprofiler-sdk-tool[0].hip_api[1].args";
    assert_eq!(
        paths,
        [
            format!("{inside}.kname"),
            format!("{inside}[\"two words\"]"),
            "x".to_owned()
        ]
    );
}

#[test]
fn members_are_mended() {
    let findings = scanned(b"{\"in\\u0066o\":{\"rank\":NaN,\"v\":\"\xFF\t\",},\"b\":\"\\x\"}");
    let members: Vec<_> = findings
        .members
        .iter()
        .map(|member| (member.key.as_str(), member.text.as_str()))
        .collect();
    assert_eq!(
        members,
        [("info", "{\"rank\":null,\"v\":\"\u{FFFD}\\t\"}"), ("b", "\"\\\\x\"")]
    );
}

#[test]
fn a_cut_says_what_it_cost() {
    let findings = scanned(b"{\"traceEvents\":[\n{\"a\":1},\n{\"a\":2},\n{\"a\":\"x\xFF");
    let flaw = &findings.flaws.listed[0];
    // The ill-formed byte went with the event it stood in.
    assert_eq!(
        (findings.flaws.count, flaw.kind, flaw.offset, flaw.length),
        (1, FlawKind::Cut, 33, 10)
    );
    assert_eq!(
        (flaw.line, flaw.column, flaw.path.as_deref()),
        (3, 8, Some("traceEvents[2]"))
    );
    assert_eq!(findings.warnings.len(), 1);
    assert!(
        findings.warnings[0]
            .contains("cut at byte 43, in traceEvents[2]: 10 bytes are dropped, 2 before them are whole"),
        "{}",
        findings.warnings[0]
    );
}

#[test]
fn a_second_process_of_rocprofv3_keeps_its_records() {
    let record = format!("{{\"kind\":1,\"name\":\"{}\"}}", "k".repeat(100));
    let records = vec![record.as_str(); 2000].join(",");
    let tool = |end: &str| format!("{{\"buffer_records\":{{\"kernel_dispatch\":[{records}{end}");
    let data = format!(
        "{{\"rocprofiler-sdk-tool\":[{},{}",
        tool("]}}"),
        tool(",{\"kind\":1,\"na")
    );
    let findings = scanned(data.as_bytes());
    assert_eq!(findings.verdict, Verdict::Damaged, "{:?}", findings.reason);
    let copy: serde_json::Value = serde_json::from_slice(&mended(data.as_bytes(), &findings).0).unwrap();
    for process in 0..2 {
        let records = &copy["rocprofiler-sdk-tool"][process]["buffer_records"]["kernel_dispatch"];
        assert_eq!(records.as_array().unwrap().len(), 2000);
    }
}

#[test]
fn more_edits_than_are_remembered_are_found_again() {
    let mut data = b"[".to_vec();
    for number in 0..9000 {
        data.extend_from_slice(format!("{{\"n\":{number},\"v\":NaN,\"s\":\"").as_bytes());
        data.extend_from_slice(b"\xE2\x82\\x\"},\n");
    }
    let findings = scanned(&data);
    assert_eq!(findings.flaws.count, 27_001);
    assert!(findings.plan.edits.is_none());
    let (copy, edits) = mended(&data, &findings);
    assert_eq!(edits.len(), 27_001);
    let remembering = Options {
        remembered: usize::MAX,
        ..Options::default()
    };
    let all = scan(&data[..], &remembering, &mut ()).unwrap();
    assert!(all.plan.edits.is_some());
    let (same, same_edits) = mended(&data, &all);
    assert_eq!(same, copy);
    assert_eq!(same_edits, edits);
    mutation::restored(&data, &findings, &copy);
}

#[test]
fn a_file_that_changed_between_the_passes_is_noticed() {
    let before = b"[\"a\xFFb\",1]";
    let findings = scanned(before);
    for after in [&b"[\"ab\",1]"[..], b"[", b"[1, 2, 3]"] {
        let error = mend(after, &findings, Vec::new(), &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}

#[test]
fn a_pair_of_surrogates_is_one_wherever_a_batch_ends() {
    let options = Options {
        readers: Readers {
            spreadsheet: true,
            perfetto: true,
        },
        ..Options::default()
    };
    for length in 16_360..16_390 {
        let data = format!("[\"{}\\ud83d\\ude00\"]", "a".repeat(length));
        let findings = scan(data.as_bytes(), &options, &mut ()).unwrap();
        assert_eq!(findings.flaws.count, 1, "{length}: {:?}", findings.flaws);
        let (copy, _) = mended(data.as_bytes(), &findings);
        assert!(copy.ends_with("a\u{1F600}\"]".as_bytes()), "{length}");
    }
}
