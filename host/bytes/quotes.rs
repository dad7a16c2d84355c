//! Quotes that a writer forgot to escape. Where a string really ends is told by the order in which the writer puts its keys;
//! where that proves nothing, nothing is guessed.

use super::blocks::Carry;
use super::edit::Sink;
use super::escapes::Escape;
use super::flaw::FlawKind;
use super::grammar::Expect;
use super::machine::{Machine, Outcome};
use super::observer::{Observer, Structure};
use super::utf8::{REPLACEMENT, ill_formed};
use super::view::{View, after_space};
use std::io::{self, Read};

/// The longest string that is looked through, in bytes.
const LONGEST: u64 = 16 << 10;

/// A member whose text the writer did not escape, and what the writer puts after it.
struct Known {
    /// The key of the object it stands in; none for an event.
    parent: Option<&'static [u8]>,
    key: &'static [u8],
    /// The keys that follow, in order; none if the object ends, and the event with it.
    followers: &'static [&'static [u8]],
}

/// pytorch/kineto output_json.cpp (`"ph","cat","name","pid","tid"`, and metadata events with `"args":{"name":...}}`), and
/// PyTorch's exporter without Kineto (`"name","ph","ts"`): facts/traces.md A19 to A21, A26.
const KNOWN: &[Known] = &[
    Known {
        parent: None,
        key: b"name",
        followers: &[b"pid", b"tid"],
    },
    Known {
        parent: None,
        key: b"name",
        followers: &[b"ph", b"ts"],
    },
    Known {
        parent: Some(b"args"),
        key: b"name",
        followers: &[],
    },
];

/// Keys of events. Between the quotes of one string they mean that the string never ended, and another event came.
const EVENT_KEYS: &[&[u8]] = &[
    b"\"ph\"",
    b"\"cat\"",
    b"\"tid\"",
    b"\"dur\"",
    b"\"args\"",
    b"\"traceEvents\"",
];

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    /// A string seemed to end at `closing`, but what stands at `at` cannot follow it.
    pub(super) fn recover_quotes(&mut self, closing: u64, at: u64) -> io::Result<Outcome> {
        let ahead = self.window.slice(closing, closing + LONGEST);
        let Some(length) = self.end_of_string(ahead) else {
            return self.refuse_unexpected(at);
        };
        let inside = &ahead[..length];
        let end = closing + length as u64;
        if let Some(other) = self.document_between(self.grammar.string_at, end) {
            return self.refuse_torn(at, other);
        }
        if EVENT_KEYS.iter().any(|key| memchr::memmem::find(inside, key).is_some()) || self.grammar.restart.is_some() {
            return self.refuse_unexpected(at);
        }
        self.escape_quotes(closing, end)?;
        self.grammar.expect = Expect::InString;
        Ok(Outcome::Reindex(end, Carry::inside_string()))
    }

    /// How far from the first byte of `ahead`, a quote inside the string, the true closing quote is.
    fn end_of_string(&self, ahead: &[u8]) -> Option<usize> {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        let depth = self.grammar.frames.len();
        let key = self.grammar.key(depth, view)?;
        let parent = if depth > 1 {
            self.grammar.key(depth - 1, view)
        } else {
            None
        };
        let in_array = depth > 1 && self.grammar.frames[depth - 2].structure == Structure::Array;
        let known = KNOWN.iter().filter(|known| {
            known.key == key
                && if known.parent.is_none() {
                    in_array
                } else {
                    known.parent == parent
                }
        });
        known
            .filter_map(|known| {
                quotes(ahead)
                    .skip(1)
                    .find(|&quote| follows(known, &ahead[quote + 1..], !self.may_be_cut))
            })
            .min()
    }

    /// Escapes the quotes from `from` to `end`, where the closing one stands, and mends all else on the way.
    fn escape_quotes(&mut self, from: u64, end: u64) -> io::Result<()> {
        // The walk took some of this for being outside strings, and left what is ill-formed there alone.
        let mut ill_formed = ill_formed(self.window.slice(from, end)).into_iter().peekable();
        let mut at = from;
        while at < end {
            if let Some((_, length)) = ill_formed.next_if(|(offset, _)| from + offset == at) {
                self.replace_ill_formed(at, u64::from(length))?;
                at += u64::from(length);
                continue;
            }
            let mut length = 1;
            match self.byte(at) {
                b'"' => self.replace(FlawKind::UnescapedQuote, at, 1, b"\\\"", true)?,
                b'\t' => self.replace(FlawKind::ControlCharacter, at, 1, b"\\t", false)?,
                b'\n' => self.replace(FlawKind::ControlCharacter, at, 1, b"\\n", false)?,
                b'\r' => self.replace(FlawKind::ControlCharacter, at, 1, b"\\r", false)?,
                0..0x20 => self.replace(FlawKind::ControlCharacter, at, 1, REPLACEMENT, false)?,
                b'\\' => {
                    let escape = self.escape_at(at);
                    self.recover_escape(at, escape)?;
                    length = match escape {
                        Escape::Illegal if self.byte(at + 1) != b'\'' => 1,
                        Escape::LoneSurrogate | Escape::Control(6) => 6,
                        Escape::Pair => 12,
                        _ => 2,
                    };
                }
                _ => {}
            }
            at += length;
        }
        self.ignore_encoding_until(end);
        Ok(())
    }
}

/// The places of the quotes in `text` that no backslash escapes; its first byte is one of them.
fn quotes(text: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memchr_iter(b'"', text).filter(|&quote| {
        let backslashes = text[..quote].iter().rev().take_while(|&&byte| byte == b'\\').count();
        backslashes % 2 == 0
    })
}

/// Whether what the writer puts after the string stands at the start of `text`; `may_end` if the text may end after an event,
/// because what followed it has been dropped.
fn follows(known: &Known, text: &[u8], may_end: bool) -> bool {
    let mut text = after_space(text);
    if known.followers.is_empty() {
        let after = |text: &[u8], byte: u8| -> Option<usize> {
            let trimmed = after_space(text);
            (trimmed.first() == Some(&byte)).then_some(text.len() - trimmed.len() + 1)
        };
        return after(text, b'}')
            .and_then(|first| Some(first + after(&text[first..], b'}')?))
            .is_some_and(|both| match after_space(&text[both..]).first() {
                Some(byte) => matches!(byte, b',' | b']'),
                None => may_end,
            });
    }
    for follower in known.followers {
        let Some(rest) = text.strip_prefix(b",").map(after_space) else {
            return false;
        };
        let named = rest
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_prefix(*follower)?.strip_prefix(b"\""));
        let Some(value) = named.and_then(|rest| after_space(rest).strip_prefix(b":")) else {
            return false;
        };
        // A number, or a short string without quotes in it.
        let value = after_space(value);
        let end = match value.strip_prefix(b"\"") {
            Some(string) => string.iter().position(|&byte| byte == b'"').map(|quote| quote + 2),
            None => value
                .iter()
                .position(|byte| !byte.is_ascii_digit() && !b"+-.eE".contains(byte)),
        };
        let Some(end) = end.filter(|&end| end > 0) else {
            return false;
        };
        text = after_space(&value[end..]);
    }
    true
}
