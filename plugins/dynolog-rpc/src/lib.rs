//! What the dynolog daemon replied to tracemend's own client (`capture --via rpc`).
//!
//! `stdout` is every byte that the peer sent, its frame included: a 32-bit length in native (little-endian) order, then the JSON
//! (facts/dynolog.md section 4). Bare JSON is read too, so that a site's own transport need not make a frame. `stderr` is the client's
//! word for what ended the exchange early; `exit-code` is 0 only for a whole exchange.

mod verdict;

use dynolog::{Answer, Call, Description, Guest};

struct DynologRpc;

impl Guest for DynologRpc {
    fn describe() -> Description {
        dynolog::description(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            "the raw reply of the dynolog daemon, framed or bare",
        )
    }

    fn interpret(call: Call, _settings: Vec<(String, String)>) -> Result<Answer, String> {
        dynolog::log_panics();
        Ok(verdict::of(&call, dynolog::repair))
    }
}

dynolog::export!(DynologRpc with_types_in dynolog);
