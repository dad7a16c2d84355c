//! Refusals: what is wrong, where, and what to do about it, in one line.

use super::edit::Sink;
use super::flaw::FlawKind;
use super::grammar::Expect;
use super::machine::{Machine, Outcome};
use super::observer::Observer;
use super::place::Place;
use std::io::{self, Read};

/// How far around a place another document is looked for, in bytes.
const AROUND: u64 = 4096;

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    pub(super) fn refuse(&mut self, kind: FlawKind, at: u64, what: &str) -> io::Result<Outcome> {
        let place = self.place(at);
        Ok(self.refuse_at(kind, place, 1, what))
    }

    pub(super) fn refuse_at(&mut self, kind: FlawKind, place: Place, length: u64, what: &str) -> Outcome {
        self.add_flaw(kind, place, length);
        Outcome::Refused(located(what, place))
    }

    /// The grammar does not allow what stands at `at`, and it cannot be mended.
    pub(super) fn refuse_unexpected(&mut self, at: u64) -> io::Result<Outcome> {
        if let Some(other) = self.other_document(at) {
            return self.refuse_torn(at, other);
        }
        let what = self.unexpected(at);
        self.refuse(FlawKind::Syntax, at, &what)
    }

    /// Two writers wrote to one file at once.
    pub(super) fn refuse_torn(&mut self, at: u64, other: u64) -> io::Result<Outcome> {
        let what = format!(
            "another document starts inside this one, near byte {other}: two writers shared the file, and their events \
             cannot be told apart (give each rank its own path); the damage shows"
        );
        self.refuse(FlawKind::SeveralDocuments, at, &what)
    }

    /// Where the document seems to start once more: inside it, as far as the walk has come, or around `at`.
    pub(super) fn other_document(&self, at: u64) -> Option<u64> {
        if self.grammar.restart.is_some() {
            return self.grammar.restart;
        }
        let (from, to) = (at.saturating_sub(AROUND), at + AROUND);
        self.document_between(from, to)
    }

    /// Where the first key of the document opens an object between two offsets, the document's own start left out.
    pub(super) fn document_between(&self, from: u64, to: u64) -> Option<u64> {
        let (root, key) = (self.grammar.root?.0, &*self.grammar.first_key);
        let from = from.max(root + 1).max(self.window.origin());
        let opening = [b"\"", key, b"\""].concat();
        let text = self.window.slice(from, to);
        let found =
            memchr::memmem::find_iter(text, &opening).find(|&found| text[..found].trim_ascii_end().ends_with(b"{"));
        if key.is_empty() {
            None
        } else {
            found.map(|found| from + found as u64)
        }
    }

    fn unexpected(&self, at: u64) -> String {
        let wanted = match self.grammar.expect {
            Expect::Value if self.grammar.frames.is_empty() => "a JSON document",
            Expect::Value => "a value",
            Expect::FirstElement => "a value or ']'",
            Expect::FirstKey => "a key or '}'",
            Expect::Key => "a key",
            Expect::Colon => "':' after a key",
            Expect::Next | Expect::InKey | Expect::InString => "',' or the end of the container",
            Expect::Nothing => "the end of the file",
        };
        let found = self.byte(at);
        if found.is_ascii_graphic() {
            format!("expected {wanted}, found '{}'", char::from(found))
        } else {
            format!("expected {wanted}, found byte {found:02X}")
        }
    }

    /// What starts at `at` instead of a document.
    pub(super) fn not_json(&self, at: u64) -> String {
        const SIGNS: &[(&[u8], &str)] = &[
            (
                b"version https://git-lfs.github.com/spec/",
                "a Git LFS pointer, the trace is not here (`git lfs pull`)",
            ),
            (
                b"SQLite format 3\0",
                "an SQLite database, perhaps rocpd (rocprofv3 --output-format json writes JSON)",
            ),
            (b"PK\x03\x04", "a zip archive (unpack it first)"),
            (b"BZh", "bzip2-compressed (decompress it first)"),
            (b"<", "HTML or XML, perhaps a download that failed"),
            (b"\x80\x04", "a Python pickle"),
            (b"\x80\x05", "a Python pickle"),
        ];
        let start = self.window.slice(at, at + 64);
        match SIGNS.iter().find(|(sign, _)| start.starts_with(sign)) {
            Some((_, name)) => format!("not JSON but {name}; it starts"),
            None => {
                let shown: String = String::from_utf8_lossy(&start[..start.len().min(24)])
                    .escape_debug()
                    .collect();
                format!("not JSON: it starts with \"{shown}\"")
            }
        }
    }
}

pub(super) fn located(what: &str, place: Place) -> String {
    let separator = if what.ends_with("starts") || what.ends_with("shows") || what.ends_with(',') {
        ""
    } else {
        ","
    };
    format!(
        "{what}{separator} at byte {} (line {}, column {})",
        place.offset, place.line, place.column
    )
}
