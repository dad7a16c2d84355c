#![no_main]

#[allow(dead_code, unused_imports)]
#[path = "../../host/bytes/mod.rs"]
mod bytes;

use bytes::{Check, Options, scan};
use libfuzzer_sys::fuzz_target;
use std::io::{self, Read};

/// Gives one byte at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        self.0.read(&mut buffer[..length])
    }
}

fuzz_target!(|data: &[u8]| {
    for check in [Check::Utf8, Check::Json] {
        let options = Options { check, ..Options::default() };
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
});
