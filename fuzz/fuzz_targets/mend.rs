#![no_main]

#[allow(dead_code, unused_imports)]
#[path = "../../host/bytes/mod.rs"]
mod bytes;

use bytes::{Check, Options, Readers, Verdict, mend, scan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let perfetto = Options { readers: Readers { spreadsheet: true, perfetto: true }, ..Options::default() };
    let utf8 = Options { check: Check::Utf8, ..Options::default() };
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
        assert_eq!((again.verdict, again.reason), (Verdict::Clean, None), "{}", copy.escape_ascii());
        let mut found = Vec::new();
        let forgetful = Options { remembered: 0, ..options.clone() };
        let findings = scan(data, &forgetful, &mut ()).unwrap();
        mend(data, &findings, &mut found, &mut |_| {}).unwrap();
        assert_eq!(found.escape_ascii().to_string(), copy.escape_ascii().to_string());
        if options.check == Check::Json {
            let loaded = serde_json::from_slice::<serde::de::IgnoredAny>(&copy);
            // serde_json does not nest as deep as orjson.
            assert!(loaded.as_ref().err().is_none_or(|error| error.to_string().contains("recursion limit")));
        }
    }
});
