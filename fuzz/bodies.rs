//! What the fuzz targets hold any bytes to. host/bytes/tests/fuzzed.rs holds the fixtures and made-up inputs to the same.

use crate::bytes::{Check, Options, Readers, Verdict, mend, mend_logged, restore, scan, verify};
use std::io::{self, Cursor, Read};

/// Gives one byte at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

/// Any bytes are scanned, and the findings are the same however they are read.
pub fn scans(data: &[u8]) {
    for check in [Check::Utf8, Check::Json] {
        let options = Options {
            check,
            ..Options::default()
        };
        let whole = scan(data, &options, &mut ()).unwrap();
        let trickled = scan(Trickle(data), &options, &mut ()).unwrap();
        assert_eq!(whole.verdict, trickled.verdict);
        assert_eq!(whole.reason, trickled.reason);
        assert_eq!(whole.flaws, trickled.flaws);
        assert_eq!(whole.members, trickled.members);
        for flaw in &whole.flaws.listed {
            assert!(flaw.offset <= whole.size && flaw.line > 0 && flaw.column > 0);
        }
    }
}

/// A mended copy is clean, proves so from its stretches alone, and a second pass that remembers no edits makes the same one.
pub fn mends(data: &[u8]) {
    let perfetto = Options {
        readers: Readers {
            spreadsheet: true,
            perfetto: true,
        },
        ..Options::default()
    };
    let utf8 = Options {
        check: Check::Utf8,
        ..Options::default()
    };
    for options in [Options::default(), perfetto, utf8] {
        let findings = scan(data, &options, &mut ()).unwrap();
        if findings.verdict == Verdict::Refused {
            assert!(mend(data, &findings, Vec::new(), &mut |_| {}).is_err());
            continue;
        }
        let mut copy = Vec::new();
        let mut edits = 0;
        let mended = mend(data, &findings, &mut copy, &mut |edit| {
            edits += 1;
            assert!(edit.offset <= findings.size);
        });
        assert_eq!(mended.unwrap().edits, edits);
        let again = scan(copy.as_slice(), &options, &mut ()).unwrap();
        assert_eq!(
            (again.verdict, again.reason),
            (Verdict::Clean, None),
            "{}",
            copy.escape_ascii()
        );
        assert_eq!(
            verify(Cursor::new(&copy), &findings).unwrap(),
            None,
            "{}",
            copy.escape_ascii()
        );
        let mut found = Vec::new();
        let forgetful = Options {
            remembered: 0,
            ..options.clone()
        };
        let findings = scan(data, &forgetful, &mut ()).unwrap();
        mend(data, &findings, &mut found, &mut |_| {}).unwrap();
        assert_eq!(found.escape_ascii().to_string(), copy.escape_ascii().to_string());
        if options.check == Check::Json {
            let loaded = serde_json::from_slice::<serde::de::IgnoredAny>(&copy);
            // serde_json does not nest as deep as orjson.
            assert!(
                loaded
                    .as_ref()
                    .err()
                    .is_none_or(|error| error.to_string().contains("recursion limit"))
            );
        }
    }
}

/// Copy and log lead back to the original, and no log makes `restore` panic.
pub fn restores(data: &[u8]) {
    // As a log, with and without a start, over a copy that is the log itself.
    let _ = restore(data, data, Vec::new());
    let start = br#"{"tracemend_log":1,"container":"plain","encoding":"utf-8","odd_byte":null}"#;
    let log = [&start[..], b"\n", data].concat();
    let _ = restore(data, log.as_slice(), Vec::new());

    let findings = scan(data, &Options::default(), &mut ()).unwrap();
    if findings.verdict != Verdict::Refused {
        let (mut copy, mut log, mut original) = (Vec::new(), Vec::new(), Vec::new());
        mend_logged(data, &findings, &mut copy, &mut log).unwrap();
        restore(copy.as_slice(), log.as_slice(), &mut original).unwrap();
        assert_eq!(original.escape_ascii().to_string(), data.escape_ascii().to_string());
    }
}
