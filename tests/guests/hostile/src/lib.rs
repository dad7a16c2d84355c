//! A naming policy that does what a host must survive. The first path of the batch that holds one of the words below says what.

wit_bindgen::generate!({ path: "../../../wit/0.1.0", world: "trace-naming" });

use exports::tracemend::plugin::naming::{Guest, Label, Trace};
use std::hint::black_box;
use tracemend::plugin::contents::{find, members};
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

/// Above any sane limit on a result, below any sane limit on memory.
const FLOOD_BYTES: usize = 200_000_000;

/// Calls of the host that benches/plugins.rs divides by.
const CROSSINGS: usize = 10_000;

struct Hostile;

impl Guest for Hostile {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "misbehaves on demand".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        let words = [
            "panic", "spin", "glutton", "flood", "short", "recurse", "sulk", "beyond", "reader", "cross",
        ];
        let word = traces
            .iter()
            .find_map(|trace| words.iter().find(|word| trace.path.contains(**word)));
        let count = traces.len();
        match word.copied() {
            Some("panic") => Ok(vec![Label::Unknown(traces[count + 7].path.clone())]),
            Some("spin") => loop {
                std::hint::spin_loop();
            },
            Some("glutton") => glutton(),
            Some("flood") => Ok(labels(count, &"x".repeat(FLOOD_BYTES / count))),
            Some("short") => Ok(labels(count - 1, "")),
            Some("recurse") => Err(recurse(0).to_string()),
            Some("beyond") => Ok(vec![Label::Unknown(members(u32::MAX, "key").concat())]),
            Some("reader") => loop {
                find(0, "no such text anywhere", 1);
            },
            Some("cross") => {
                (0..CROSSINGS).for_each(|_| drop(black_box(members(0, "key"))));
                Ok(labels(count, ""))
            }
            Some("sulk") => Err("I do not label on Mondays".into()),
            _ => Ok(labels(count, "")),
        }
    }
}

fn labels(count: usize, reason: &str) -> Vec<Label> {
    (0..count).map(|_| Label::Unknown(reason.into())).collect()
}

fn glutton() -> ! {
    let mut hoard = Vec::new();
    loop {
        hoard.push(black_box(vec![1u8; 1 << 20]));
    }
}

/// Keeps a frame a level: the addition after the call is what stops it from becoming a loop.
#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    recurse(frame[0] + 1) + frame[31]
}

export!(Hostile);
