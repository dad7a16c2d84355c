//! What `dyno gputrace` answered. dyno's exit code says nothing about acceptance, so this interpreter reads the daemon's reply out
//! of what dyno printed and, where there is none, dyno's own error text.

mod reply;
mod trouble;
mod verdict;

use dynolog::{Answer, Call, Description, Guest};

struct DynoCli;

impl Guest for DynoCli {
    fn describe() -> Description {
        dynolog::description(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            "the text that dyno 0.3 to 0.6 prints for a capture request",
        )
    }

    fn interpret(call: Call, _settings: Vec<(String, String)>) -> Result<Answer, String> {
        dynolog::log_panics();
        Ok(verdict::of(&call, dynolog::repair))
    }
}

dynolog::export!(DynoCli with_types_in dynolog);
