//! What the dynolog daemon replied to tracemend's own client (`capture --via rpc`).
//!
//! `stdout` is every byte that the peer sent, its frame included: a 32-bit length in native (little-endian) order, then the JSON
//! (facts/dynolog.md section 4). Bare JSON is read too, so that a site's own transport need not make a frame. `stderr` is the client's
//! word for what ended the exchange early; `exit-code` is 0 only for a whole exchange.

mod verdict;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "dyno-interpreter" });

use exports::tracemend::plugin::interpreter::{Answer, Call, Guest};
use tracemend::plugin::bytes;
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

struct DynologRpc;

impl Guest for DynologRpc {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "the raw reply of the dynolog daemon, framed or bare".into(),
            settings: Vec::new(),
        }
    }

    fn interpret(call: Call, _settings: Vec<(String, String)>) -> Result<Answer, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        Ok(verdict::of(&call, bytes::repair))
    }
}

export!(DynologRpc);
