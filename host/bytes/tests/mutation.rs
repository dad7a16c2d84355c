//! Whatever happens to a trace, what comes out loads, and the original can be had back.

use super::*;
use proptest::prelude::*;
use std::io::BufReader;

/// A Kineto trace, with what real ones have: escapes, nested arrays, members before and after the events.
fn kineto(events: usize) -> String {
    let events: Vec<_> = (0..events)
        .map(|number| match number % 4 {
            0 => format!(
                "{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm<{number}>\",\"pid\":0,\"tid\":7,\"ts\":{number}.5,\"dur\":2.25,\
                 \"args\":{{\"External id\":{number},\"grid\":[1,2,3]}}}}"
            ),
            1 => format!(
                "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"say \\\"hi\\\" \\u00e9 {number}\",\"pid\":9,\"tid\":9,\"ts\":{number},\
                 \"dur\":1e-2,\"args\":{{\"Input Dims\":[[8,512],[]],\"Call stack\":\"C:\\\\Users\\\\x\"}}}}"
            ),
            2 => format!("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":{number},\"args\":{{\"name\":\"caf\u{e9}\"}}}}"),
            _ => String::from("{\"ph\":\"i\",\"name\":\"\u{1F600}\",\"s\":\"t\",\"ok\":true,\"x\":null,\"pid\":1,\"tid\":1,\"ts\":-1.5e3}"),
        })
        .collect();
    format!(
        "{{\"schemaVersion\":1,\"deviceProperties\":[{{\"id\":0}}],\n\"distributedInfo\":{{\"rank\":3,\"world_size\":8}},\n\
         \"traceEvents\":[\n{}\n],\"traceName\":\"/tmp/t.json\"}}\n",
        events.join(",\n")
    )
}

fn rocprof(records: usize) -> String {
    let records = |kind: &str| {
        let records: Vec<_> = (0..records)
            .map(|number| {
                format!("{{\"kind\":\"{kind}\",\"id\":{{\"internal\":{number}}},\"args\":{{\"kname\":\"\\u0001k\"}}}}")
            })
            .collect();
        records.join(",")
    };
    format!(
        "{{\"rocprofiler-sdk-tool\":[{{\"metadata\":{{\"pid\":1}},\"buffer_records\":{{\"kernel_dispatch\":[{}],\"hip_api\":[{}]}}}}]}}",
        records("dispatch"),
        records("api"),
    )
}

/// A mended copy is clean, loads, and leads back to its original.
pub(super) fn check(data: &[u8]) -> Findings {
    let findings = scanned(data);
    let small = scan_within(data, &Options::default(), &mut (), SMALL).unwrap();
    assert_eq!(
        (&small.verdict, &small.reason, &small.flaws),
        (&findings.verdict, &findings.reason, &findings.flaws)
    );
    if findings.verdict == Verdict::Refused {
        assert!(findings.reason.is_some());
        assert_eq!(copying::written(data, Reach::default()), None);
        return findings;
    }
    let (copy, edits) = mended(data, &findings);
    assert_eq!(edits.len() as u64, findings.flaws.count, "{:?}", findings.flaws);
    assert_eq!(edits.is_empty(), findings.verdict == Verdict::Clean);
    let again = scanned(&copy);
    assert_eq!(
        (again.verdict, &again.reason),
        (Verdict::Clean, &None),
        "{} {:?}",
        String::from_utf8_lossy(&copy),
        again.flaws
    );
    assert!(
        again.members.starts_with(&findings.members),
        "{}",
        String::from_utf8_lossy(&copy)
    );
    serde_json::from_slice::<serde_json::Value>(&copy).unwrap();
    assert_eq!(found_again(data, &findings), copy);
    restored(data, &findings, &copy);
    copying::check(data, &copy);
    findings
}

pub(super) fn restored(data: &[u8], findings: &Findings, copy: &[u8]) {
    let (mut logged, mut log, mut original) = (Vec::new(), Vec::new(), Vec::new());
    mend_logged(data, findings, &mut logged, &mut log).unwrap();
    assert_eq!(logged, copy);
    restore(copy, BufReader::new(&log[..]), &mut original).unwrap();
    assert_eq!(original, data, "{}", String::from_utf8_lossy(&log));
}

/// What can happen to a byte.
#[derive(Clone, Debug)]
enum Blow {
    Replace(u8),
    Insert(Vec<u8>),
    Remove(usize),
}

fn blow() -> impl Strategy<Value = Blow> {
    let token = prop::sample::select(vec![
        "NaN", "-inf", ",", ",,", "]", "}", "{", "[", "\"", "\\", "\\x", "\\u12", "\\ud800", "\\'", ":", "0x1F",
        "\u{1}", "\t", "\n", "\u{e9}", "1e999", "+", ".", "null", "{}", "\0\0\0", "abc", " ", "\\u0001",
    ]);
    prop_oneof![
        any::<u8>().prop_map(Blow::Replace),
        token.prop_map(|token| Blow::Insert(token.as_bytes().to_vec())),
        prop::collection::vec(any::<u8>(), 1..4).prop_map(Blow::Insert),
        (1usize..5).prop_map(Blow::Remove),
    ]
}

fn struck(text: &str, blows: &[(prop::sample::Index, Blow)]) -> Vec<u8> {
    let mut data = text.as_bytes().to_vec();
    for (index, blow) in blows {
        let at = index.index(data.len());
        match blow {
            Blow::Replace(byte) => data[at] = *byte,
            Blow::Insert(bytes) => drop(data.splice(at..at, bytes.iter().copied())),
            Blow::Remove(length) => drop(data.drain(at..(at + length).min(data.len() - 1))),
        }
    }
    data
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn struck_traces_are_mended_or_refused(
        events in 0usize..12,
        rocprofiler: bool,
        blows in prop::collection::vec((any::<prop::sample::Index>(), blow()), 0..5),
    ) {
        let text = if rocprofiler { rocprof(events) } else { kineto(events) };
        check(&struck(&text, &blows));
    }

    #[test]
    fn debris_is_mended_or_refused(pieces in prop::collection::vec(
        prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"name\"", "1", "-", "true", "nan", "\"", "\\", "\n", " ", "x", "\u{1}", "\0", "\u{e9}",
            "\\u", "d83d", "{\"ph\":\"X\"}", "\"b\":2", "0", ".5",
        ]), 0..14)
    ) {
        check(pieces.concat().as_bytes());
    }
}

#[test]
fn a_trace_cut_anywhere_keeps_its_whole_events() {
    let text = kineto(9);
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = whole["traceEvents"].as_array().unwrap();
    let (from, to) = (text.find("{\"ph\"").unwrap(), text.rfind("\n]").unwrap());
    for end in 0..text.len() {
        let data = &text.as_bytes()[..end];
        let findings = check(data);
        if findings.verdict == Verdict::Refused {
            assert!(end < text.find(",\n").unwrap() + 1, "{end}: {:?}", findings.reason);
            continue;
        }
        assert_eq!(findings.verdict == Verdict::Clean, end + 1 == text.len());
        let copy: serde_json::Value = serde_json::from_slice(&mended(data, &findings).0).unwrap();
        if (from..=to).contains(&end) {
            // Every event that ends before the cut, and no other.
            let kept = copy["traceEvents"].as_array().unwrap();
            let lines = text[from..to].split_inclusive(",\n").scan(from, |at, line| {
                *at += line.len();
                Some(*at - if line.ends_with('\n') { 2 } else { 0 })
            });
            assert_eq!(kept.len(), lines.filter(|&event_end| event_end <= end).count(), "{end}");
            assert_eq!(kept[..], events[..kept.len()]);
        }
    }
}

#[test]
fn a_rocprofv3_file_cut_anywhere_keeps_its_whole_records() {
    let text = rocprof(5);
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |document: &serde_json::Value, kind: &str| {
        document["rocprofiler-sdk-tool"][0]["buffer_records"][kind]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    for end in text.find("\"hip_api\":[").unwrap() + 11..text.len() {
        let data = &text.as_bytes()[..end];
        let findings = check(data);
        assert_eq!(findings.verdict, Verdict::Damaged, "{end}");
        let copy: serde_json::Value = serde_json::from_slice(&mended(data, &findings).0).unwrap();
        assert_eq!(of(&copy, "kernel_dispatch"), of(&whole, "kernel_dispatch"));
        let kept = of(&copy, "hip_api");
        assert_eq!(kept[..], of(&whole, "hip_api")[..kept.len()]);
        assert!(text[..end].matches("\"api\"").count() <= kept.len() + 1);
    }
}

#[test]
fn all_fixtures_can_be_restored() {
    let mut files: Vec<_> = ["damage", "kineto-cpu/api", "kineto-cpu/ondemand"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(damage::fixtures().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    assert!(files.len() > 45);
    for file in files {
        let data = std::fs::read(&file).unwrap();
        let findings = scanned(&data);
        if findings.verdict != Verdict::Refused {
            let (copy, _) = mended(&data, &findings);
            restored(&data, &findings, &copy);
        }
    }
}
