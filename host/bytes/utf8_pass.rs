//! The check of UTF-8 alone, at the speed of reading. One thread does it: a second one would have to fetch each byte from the
//! cache of the first, which costs more than the check.

use super::ahead::fill;
use super::edit::{Edit, Sink};
use super::findings::{Findings, LONGEST_END};
use super::flaw::FlawKind;
use super::found::Found;
use super::place::Lines;
use super::scan::Pass;
use super::standing::Mark;
use super::survey::survey;
use super::utf8::{REPLACEMENT, first_ill_formed, incomplete_tail};
use super::window::Reach;
use std::io::{self, Read};

/// Bytes read at a time: two pieces of them stay in the second level of cache.
const PIECE: usize = 64 << 10;
/// Room before each piece, for the start of a character that the piece before it ended in.
const ROOM: usize = 4;

/// Checks all of `text`.
pub(super) fn check_utf8<R: Read>(mut text: R, found: &mut Found, reach: Reach) -> io::Result<Pass> {
    let size = reach.capacity.min(PIECE);
    let (lines, growth, cut) = (Lines::new(), 0, Vec::new());
    let mut checker = Checker {
        found,
        lines,
        growth,
        cut,
        head: Vec::new(),
        tail: Vec::new(),
    };
    let mut buffer = vec![0; ROOM + size];
    let mut before = vec![0; ROOM + size];
    loop {
        let filled = fill(&mut text, &mut buffer[ROOM..])?;
        let last = filled < size;
        checker.check(&mut buffer, filled, last)?;
        if last {
            checker.keep_tail(&before, &buffer[ROOM..ROOM + filled]);
            return Ok(checker.into_pass());
        }
        std::mem::swap(&mut buffer, &mut before);
    }
}

struct Checker<'a> {
    found: &'a mut Found,
    lines: Lines,
    /// Bytes by which the mended copy is longer than what has been checked.
    growth: i64,
    /// The start of a character whose end is still to come.
    cut: Vec<u8>,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Checker<'_> {
    fn check(&mut self, buffer: &mut [u8], filled: usize, last: bool) -> io::Result<()> {
        let missing = LONGEST_END - self.head.len();
        self.head.extend_from_slice(&buffer[ROOM..ROOM + missing.min(filled)]);
        let start = ROOM - self.cut.len();
        buffer[start..ROOM].copy_from_slice(&self.cut);
        let text = &buffer[start..ROOM + filled];
        let cut = if last { 0 } else { incomplete_tail(text) };
        let (text, rest) = text.split_at(text.len() - cut);
        let mut found = &mut *self.found;
        if found.wants_marks() {
            found.mark(Mark::of_encoding(self.lines.place().offset));
        }
        self.cut.clear();
        self.cut.extend_from_slice(rest);
        let survey = survey(text);
        if survey.ascii || simdutf8::basic::from_utf8(text).is_ok() {
            self.lines.pass_surveyed(text, survey);
            return found.settled(text, self.lines.place().offset);
        }
        let mut done = 0;
        while let Some((at, length)) = first_ill_formed(text, done, true) {
            self.lines.pass(&text[done..at]);
            (&mut *self.found).settled(&text[..at], self.lines.place().offset)?;
            self.replace(&text[at..at + length])?;
            done = at + length;
        }
        self.lines.pass(&text[done..]);
        (&mut *self.found).settled(text, self.lines.place().offset)
    }

    fn replace(&mut self, old: &[u8]) -> io::Result<()> {
        let place = self.lines.place();
        let edit = Edit {
            kind: FlawKind::IllFormedUtf8,
            offset: place.offset,
            copy_offset: place.offset.wrapping_add_signed(self.growth),
            old: old.to_vec(),
            new: REPLACEMENT.to_vec(),
            line: place.line,
            column: place.column,
            guess: false,
        };
        self.growth += REPLACEMENT.len() as i64 - old.len() as i64;
        self.lines.pass_ill_formed(old.len() as u64);
        (&mut *self.found).edit(edit, None)
    }

    fn keep_tail(&mut self, before: &[u8], last: &[u8]) {
        let read = self.lines.place().offset as usize;
        let wanted = LONGEST_END.min(read);
        let from_before = wanted.saturating_sub(last.len()).min(before.len() - ROOM);
        self.tail.extend_from_slice(&before[before.len() - from_before..]);
        self.tail
            .extend_from_slice(&last[last.len() - wanted.min(last.len())..]);
    }

    fn into_pass(self) -> Pass {
        Pass {
            end: self.lines.place(),
            closing: None,
            findings: Findings {
                head: self.head,
                tail: self.tail,
                ..Findings::default()
            },
        }
    }
}
