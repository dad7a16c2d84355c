//! Where a document that is not complete is closed.

use super::edit::Sink;
use super::flaw::FlawKind;
use super::grammar::Expect;
use super::machine::{Ending, Machine};
use super::observer::{Observer, Structure};
use super::place::Place;
use super::recover::ROCPROFILER;
use super::refuse::located;
use super::view::{View, after_space, is_space};
use std::io::Read;

/// What is longer, in bytes, is no event but a document in itself.
const LONGEST_EVENT: u64 = 64 << 10;

/// The one edit at the end of a document that was not complete: all from `place` on becomes `new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Closing {
    pub kind: FlawKind,
    pub place: Place,
    /// Up to here the input is replaced; 0 bytes of it may be.
    pub end: u64,
    pub new: Vec<u8>,
    pub path: Option<String>,
    /// Whole elements of the array that was cut.
    pub kept: u64,
}

impl Closing {
    /// What a cut cost; none if only brackets are missing.
    pub(super) fn warning(&self) -> Option<String> {
        let inside = self
            .path
            .as_deref()
            .map(|path| format!(", in {path}"))
            .unwrap_or_default();
        (self.kind == FlawKind::Cut).then(|| {
            format!(
                "cut at byte {}{inside}: {} bytes are dropped, {} before them are whole; all counts are a floor",
                self.end,
                self.end - self.place.offset,
                self.kept,
            )
        })
    }
}

pub(super) enum Finished {
    /// The document is complete.
    Complete,
    Closed(Closing),
    Refused(FlawKind, Place, String),
}

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    /// What is to be done about the end of the input.
    pub(super) fn finish(&mut self, ending: Ending) -> Finished {
        if self.grammar.expect == Expect::Nothing {
            return Finished::Complete;
        }
        let end = ending.at;
        let size = self.window.end();
        let place = self.place(end);
        let Some((root_at, _)) = self.grammar.root else {
            let what = if size == 0 {
                "empty: 0 bytes"
            } else {
                "empty: no JSON in it, white space or zero bytes only"
            };
            return Finished::Refused(FlawKind::Empty, place, what.to_owned());
        };
        if let Some(other) = self.other_document(end).or_else(|| self.appended_array(root_at, end)) {
            let what = format!(
                "the file ends inside its document, and another one starts in it, near byte {other}: two runs wrote to this \
                 file, give each its own; the end stands"
            );
            return Finished::Refused(FlawKind::SeveralDocuments, place, located(&what, place));
        }
        let depth = self.depth_to_keep(end);
        let (from, text_at) = self.cut_at(depth, ending);
        let kept = self
            .grammar
            .frames
            .get(depth.wrapping_sub(1))
            .map_or(0, |frame| frame.index);
        let whole = self.grammar.frames[..depth].iter().any(|frame| frame.index > 0)
            || from == end && self.grammar.expect == Expect::Next && depth == self.grammar.frames.len();
        if !whole {
            let what = "the file ends before its first event or member does: there is nothing to keep; it ends";
            return Finished::Refused(FlawKind::Cut, place, located(what, place));
        }
        let mut new = Vec::new();
        if text_at > from && from >= self.window.origin() {
            // Stray commas may stand between the two as well.
            let between = self.window.slice(from + 1, text_at).iter();
            new.extend(between.filter(|byte| is_space(**byte)));
        }
        let closers = self.grammar.frames[..depth].iter().rev();
        new.extend(closers.map(|frame| {
            if frame.structure == Structure::Object {
                b'}'
            } else {
                b']'
            }
        }));
        let kind = if text_at < size {
            FlawKind::Cut
        } else {
            FlawKind::MissingBracket
        };
        let place = self.place(from);
        let path = self.path_of(depth);
        Finished::Closed(Closing {
            kind,
            place,
            end: size,
            new,
            path,
            kept,
        })
    }

    /// How many of the open containers are kept: the outermost array, for its elements are events, and what is around it.
    /// rocprofv3 wraps its records once more, in one element for each process; and an element of more than
    /// `LONGEST_EVENT` bytes that holds whole elements itself is no event either. Without an array, all containers are kept.
    fn depth_to_keep(&self, end: u64) -> usize {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        let frames = &self.grammar.frames;
        for (number, frame) in frames.iter().enumerate() {
            if frame.structure == Structure::Object {
                continue;
            }
            let is_last = number + 1 == frames.len();
            let is_process = number == 1 && self.grammar.key(1, view) == Some(ROCPROFILER);
            let is_document = end - frame.child_at > LONGEST_EVENT
                && frames[number + 1..]
                    .iter()
                    .any(|inner| inner.structure == Structure::Array && inner.index > 0);
            if is_last || !is_process && !is_document {
                return number + 1;
            }
        }
        frames.len()
    }

    /// Where the last of `depth` containers is cut: from its last comma, if nothing whole follows that, and from the start of
    /// what follows. White space between the two is kept.
    fn cut_at(&self, depth: usize, ending: Ending) -> (u64, u64) {
        let Some(frame) = self.grammar.frames.get(depth.wrapping_sub(1)) else {
            return (ending.at, ending.at);
        };
        let deepest = depth == self.grammar.frames.len();
        let (from, text_at) = match ending.scalar_at.filter(|_| deepest) {
            None => {
                let number = depth - 1;
                (
                    self.grammar.unfinished(number, ending.at),
                    self.grammar.unfinished_child(number, ending.at),
                )
            }
            Some(scalar_at) => {
                let is_element = frame.structure == Structure::Array;
                let is_key = matches!(self.grammar.expect, Expect::Key | Expect::FirstKey);
                let start = if is_element || is_key {
                    scalar_at
                } else {
                    frame.child_at
                };
                (if frame.index > 0 { frame.comma_at } else { start }, start)
            }
        };
        (self.first_of_commas(from), text_at)
    }

    /// The first of several commas in a row, of which the last stands at `at`; `at` itself if it is no comma.
    fn first_of_commas(&self, at: u64) -> u64 {
        let mut first = at;
        let before = self.window.slice(self.window.origin(), at);
        if self.byte(at) == b',' {
            for (place, &byte) in before
                .iter()
                .enumerate()
                .rev()
                .take_while(|(_, byte)| **byte == b',' || is_space(**byte))
            {
                if byte == b',' {
                    first = self.window.origin() + place as u64;
                }
            }
        }
        first
    }

    /// Where a number starts that touches the end, and may have had more digits.
    pub(super) fn number_before(&self, end: u64) -> Option<u64> {
        if self.grammar.expect != Expect::Next {
            return None;
        }
        let before = self.window.slice(end.saturating_sub(LONGEST_EVENT), end);
        let length = before
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte))
            .count() as u64;
        (length > 0).then_some(end - length)
    }

    /// Where an array stands in an array of events: a run that was appended to an unfinished one (facts/traces.md A53).
    fn appended_array(&self, root_at: u64, end: u64) -> Option<u64> {
        let root = self
            .grammar
            .frames
            .first()
            .filter(|root| root.structure == Structure::Array && root.index > 0)?;
        let first = after_space(self.head.get(root_at as usize + 1..)?).first();
        let inner = self
            .grammar
            .frames
            .get(1)
            .is_some_and(|frame| frame.structure == Structure::Array);
        let closed = self
            .window
            .slice(end.saturating_sub(64), end)
            .trim_ascii_end()
            .ends_with(b"]");
        (first == Some(&b'{') && (inner || closed)).then_some(root.child_at)
    }
}
