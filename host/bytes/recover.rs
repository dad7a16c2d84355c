//! What becomes of each place that the grammar cannot pass: an edit, or a refusal. Only what can be read in one way is mended.

use super::blocks::Carry;
use super::edit::Sink;
use super::escapes::{Escape, escape};
use super::flaw::FlawKind;
use super::grammar::{Expect, Obstacle, Trouble};
use super::machine::{Ending, Machine, Outcome};
use super::number::ends_scalar;
use super::observer::{Observer, Scalar, Structure};
use super::utf8::REPLACEMENT;
use super::view::{View, after_space};
use super::words::{Word, word};
use std::io::{self, Read};

/// The longest bare word that is taken for one, in bytes.
const LONGEST_WORD: usize = 256;
/// The most bytes one edit takes away.
pub(super) const LONGEST_RUN: u64 = 64 << 10;
/// The member at the top of a document of rocprofv3.
pub(super) const ROCPROFILER: &[u8] = b"rocprofiler-sdk-tool";
/// The member of an API record that holds its arguments.
pub(super) const ARGUMENTS: &[u8] = b"args";

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    pub(super) fn recover(&mut self, trouble: Trouble) -> io::Result<Outcome> {
        let at = self.window.origin() + trouble.at as u64;
        if self.byte(at) == 0 && self.zeros(at) {
            return self.pass_zeros(at);
        }
        match trouble.kind {
            Obstacle::Control => {
                let new: &[u8] = match self.byte(at) {
                    b'\t' => b"\\t",
                    b'\n' => b"\\n",
                    b'\r' => b"\\r",
                    _ => REPLACEMENT,
                };
                self.replace(FlawKind::ControlCharacter, at, 1, new, false)?;
                Ok(Outcome::Continue)
            }
            Obstacle::Escape(kind) => self.recover_escape(at, kind),
            Obstacle::Infinite(end) => {
                let length = (end - trouble.at) as u64;
                self.value_instead(FlawKind::NonFiniteNumber, at, length, b"null", Scalar::Null)
            }
            Obstacle::TooDeep => self.refuse(FlawKind::TooDeep, at, "nested more than 1024 deep"),
            Obstacle::Unexpected => match self.grammar.expect {
                Expect::Value | Expect::FirstElement => self.recover_value(at),
                Expect::Key | Expect::FirstKey => self.recover_key(at),
                Expect::Next => self.recover_next(at),
                Expect::Nothing => self.recover_rest(at),
                Expect::Colon | Expect::InKey | Expect::InString => self.refuse_unexpected(at),
            },
        }
    }

    pub(super) fn recover_escape(&mut self, at: u64, kind: Escape) -> io::Result<Outcome> {
        match kind {
            Escape::Plain => self.notice_path(at),
            Escape::Illegal if self.byte(at + 1) == b'\'' => {
                self.replace(FlawKind::IllegalEscape, at, 2, b"'", false)?
            }
            Escape::Illegal => {
                self.notice_path(at);
                self.replace(FlawKind::IllegalEscape, at, 1, b"\\\\", false)?;
            }
            Escape::LoneSurrogate => self.replace(FlawKind::LoneSurrogate, at, 6, REPLACEMENT, false)?,
            Escape::Control(length) => {
                if length == 2 {
                    self.notice_path(at);
                }
                // `C:\temp\bin` reads like escapes, but was meant as a path: nothing in it is replaced (facts/traces.md A18).
                let in_path = length == 2 && self.grammar.path_at == self.grammar.string_at;
                if !in_path && !self.is_unprinted() {
                    self.replace(FlawKind::ControlEscape, at, length as u64, REPLACEMENT, false)?;
                }
            }
            Escape::Pair => {
                let unit = |at| u16::from_str_radix(std::str::from_utf8(self.window.slice(at, at + 4)).ok()?, 16).ok();
                let units = [unit(at + 2), unit(at + 8)].map(Option::unwrap_or_default);
                let text = String::from_utf16_lossy(&units);
                self.replace(FlawKind::SurrogatePair, at, 12, text.as_bytes(), false)?;
                return Ok(Outcome::Skip(at + 12));
            }
        }
        Ok(Outcome::Continue)
    }

    fn notice_path(&mut self, at: u64) {
        self.grammar
            .notice_path(self.window.bytes(), (at - self.window.origin()) as usize);
    }

    /// Whether the string in hand is an argument of an API record of rocprofv3: no report prints those, and they are where
    /// freed memory shows (facts/tracelens.md section 3 e, facts/traces.md A4).
    fn is_unprinted(&self) -> bool {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        let depth = self.grammar.frames.len();
        depth > 1
            && self.grammar.key(depth - 1, view) == Some(ARGUMENTS)
            && self.grammar.key(1, view) == Some(ROCPROFILER)
    }

    /// A value is expected, and none starts at `at`.
    fn recover_value(&mut self, at: u64) -> io::Result<Outcome> {
        let Some(frame) = self.grammar.frames.last() else {
            return self.recover_start(at);
        };
        let (structure, comma_at) = (frame.structure, frame.comma_at);
        match (self.byte(at), structure) {
            (b',' | b'}', Structure::Object) => {
                self.replace(FlawKind::MissingValue, at, 0, b"null", false)?;
                self.grammar.expect = self.value_ends(at);
                Ok(Outcome::Again)
            }
            (b',', Structure::Array) => self.drop_comma(comma_at, at),
            (b']', Structure::Array) => self.drop_last_comma(comma_at, at),
            (first, _) if !ends_scalar(first) => self.recover_word(at),
            _ => self.refuse_unexpected(at),
        }
    }

    /// The input ends because what follows has been dropped: what would have been mended only in its light is mended now.
    pub(super) fn end_of_kept(&mut self) -> io::Result<()> {
        let in_object = self
            .grammar
            .frames
            .last()
            .is_some_and(|frame| frame.structure == Structure::Object);
        if !self.may_be_cut && in_object && self.grammar.expect == Expect::Value {
            self.replace(FlawKind::MissingValue, self.window.end(), 0, b"null", false)?;
        }
        Ok(())
    }

    /// Something else than a document stands at the very start.
    fn recover_start(&mut self, at: u64) -> io::Result<Outcome> {
        if self.byte(at) != b',' {
            let what = self.not_json(at);
            return self.refuse(FlawKind::NotJson, at, &what);
        }
        // A fragment of an array, as rocprof v1 leaves it (facts/traces.md A30).
        self.replace(FlawKind::MissingBracket, at, 1, b"[", true)?;
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        self.grammar.root = Some((at, b'['));
        self.grammar
            .begin(view, Structure::Array, (at - view.origin) as usize, &mut self.observer);
        self.grammar.expect = Expect::FirstElement;
        Ok(Outcome::Continue)
    }

    /// A comma where nothing stands before it. Of two commas the first goes, since the second may be the last one.
    fn drop_comma(&mut self, comma_at: u64, at: u64) -> io::Result<Outcome> {
        if matches!(self.grammar.expect, Expect::FirstElement | Expect::FirstKey) {
            self.replace(FlawKind::StrayComma, at, 1, b"", false)?;
            return Ok(Outcome::Continue);
        }
        if comma_at < self.window.origin() {
            return self.refuse_unexpected(at);
        }
        self.replace(FlawKind::StrayComma, comma_at, 1, b"", false)?;
        if let Some(frame) = self.grammar.frames.last_mut() {
            frame.comma_at = at;
        }
        Ok(Outcome::Continue)
    }

    fn drop_last_comma(&mut self, comma_at: u64, at: u64) -> io::Result<Outcome> {
        if comma_at < self.window.origin() {
            return self.refuse_unexpected(at);
        }
        self.replace(FlawKind::StrayComma, comma_at, 1, b"", false)?;
        self.grammar.expect = Expect::Next;
        Ok(Outcome::Again)
    }

    /// A scalar that is no value of JSON.
    fn recover_word(&mut self, at: u64) -> io::Result<Outcome> {
        let ahead = self.window.slice(at, at + LONGEST_WORD as u64 + 1);
        let length = ahead.iter().position(|&byte| ends_scalar(byte)).unwrap_or(ahead.len());
        let end = at + length as u64;
        if end == self.window.end() && self.window.is_finished() && self.may_be_cut {
            return Ok(Outcome::End(Ending {
                at: end,
                scalar_at: Some(at),
            }));
        }
        if length > LONGEST_WORD {
            return self.refuse_unexpected(at);
        }
        let text = ahead[..length].to_vec();
        match word(&text) {
            Some(Word::NonFinite) => {
                self.value_instead(FlawKind::NonFiniteNumber, at, length as u64, b"null", Scalar::Null)
            }
            Some(Word::Number(number)) => {
                let value = Scalar::Number(&number);
                self.value_instead(FlawKind::MalformedNumber, at, length as u64, &number, value)
            }
            Some(Word::Other(quoted)) => {
                let value = Scalar::String(&quoted[1..quoted.len() - 1]);
                self.value_instead(FlawKind::BareWord, at, length as u64, &quoted, value)
            }
            None => self.refuse_unexpected(at),
        }
    }

    /// Replaces a scalar; the walk goes on after it.
    fn value_instead(
        &mut self,
        kind: FlawKind,
        at: u64,
        length: u64,
        new: &[u8],
        value: Scalar<'_>,
    ) -> io::Result<Outcome> {
        self.replace(kind, at, length, new, false)?;
        self.pass_over(at, length);
        if self.grammar.is_heard() {
            let view = View {
                bytes: self.window.bytes(),
                origin: self.window.origin(),
            };
            self.grammar.report(view, value, &mut self.observer);
        }
        self.grammar.expect = self.value_ends(at + length);
        Ok(Outcome::Continue)
    }

    /// Counts lines over something that an edit covers.
    pub(super) fn pass_over(&mut self, at: u64, length: u64) {
        self.lines.pass_lossy(self.window.slice(at, at + length));
        self.ignore_encoding_until(at + length);
    }

    fn value_ends(&mut self, end: u64) -> Expect {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        self.grammar
            .value_ends(view, (end - view.origin) as usize, &mut self.top)
    }

    /// A key is expected, and none starts at `at`.
    fn recover_key(&mut self, at: u64) -> io::Result<Outcome> {
        let comma_at = self.grammar.frames.last().map_or(0, |frame| frame.comma_at);
        match self.byte(at) {
            b',' => self.drop_comma(comma_at, at),
            b'}' => self.drop_last_comma(comma_at, at),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => self.recover_unquoted_key(at),
            _ => self.refuse_unexpected(at),
        }
    }

    /// `tid": 0` or `tid: 0` (facts/traces.md A25).
    fn recover_unquoted_key(&mut self, at: u64) -> io::Result<Outcome> {
        let ahead = self.window.slice(at, at + LONGEST_WORD as u64);
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = ahead.iter().position(|byte| !is_letter(byte)).unwrap_or(ahead.len());
        let rest = &ahead[length..];
        let (quoted, after) = match rest.strip_prefix(b"\"") {
            Some(after) => (true, after),
            None => (false, rest),
        };
        if !after_space(after).starts_with(b":") {
            return if rest.is_empty() && self.window.is_finished() {
                Ok(Outcome::End(Ending {
                    at: self.window.end(),
                    scalar_at: Some(at),
                }))
            } else {
                self.refuse_unexpected(at)
            };
        }
        let first = self.grammar.expect == Expect::FirstKey;
        let (end, key) = (at + length as u64, ahead[..length].to_vec());
        let (old, new) = if quoted {
            (0, b"\"".to_vec())
        } else {
            (length, [b"\"", &key[..], b"\""].concat())
        };
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        self.grammar.key_is(view, at, at, end, first, &mut self.top);
        self.replace(FlawKind::UnquotedKey, at, old as u64, &new, false)?;
        self.grammar.expect = Expect::Colon;
        // The quote that ends the key looked like the start of a string: go on after it, outside strings.
        Ok(if quoted {
            Outcome::Reindex(end + 1, Carry::default())
        } else {
            Outcome::Continue
        })
    }

    /// A comma or the end of the container is expected.
    fn recover_next(&mut self, at: u64) -> io::Result<Outcome> {
        let structure = self.grammar.frames.last().map(|frame| frame.structure);
        if structure == Some(Structure::Object)
            && let Some(closing) = self.string_before(at)
        {
            return self.recover_quotes(closing, at);
        }
        let comma_is_missing = match (structure, self.byte(at)) {
            (Some(Structure::Object), b'"') => self.is_key(at),
            (Some(Structure::Array), b'{') => self.is_sibling(at),
            _ => false,
        };
        if !comma_is_missing {
            return self.refuse_unexpected(at);
        }
        self.replace(FlawKind::MissingComma, at, 0, b",", true)?;
        if let Some(frame) = self.grammar.frames.last_mut() {
            frame.index += 1;
            frame.comma_at = at;
            self.grammar.expect = if frame.structure == Structure::Object {
                Expect::Key
            } else {
                Expect::Value
            };
        }
        Ok(Outcome::Again)
    }

    /// Whether a key and its colon start at `at`.
    fn is_key(&self, at: u64) -> bool {
        let ahead = self.window.slice(at + 1, at + LONGEST_WORD as u64);
        let Some(length) = ahead.iter().position(|&byte| byte == b'"' || byte == b'\\') else {
            return false;
        };
        ahead[length] == b'"' && after_space(&ahead[length + 1..]).starts_with(b":")
    }

    /// Whether the object at `at` starts with the same key as the element before it, and not with that of the document.
    fn is_sibling(&self, at: u64) -> bool {
        let key = |at: u64| {
            let ahead = self.window.slice(at, at + LONGEST_WORD as u64).strip_prefix(b"{")?;
            let name = after_space(ahead).strip_prefix(b"\"")?;
            Some(&name[..name.iter().position(|&byte| byte == b'"')?])
        };
        let Some(frame) = self.grammar.frames.last() else {
            return false;
        };
        let in_window = frame.child_at >= self.window.origin();
        in_window && key(at).is_some() && key(at) == key(frame.child_at) && !self.grammar.starts_document(key(at))
    }

    /// The document is complete, and something follows.
    fn recover_rest(&mut self, at: u64) -> io::Result<Outcome> {
        match self.byte(at) {
            b'{' | b'[' => {
                let line = self.place(at).line;
                let one_a_line = self.grammar.root.is_some_and(|(start, _)| self.is_one_line(start, at));
                let what = if one_a_line {
                    "one document a line (NDJSON): wrap them in {\"traceEvents\":[...]} with commas between; the second starts"
                        .to_owned()
                } else {
                    format!(
                        "a second document, in line {line}: two runs wrote to this file, give each its own; it starts"
                    )
                };
                self.refuse(FlawKind::SeveralDocuments, at, &what)
            }
            _ => self.refuse_unexpected(at),
        }
    }

    /// Whether the document that starts at `start` and ends before `at` fills one line.
    fn is_one_line(&self, start: u64, at: u64) -> bool {
        let text = self.window.slice(start, at);
        text.len() as u64 == at - start && !text.trim_ascii_end().contains(&b'\n') && text.ends_with(b"\n")
    }

    pub(super) fn byte(&self, at: u64) -> u8 {
        self.window.slice(at, at + 1).first().copied().unwrap_or(b' ')
    }

    /// What an escape at `at` would be, for text that is not indexed.
    pub(super) fn escape_at(&self, at: u64) -> Escape {
        escape(self.window.slice(at, at + 12))
    }
}
