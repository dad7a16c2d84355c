//! What a guest says during one call: what it logs, and what it writes to standard output and error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bindings::log::Level;
use crate::bytes::repair;

const MAX_MESSAGES: usize = 100;
/// Characters of a logged message.
const MAX_MESSAGE: usize = 2000;
/// Bytes of a line that is written.
const MAX_LINE: usize = 4 * MAX_MESSAGE;

/// Where written text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Stdout,
    Stderr,
}

/// The messages of one call, in order, shared by all that write to it. Holds a bounded part of what is said.
#[derive(Clone, Default)]
pub(super) struct Messages(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    messages: Vec<(Level, String)>,
    left_out: usize,
    /// Lines that have not ended yet.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The last lines of standard error: where a language's runtime says why it trapped.
    last_words: Vec<String>,
}

/// Lines of standard error that are kept to explain a trap.
const LAST_WORDS: usize = 64;

impl Messages {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one message.
    pub(super) fn log(&self, level: Level, message: String) {
        self.kept().push(level, message);
    }

    /// Adds what was written; each line is a message: of standard output [`Level::Info`], of standard error [`Level::Warn`].
    pub(super) fn write(&self, source: Source, bytes: &[u8]) {
        let mut kept = self.kept();
        let mut lines = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = lines.next() {
            let open = kept.open(source);
            let room = MAX_LINE.saturating_sub(open.len());
            open.extend_from_slice(&part[..part.len().min(room)]);
            if lines.peek().is_some() {
                kept.end_line(source);
            }
        }
    }

    /// All messages, in order; open lines end here.
    pub(super) fn take(&self) -> Vec<(Level, String)> {
        let mut kept = self.kept();
        for source in [Source::Stdout, Source::Stderr] {
            kept.end_line(source);
        }
        let mut messages = std::mem::take(&mut kept.messages);
        match std::mem::take(&mut kept.left_out) {
            0 => {}
            more => messages.push((Level::Warn, format!("{more} more messages are left out"))),
        }
        messages
    }

    /// What the guest said of its own end: an exception or a panic's message, or the last line on standard error.
    pub(super) fn last_words(&self) -> Option<String> {
        let mut kept = self.kept();
        kept.end_line(Source::Stderr);
        let words = &kept.last_words;
        let traceback = words
            .iter()
            .rposition(|line| line.starts_with("Traceback (most recent call last)"));
        if let Some(begin) = traceback {
            // Python indents the places; the exception stands behind them.
            let exception = words[begin + 1..].iter().find(|line| !line.starts_with(' '));
            if exception.is_some() {
                return exception.cloned();
            }
        }
        let panic = words.iter().rposition(|line| line.contains("panicked at"));
        match panic {
            // Rust's own hook writes the message on the line behind the place.
            Some(place) => Some(
                words[place..]
                    .iter()
                    .take(2)
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            None => words.last().cloned(),
        }
    }
}

impl Kept {
    fn open(&mut self, source: Source) -> &mut Vec<u8> {
        match source {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
        }
    }

    fn end_line(&mut self, source: Source) {
        let line = repair(&std::mem::take(self.open(source)));
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let level = match source {
            Source::Stdout => Level::Info,
            Source::Stderr => Level::Warn,
        };
        if source == Source::Stderr {
            if self.last_words.len() == LAST_WORDS {
                self.last_words.remove(0);
            }
            self.last_words.push(line.to_owned());
        }
        self.push(level, line.to_owned());
    }

    fn push(&mut self, level: Level, mut message: String) {
        if self.messages.len() >= MAX_MESSAGES {
            self.left_out += 1;
            return;
        }
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE) {
            message.truncate(end);
            message.push_str(" ...");
        }
        self.messages.push((level, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_become_lines() {
        let messages = Messages::default();
        messages.write(Source::Stdout, b"one\ntw");
        messages.write(Source::Stderr, b"oops \xff\n\n");
        messages.write(Source::Stdout, b"o\nthree");
        let expected = [
            (Level::Info, "one"),
            (Level::Warn, "oops \u{fffd}"),
            (Level::Info, "two"),
            (Level::Info, "three"),
        ];
        assert_eq!(messages.take(), expected.map(|(level, text)| (level, text.to_owned())));
    }

    #[test]
    fn a_flood_is_cut_in_length_and_number() {
        let messages = Messages::default();
        for _ in 0..1000 {
            messages.write(Source::Stdout, &[b'x'; 1 << 16]);
        }
        messages.write(Source::Stdout, &b"\nline".repeat(1000));
        let taken = messages.take();
        assert_eq!(taken.len(), MAX_MESSAGES + 1);
        assert_eq!(taken[0].1.len(), MAX_MESSAGE + " ...".len());
        assert_eq!(taken[MAX_MESSAGES].1, "901 more messages are left out");
    }

    #[test]
    fn last_words_are_a_panic_or_the_last_line() {
        let messages = Messages::default();
        assert_eq!(messages.last_words(), None);
        messages.write(Source::Stderr, b"bad input\nno rank");
        assert_eq!(messages.last_words().unwrap(), "no rank");
        let panic =
            b"\n\nthread '<unnamed>' panicked at src/lib.rs:5:9:\nno rank in x\nnote: run with RUST_BACKTRACE=1\n";
        messages.write(Source::Stderr, panic);
        assert_eq!(
            messages.last_words().unwrap(),
            "thread '<unnamed>' panicked at src/lib.rs:5:9: no rank in x"
        );
        // As componentize-py ends: the exception, then its own panic.
        let python = b"Traceback (most recent call last):\n  File \"app.py\", line 16\nValueError: no such rank\n";
        messages.write(Source::Stderr, python);
        messages.write(Source::Stderr, panic);
        assert_eq!(messages.last_words().unwrap(), "ValueError: no such rank");
    }
}
