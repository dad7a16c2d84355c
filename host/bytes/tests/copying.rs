//! Copies written while the scan runs, and their proof from the stretches around the edits.

use super::*;
use crate::bytes::copying::scan_and_mend_within;
use crate::bytes::verify::verify_within;
use proptest::prelude::*;
use std::io::{Cursor, Seek};

/// A window that slides on and on, with each mark not far from the one before.
const MARKED: Reach = Reach {
    history: 200,
    lookahead: 300,
    capacity: 800,
};

/// The copy written while `data` is scanned; none if none is, and then the file is empty.
pub(super) fn written(data: &[u8], reach: Reach) -> Option<Vec<u8>> {
    written_with(data, &Options::default(), reach)
}

fn written_with(data: &[u8], options: &Options, reach: Reach) -> Option<Vec<u8>> {
    let mut file = tempfile::tempfile().unwrap();
    let (findings, written) = scan_and_mend_within(data, &file, options, &mut (), reach).unwrap();
    assert!(!written || findings.verdict != Verdict::Refused);
    let mut copy = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut copy).unwrap();
    assert!(written || copy.is_empty());
    written.then_some(copy)
}

/// The copy of a mended input is the same if it is written at once, and proves clean whatever the window.
pub(super) fn check(data: &[u8], copy: &[u8]) {
    assert_eq!(
        written(data, Reach::default()).as_deref(),
        Some(copy),
        "{}",
        data.escape_ascii()
    );
    // In a small window the end may drop what has been left behind, and where it cuts depends on what is still in sight.
    if let Some(written) = written(data, MARKED) {
        let findings = scan_within(data, &Options::default(), &mut (), MARKED).unwrap();
        let mut copy = Vec::new();
        mend(data, &findings, &mut copy, &mut |_| {}).unwrap();
        assert_eq!(written, copy, "{}", data.escape_ascii());
    }
    for reach in [Reach::default(), MARKED] {
        let findings = scan_within(data, &Options::default(), &mut (), reach).unwrap();
        assert_eq!(
            verify_within(Cursor::new(copy), &findings, reach).unwrap(),
            None,
            "{}",
            data.escape_ascii()
        );
    }
}

/// Events of one line each, `number` of them, with damage here and there.
fn damaged(number: usize, damage: &[(prop::sample::Index, &str)]) -> Vec<u8> {
    let mut events: Vec<_> = (0..number)
        .map(|number| {
            format!("{{\"ph\":\"X\",\"name\":\"k{number}\",\"pid\":{number},\"args\":{{\"caf\u{e9}\":\"C:\\\\x\"}}}}")
                .into_bytes()
        })
        .collect();
    for (index, token) in damage {
        let event = index.get(&events).len() / 2;
        let index = index.index(events.len());
        events[index].splice(event..event, token.bytes());
    }
    [b"{\"traceEvents\":[".as_slice(), &events.join(&b",\n"[..]), b"]}"].concat()
}

/// Puts a stray byte into the first name at or after `at`. Where it is then.
fn stray(data: &mut [u8], at: usize) -> usize {
    let name = memchr::memmem::find(&data[at..], b":\"k").unwrap();
    data[at + name + 2] = 0xFF;
    at + name + 2
}

fn token() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "\u{1}",
        "\\x",
        "\"",
        "\\",
        ",",
        "\\ud800",
        "\\u0002",
        "C:\\temp\\b",
        "}",
        "{",
        "]",
        "\t",
        "NaN",
        "\\",
        "\u{e9}",
        "\"args\":",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn damage_far_apart_is_proved_mended_by_its_surroundings(
        damage in prop::collection::vec((any::<prop::sample::Index>(), token()), 0..6),
        stray in prop::collection::vec((any::<prop::sample::Index>(), 0x80u8..), 0..4),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut data = damaged(120, &damage);
        for (index, byte) in stray {
            let at = index.index(data.len());
            data[at] = byte;
        }
        if is_cut {
            data.truncate(cut.index(data.len()));
        }
        mutation::check(&data);
    }

    /// Whatever a mistake of ours would write instead: if the surroundings prove the copy clean, all of it is.
    #[test]
    fn what_is_proved_clean_is_clean(
        damage in prop::collection::vec((any::<prop::sample::Index>(), token()), 1..5),
        which in any::<prop::sample::Index>(),
        wrong in prop_oneof![
            token().prop_map(|token| token.as_bytes().to_vec()),
            prop::sample::select(vec!["", "\\", "\"", "\",\"args\":\"", "\",\"x\":\"", "\"}},{\"args\":{\"a\":\"", "null", "]", "[[", "\\ud83d"])
                .prop_map(|text| text.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 1..3),
        ],
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut data = damaged(120, &damage);
        stray(&mut data, 2000);
        if is_cut {
            data.truncate(cut.index(data.len()).max(2100));
        }
        for reach in [Reach::default(), MARKED] {
            let mut findings = scan_within(data.as_slice(), &Options::default(), &mut (), reach).unwrap();
            if findings.verdict == Verdict::Refused {
                return Ok(());
            }
            let edits = findings.plan.edits.as_mut().unwrap();
            let index = which.index(edits.len() + 1);
            match (edits.get_mut(index), &mut findings.plan.closing) {
                (Some(edit), _) => edit.new = wrong.clone(),
                (None, Some(closing)) => closing.new = wrong.clone(),
                (None, None) => return Ok(()),
            }
            let mut copy = Vec::new();
            mend(data.as_slice(), &findings, &mut copy, &mut |_| {}).unwrap();
            let proved = verify_within(Cursor::new(&copy), &findings, reach).unwrap();
            if proved.is_none() {
                let again = scanned(&copy);
                prop_assert_eq!(again.verdict, Verdict::Clean, "{:?}", again.flaws);
            }
        }
    }
}

proptest! {
    #[test]
    fn utf8_alone_is_mended_at_once_and_proved_by_its_surroundings(
        text in prop::collection::vec(prop_oneof![Just(b'a'), Just(0xC3), Just(0xA9), any::<u8>()], 0..3000),
    ) {
        let options = Options { check: Check::Utf8, ..Options::default() };
        let copy = repair(&text).into_bytes();
        for reach in [Reach::default(), MARKED] {
            prop_assert_eq!(written_with(&text, &options, reach), Some(copy.clone()));
            let mut findings = scan_within(text.as_slice(), &options, &mut (), reach).unwrap();
            prop_assert_eq!(verify_within(Cursor::new(&copy), &findings, reach).unwrap(), None);
            if let Some(edit) = findings.plan.edits.as_mut().unwrap().first_mut() {
                edit.new = vec![0xFF; 3];
                let mut wrong = copy.clone();
                wrong[edit.copy_offset as usize..][..3].fill(0xFF);
                prop_assert!(verify_within(Cursor::new(&wrong), &findings, reach).unwrap().is_some());
            }
        }
    }
}

#[test]
fn little_is_read_to_prove_a_copy() {
    struct Counted<'a>(Cursor<&'a [u8]>, usize);
    impl Read for Counted<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(buffer)?;
            self.1 += read;
            Ok(read)
        }
    }
    impl Seek for Counted<'_> {
        fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    let mut data = damaged(400_000, &[]);
    let size = data.len();
    stray(&mut data, size / 2);
    data.truncate(size - 100);
    let findings = scanned(&data);
    assert_eq!(findings.flaws.count, 2, "{:?}", findings.flaws);
    let (copy, _) = mended(&data, &findings);
    let mut counted = Counted(Cursor::new(&copy), 0);
    assert_eq!(verify(&mut counted, &findings).unwrap(), None);
    assert!((1..size / 3).contains(&counted.1), "{} of {size}", counted.1);
}

#[test]
fn a_copy_whose_edits_are_forgotten_is_scanned_whole() {
    let mut data = damaged(50, &[]);
    let at = stray(&mut data, 100);
    let forgetful = Options {
        remembered: 0,
        ..Options::default()
    };
    let findings = scan(data.as_slice(), &forgetful, &mut ()).unwrap();
    let (copy, _) = mended(&data, &findings);
    assert_eq!(verify(Cursor::new(&copy), &findings).unwrap(), None);
    assert_eq!(
        written_with(&data, &forgetful, Reach::default()).as_deref(),
        Some(copy.as_slice())
    );
    assert_eq!(
        verify(Cursor::new(&data), &findings).unwrap().as_deref(),
        Some(format!("ill-formed-utf8 at byte {at}").as_str())
    );
}

#[test]
fn a_copy_that_cannot_be_written_ends_the_scan() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let data = damaged(400_000, &[]);
    let error = scan_and_mend(data.as_slice(), &full, &Options::default(), &mut ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}
