#![no_main]

#[allow(dead_code, unused_imports)]
#[path = "../../host/bytes/mod.rs"]
mod bytes;

use bytes::{Options, Verdict, mend_logged, restore, scan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
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
});
