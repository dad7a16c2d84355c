#![no_main]

#[allow(dead_code)]
#[path = "../bodies.rs"]
mod bodies;
#[allow(dead_code, unused_imports)]
#[path = "../../host/bytes/mod.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::restores(data));
