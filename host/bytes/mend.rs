//! Mending: the flaws replaced, every other byte as it was.

use super::container::{Opened, open};
use super::flaw::{Flaw, FlawKind, LONGEST_SHOWN};
use super::place::Lines;
use super::scan::{Findings, Verdict};
use super::utf8::{REPLACEMENT, first_ill_formed, incomplete_tail};
use super::window::{Reach, Window};
use serde::Serialize;
use std::io::{self, Error, ErrorKind, Read, Write};

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    pub kind: FlawKind,
    /// In bytes from the start of the decompressed input.
    pub offset: u64,
    /// In bytes from the start of the mended copy.
    pub copy_offset: u64,
    /// What stands in the input.
    pub old: Vec<u8>,
    /// What stands in the copy instead.
    pub new: Vec<u8>,
    /// In the input, from 1.
    pub line: u64,
    /// In the input, from 1, in characters.
    pub column: u64,
}

impl From<&Edit> for Flaw {
    fn from(edit: &Edit) -> Flaw {
        Flaw {
            kind: edit.kind,
            offset: edit.offset,
            length: edit.old.len() as u64,
            bytes: edit.old[..edit.old.len().min(LONGEST_SHOWN)].to_vec(),
            line: edit.line,
            column: edit.column,
        }
    }
}

/// What [`mend`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mended {
    /// Bytes written.
    pub size: u64,
    pub edits: u64,
}

/// Reads `input` a second time and writes it to `out`, decompressed and mended; each replacement is handed to `edits` in the
/// order of their offsets. `findings` are those of a [`scan`](super::scan) of the same input. A clean input is written as it is.
///
/// Errors: those of `input` and `out`; [`ErrorKind::InvalidInput`] if the findings refuse the input.
pub fn mend<R: Read, W: Write>(
    input: R,
    findings: &Findings,
    mut out: W,
    edits: &mut dyn FnMut(&Edit),
) -> io::Result<Mended> {
    let mut reader = MendingReader::new(input, findings)?;
    let mut mended = Mended { size: 0, edits: 0 };
    while reader.advance(&mut |edit| {
        mended.edits += 1;
        edits(edit);
    })? {
        let ready = reader.ready();
        out.write_all(ready)?;
        mended.size += ready.len() as u64;
    }
    out.flush()?;
    Ok(mended)
}

/// The mended bytes of an input as a stream: for parsing without a copy on disk.
pub struct MendingReader<R: Read> {
    window: Window<Opened<R>>,
    lines: Lines,
    at: u64,
    growth: i64,
    ready: Ready,
    given: usize,
}

/// Mended bytes that wait to be read.
enum Ready {
    /// As they stand in the window, between two offsets.
    Window(u64, u64),
    Owned(Vec<u8>),
}

impl<R: Read> MendingReader<R> {
    /// `findings` are those of a [`scan`](super::scan) of the same input.
    ///
    /// Errors: those of `input`; [`ErrorKind::InvalidInput`] if the findings refuse the input.
    pub fn new(input: R, findings: &Findings) -> io::Result<Self> {
        if findings.verdict == Verdict::Refused {
            let reason = findings.reason.as_deref().unwrap_or("refused");
            return Err(Error::new(ErrorKind::InvalidInput, reason.to_owned()));
        }
        let (_, opened) = open(input)?;
        let reach = Reach {
            history: 4,
            lookahead: 4,
            capacity: 256 << 10,
        };
        Ok(MendingReader {
            window: Window::new(opened, reach),
            lines: Lines::new(),
            at: 0,
            growth: 0,
            ready: Ready::Window(0, 0),
            given: 0,
        })
    }

    fn ready(&self) -> &[u8] {
        match &self.ready {
            Ready::Window(from, to) => self.window.slice(*from, *to),
            Ready::Owned(bytes) => bytes,
        }
    }

    /// Mends the next window; false at the end.
    fn advance(&mut self, edits: &mut dyn FnMut(&Edit)) -> io::Result<bool> {
        self.given = 0;
        self.window.slide(self.at)?;
        let (from, end) = (self.at, self.window.end());
        let fresh = self.window.slice(from, end);
        let cut = if self.window.is_finished() {
            0
        } else {
            incomplete_tail(fresh)
        };
        let fresh = &fresh[..fresh.len() - cut];
        self.at += fresh.len() as u64;
        if simdutf8::basic::from_utf8(fresh).is_ok() {
            self.lines.pass(fresh);
            self.ready = Ready::Window(from, self.at);
            return Ok(!fresh.is_empty());
        }
        let mut mended = Vec::with_capacity(fresh.len() + 64);
        let mut done = 0;
        while let Some((at, length)) = first_ill_formed(fresh, done, true) {
            self.lines.pass(&fresh[done..at]);
            mended.extend_from_slice(&fresh[done..at]);
            let place = self.lines.place();
            edits(&Edit {
                kind: FlawKind::IllFormedUtf8,
                offset: place.offset,
                copy_offset: place.offset.wrapping_add_signed(self.growth),
                old: fresh[at..at + length].to_vec(),
                new: REPLACEMENT.to_vec(),
                line: place.line,
                column: place.column,
            });
            self.growth += REPLACEMENT.len() as i64 - length as i64;
            mended.extend_from_slice(REPLACEMENT);
            self.lines.pass_ill_formed(length as u64);
            done = at + length;
        }
        self.lines.pass(&fresh[done..]);
        mended.extend_from_slice(&fresh[done..]);
        self.ready = Ready::Owned(mended);
        Ok(true)
    }
}

impl<R: Read> Read for MendingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready().len() {
            if buffer.is_empty() || !self.advance(&mut |_| {})? {
                return Ok(0);
            }
        }
        let ready = &self.ready()[self.given..];
        let length = ready.len().min(buffer.len());
        buffer[..length].copy_from_slice(&ready[..length]);
        self.given += length;
        Ok(length)
    }
}
