//! gzip in every state, and UTF-16.

use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn events(count: usize) -> String {
    let events: Vec<_> = (0..count)
        .map(|number| {
            format!(
                "{{\"ph\":\"X\",\"name\":\"k{}\",\"ts\":{number}}}",
                number * 7919 % 10007
            )
        })
        .collect();
    format!("{{\"traceEvents\":[\n{}\n]}}", events.join(",\n"))
}

fn kinds(findings: &Findings) -> Vec<FlawKind> {
    findings.flaws.by_kind.keys().copied().collect()
}

#[test]
fn gzip_is_read_through_all_its_members() {
    let text = events(1000);
    let (first, second) = text.as_bytes().split_at(5000);
    let empty = gzip(b"");
    for data in [
        gzip(text.as_bytes()),
        [gzip(first), gzip(second)].concat(),
        [gzip(first), empty.clone(), gzip(second), empty].concat(),
        // Padding, as tape blocks leave it.
        [gzip(text.as_bytes()), vec![0; 512]].concat(),
    ] {
        let findings = scanned(&data);
        assert_eq!(
            (findings.verdict, findings.container),
            (Verdict::Clean, Container::Gzip),
            "{:?}",
            findings.reason
        );
        assert_eq!(findings.size, text.len() as u64);
        assert_eq!(mended(&data, &findings).0, text.as_bytes());
        mutation::restored(&data, &findings, text.as_bytes());
    }
}

#[test]
fn gzip_headers_with_names_and_comments_are_passed_over() {
    let text = events(3);
    let plain = gzip(text.as_bytes());
    let header = [0x1F, 0x8B, 8, 0b1_1110, 0, 0, 0, 0, 0, 3];
    let fields: &[u8] = b"\x04\x00abcdtrace.json\0a comment\0\x12\x34";
    let data = [&header[..], fields, &plain[10..]].concat();
    let findings = scanned(&data);
    assert_eq!(findings.verdict, Verdict::Clean, "{:?}", findings.reason);
    assert_eq!(mended(&data, &findings).0, text.as_bytes());
}

#[test]
fn a_gzip_stream_cut_anywhere_gives_its_whole_events() {
    let text = events(300);
    let data = gzip(text.as_bytes());
    for end in (0..200)
        .chain((200..data.len() - 10).step_by(41))
        .chain(data.len() - 10..data.len())
    {
        let findings = scanned(&data[..end]);
        match end {
            // Not enough to know it for gzip, or to hold an event.
            0..200 if findings.verdict == Verdict::Refused => assert!(findings.reason.is_some()),
            _ => {
                assert_eq!(findings.verdict, Verdict::Damaged, "{end}: {:?}", findings.reason);
                let trailer = end >= data.len() - 8;
                let expected = if trailer {
                    FlawKind::GzipTrailerMissing
                } else {
                    FlawKind::GzipCut
                };
                assert!(kinds(&findings).contains(&expected), "{end}: {:?}", findings.flaws);
                assert!(!findings.warnings.is_empty());
                let (copy, _) = mended(&data[..end], &findings);
                assert_eq!(scanned(&copy).verdict, Verdict::Clean);
                assert!(!trailer || copy == text.as_bytes());
                mutation::restored(&data[..end], &findings, &copy);
            }
        }
    }
}

#[test]
fn a_changed_gzip_stream_is_refused_wherever_it_changed() {
    let text = events(300);
    let data = gzip(text.as_bytes());
    for at in (10..data.len()).step_by(7) {
        let mut changed = data.clone();
        changed[at] ^= 0x10;
        let findings = scanned(&changed);
        assert_eq!(findings.verdict, Verdict::Refused, "{at}: {:?}", findings.flaws);
        // A change may also make the stream seem longer than it is, and cut.
        let told = kinds(&findings)
            .iter()
            .any(|kind| matches!(kind, FlawKind::GzipCorrupt | FlawKind::GzipCut));
        assert!(told, "{at}: {:?}", findings.reason);
    }
}

#[test]
fn what_follows_a_gzip_stream_is_left_out_and_said() {
    let text = events(3);
    let data = [gzip(text.as_bytes()), b"rank 3 done\n".to_vec()].concat();
    let findings = scanned(&data);
    assert_eq!(
        (findings.verdict, kinds(&findings)),
        (Verdict::Damaged, vec![FlawKind::GzipTrailingBytes])
    );
    assert_eq!(findings.flaws.listed[0].bytes, b"rank 3 done\n");
    let mut copy = Vec::new();
    mend(&data[..], &findings, &mut copy, &mut |_| {}).unwrap();
    assert_eq!(copy, text.as_bytes());
    mutation::restored(&data, &findings, &copy);
}

#[test]
fn interleaved_gzip_writers_are_named() {
    let (one, two) = (gzip(events(400).as_bytes()), gzip(events(500).as_bytes()));
    let pieces = one.chunks(700).zip(two.chunks(700)).flat_map(|(one, two)| [one, two]);
    let data = pieces.collect::<Vec<_>>().concat();
    let findings = scanned(&data);
    assert_eq!(findings.verdict, Verdict::Refused);
    let reason = findings.reason.unwrap();
    assert!(reason.contains("several writers"), "{reason}");
}

#[test]
fn other_compressions_are_named() {
    for (magic, name) in [(&b"\x28\xB5\x2F\xFD\x04"[..], "zstd"), (b"\xFD7zXZ\0\0", "xz")] {
        let findings = scanned(magic);
        assert_eq!(
            (findings.verdict, findings.container.as_str()),
            (Verdict::Refused, name)
        );
        assert!(findings.reason.unwrap().contains(name));
    }
}

fn utf16(text: &str, mark: bool, big: bool) -> Vec<u8> {
    let mark = if mark { "\u{FEFF}" } else { "" };
    let units = mark.encode_utf16().chain(text.encode_utf16());
    units
        .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
        .collect()
}

#[test]
fn utf16_is_transcoded_without_loss() {
    let text = events(50).replace("k7919", "caf\u{e9}\u{1F600}");
    for (mark, big) in [(true, false), (true, true), (false, false), (false, true)] {
        let data = utf16(&text, mark, big);
        let findings = scanned(&data);
        assert_eq!(
            (findings.verdict, kinds(&findings)),
            (Verdict::Damaged, vec![FlawKind::Utf16]),
            "{:?}",
            findings.reason
        );
        assert_eq!(findings.encoding, if big { "utf-16be" } else { "utf-16le" });
        let mut copy = Vec::new();
        mend(&data[..], &findings, &mut copy, &mut |_| {}).unwrap();
        assert_eq!(copy, text.as_bytes());
        mutation::restored(&data, &findings, &copy);
    }
}

#[test]
fn damaged_utf16_is_mended_and_comes_back() {
    let mut data = utf16("[\"a?b\",\"\u{1}\"]", true, false);
    // A high surrogate alone, and an odd byte at the end.
    data[8..10].copy_from_slice(&0xD83D_u16.to_le_bytes());
    data.push(b'x');
    let findings = scanned(&data);
    assert_eq!(findings.verdict, Verdict::Damaged, "{:?}", findings.reason);
    let (copy, _) = mended(&data, &findings);
    assert_eq!(
        String::from_utf8(copy.clone()).unwrap(),
        "[\"a\u{FFFD}\u{FFFD}\u{FFFD}b\",\"\u{FFFD}\"]"
    );
    mutation::restored(&data, &findings, &copy);
}

#[test]
fn gzip_and_utf16_go_together() {
    let text = events(20);
    let data = gzip(&utf16(&text, true, false));
    let findings = scanned(&data);
    assert_eq!((findings.verdict, findings.encoding), (Verdict::Damaged, "utf-16le"));
    let (copy, _) = mended(&data, &findings);
    assert_eq!(copy, text.as_bytes());
    mutation::restored(&data, &findings, &copy);
}

#[test]
fn a_mark_of_utf8_is_taken_off() {
    let data = b"\xEF\xBB\xBF{\"a\":1,\n\"b\":\"\xFF\"}";
    let findings = scanned(data);
    assert_eq!(kinds(&findings), [FlawKind::IllFormedUtf8, FlawKind::ByteOrderMark]);
    assert_eq!((findings.flaws.listed[1].line, findings.flaws.listed[1].column), (2, 6));
    assert_eq!(mended(data, &findings).0, "{\"a\":1,\n\"b\":\"\u{FFFD}\"}".as_bytes());
}
