//! What `dyno gputrace` answered. dyno's exit code says nothing about acceptance, so this interpreter reads the daemon's reply out
//! of what dyno printed and, where there is none, dyno's own error text.

mod reply;
mod trouble;
mod verdict;

wit_bindgen::generate!({ path: "../../wit/0.1.0", world: "dyno-interpreter" });

use exports::tracemend::plugin::interpreter::{Answer, Call, Guest};
use tracemend::plugin::bytes;
use tracemend::plugin::log::{Level, log};
use tracemend::plugin::types::Description;

struct DynoCli;

impl Guest for DynoCli {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "the text that dyno 0.3 to 0.6 prints for a capture request".into(),
            settings: Vec::new(),
        }
    }

    fn interpret(call: Call, _settings: Vec<(String, String)>) -> Result<Answer, String> {
        std::panic::set_hook(Box::new(|panic| log(Level::Warn, &panic.to_string())));
        Ok(verdict::of(&call, bytes::repair))
    }
}

export!(DynoCli);
