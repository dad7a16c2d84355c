//! UTF-8, however the input is cut.

use super::*;
use proptest::prelude::*;

fn utf8() -> Options {
    Options {
        check: Check::Utf8,
        ..Options::default()
    }
}

/// Bytes in which ASCII, whole characters and debris alternate.
fn mixture() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[a-z\n]{0,20}".prop_map(String::into_bytes),
        any::<char>().prop_map(|character| character.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..5),
        any::<char>().prop_map(|character| {
            let mut bytes = character.to_string().into_bytes();
            bytes.pop();
            bytes
        }),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

fn line_and_column(data: &[u8], offset: u64) -> (u64, u64) {
    let before = String::from_utf8_lossy(&data[..offset as usize]);
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
    (line, column)
}

proptest! {
    #[test]
    fn mending_is_from_utf8_lossy_whatever_the_reads(
        data in mixture(),
        sizes in prop::collection::vec(0usize..9, 1..6).prop_filter("progress", |sizes| sizes.iter().any(|&size| size > 0)),
    ) {
        prop_assume!(Container::sniff(&data) == Container::Plain);
        let whole = scan(&data[..], &utf8(), &mut ()).unwrap();
        let cut = scan_within(Pieces::new(&data, &sizes), &utf8(), &mut (), TINY).unwrap();
        prop_assert_eq!(&whole.flaws, &cut.flaws);
        prop_assert_eq!(whole.size, data.len() as u64);
        prop_assert_eq!((&whole.head, &whole.tail), (&data, &data));

        let expected: Vec<_> = ill_formed(&data);
        prop_assert_eq!(whole.flaws.count, expected.len() as u64);
        prop_assert_eq!(whole.verdict == Verdict::Clean, expected.is_empty());
        for (flaw, (offset, length)) in whole.flaws.listed.iter().zip(expected) {
            prop_assert_eq!((flaw.offset, flaw.length), (offset, u64::from(length)));
            prop_assert_eq!(flaw.bytes.as_slice(), &data[offset as usize..][..length as usize]);
            prop_assert_eq!((flaw.line, flaw.column), line_and_column(&data, offset));
        }

        let (copy, edits) = mended(&data, &whole);
        let lossy = String::from_utf8_lossy(&data);
        prop_assert_eq!(copy.as_slice(), lossy.as_bytes());
        prop_assert_eq!(edits.len() as u64, whole.flaws.count);
        for edit in &edits {
            prop_assert!(data[edit.offset as usize..].starts_with(&edit.old));
            prop_assert!(copy[edit.copy_offset as usize..].starts_with(&edit.new));
        }
        let mut streamed = Vec::new();
        MendingReader::new(Pieces::new(&data, &sizes), &whole).unwrap().read_to_end(&mut streamed).unwrap();
        prop_assert_eq!(streamed, copy);
    }
}

#[test]
fn ill_formed_bytes_in_a_document_leave_its_structure_alone() {
    let data = b"{\"traceEvents\":[{\"name\":\"a\x90\xD5\x8B\xA8\"}],\n\"\xFFk\":\"caf\xC3\xA9\xE2\x82\"}";
    let findings = scanned(data);
    assert_eq!(findings.verdict, Verdict::Damaged);
    assert_eq!(findings.flaws.by_kind[&FlawKind::IllFormedUtf8], 4);
    let places: Vec<_> = findings
        .flaws
        .listed
        .iter()
        .map(|flaw| (flaw.offset, flaw.line, flaw.column))
        .collect();
    assert_eq!(places, [(26, 1, 27), (29, 1, 29), (36, 2, 2), (46, 2, 11)]);
    assert_eq!(findings.keys, ["traceEvents", "\u{FFFD}k"]);
    assert_eq!(findings.members[1].text, "\"caf\u{e9}\u{FFFD}\"");
    assert_eq!(mended(data, &findings).0, String::from_utf8_lossy(data).as_bytes());
}

#[test]
fn flaws_beyond_the_list_are_counted() {
    let data = [b"[\"".as_slice(), &[0xFF; 1000], b"\"]"].concat();
    let findings = scan(
        &data[..],
        &Options {
            listed: 3,
            ..Options::default()
        },
        &mut (),
    )
    .unwrap();
    assert_eq!((findings.flaws.count, findings.flaws.listed.len()), (1000, 3));
}
