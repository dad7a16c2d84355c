//! Zero bytes: what a file system leaves where nothing was written.

use super::edit::Sink;
use super::flaw::FlawKind;
use super::grammar::Expect;
use super::machine::{Ending, Machine, Outcome};
use super::observer::Observer;
use super::recover::LONGEST_RUN;
use std::io::{self, Read};

/// Zero bytes in a row that are no text any more but a hole in the file, or the unwritten end of one.
const HOLE: usize = 64;

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    /// Whether zero bytes from `at` on are no text: many of them, or none but them before the end.
    pub(super) fn zeros(&self, at: u64) -> bool {
        let ahead = self.window.slice(at, at + HOLE as u64);
        ahead.iter().all(|&byte| byte == 0) && (ahead.len() == HOLE || self.window.is_finished())
    }

    /// The unwritten end of a file that was made longer than what came to be written.
    pub(super) fn pass_zeros(&mut self, at: u64) -> io::Result<Outcome> {
        let complete = self.grammar.expect == Expect::Nothing;
        // Zero bytes are no start of a document.
        self.grammar.root.take_if(|(start, _)| *start == at);
        let ending = Ending {
            at,
            scalar_at: self.number_before(at),
        };
        let place = self.place(at);
        let mut from = at;
        loop {
            let ahead = self.window.slice(from, from + LONGEST_RUN);
            if let Some(other) = ahead.iter().position(|&byte| byte != 0) {
                let what = format!(
                    "{} zero bytes where data should be, a hole in the file,",
                    from + other as u64 - at
                );
                return Ok(self.refuse_at(FlawKind::Syntax, place, 1, &what));
            }
            let length = ahead.len() as u64;
            if complete && length > 0 {
                self.replace(FlawKind::TrailingBytes, from, length, b"", false)?;
                self.pass_over(from, length);
            }
            from += length;
            if from == self.window.end() && self.window.is_finished() {
                return Ok(Outcome::End(if complete {
                    Ending {
                        at: from,
                        scalar_at: None,
                    }
                } else {
                    ending
                }));
            }
            if self.window.is_short(from) {
                self.slide(from)?;
            }
        }
    }
}
