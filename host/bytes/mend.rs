//! Mending: the flaws replaced, every other byte as it was.

use super::edit::{Edit, Sink};
use super::ending::Closing;
use super::findings::{Findings, Verdict};
use super::flaw::Flaw;
use super::machine::{Machine, Step};
use super::recover::LONGEST_RUN;
use super::text::Text;
use super::window::{Reach, Window};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{self, Error, ErrorKind, Read, Take, Write};
use std::iter::Peekable;

/// What [`mend`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Mended {
    /// Bytes written.
    pub size: u64,
    pub edits: u64,
}

/// Reads `input` a second time and writes it to `out`: decompressed, UTF-8 and mended; each replacement is handed to `edits`
/// in the order of their offsets. `findings` are those of a [`scan`](super::scan) of the same input. A clean input is written
/// as it is.
///
/// Errors: those of `input` and `out`; [`ErrorKind::InvalidInput`] if the findings refuse the input;
/// [`ErrorKind::InvalidData`] if the input is not what was scanned.
pub fn mend<R: Read, W: Write>(
    input: R,
    findings: &Findings,
    mut out: W,
    edits: &mut dyn FnMut(&Edit),
) -> io::Result<Mended> {
    let mut reader = MendingReader::new(input, findings)?;
    let mut mended = Mended { size: 0, edits: 0 };
    loop {
        let more = reader.advance(&mut |edit| {
            mended.edits += 1;
            edits(edit);
        })?;
        let ready = reader.ready();
        out.write_all(ready)?;
        mended.size += ready.len() as u64;
        if !more {
            break;
        }
    }
    out.flush()?;
    Ok(mended)
}

/// The mended bytes of an input as a stream: for parsing without a copy on disk.
pub struct MendingReader<R: Read> {
    source: Source<R>,
    closing: Option<Closing>,
    ready: Ready,
    /// How many of the ready bytes have been read.
    given: usize,
    ended: bool,
    /// Bytes by which the copy is longer than what has been read.
    growth: i64,
}

enum Source<R: Read> {
    /// All edits are known.
    Remembered(Box<Remembered<Take<Text<R>>>>),
    /// They are found again.
    Found(Box<Found<Take<Text<R>>>>),
}

struct Remembered<R> {
    window: Window<R>,
    at: u64,
    edits: Peekable<std::vec::IntoIter<Edit>>,
}

struct Found<R> {
    machine: Machine<R, (), Edits>,
    at: u64,
}

/// Mended bytes that wait to be read.
enum Ready {
    /// As they stand in the window, between two offsets.
    Window(u64, u64),
    Owned(Vec<u8>),
}

/// The edits of a second pass.
#[derive(Default)]
struct Edits(VecDeque<Edit>);

impl Sink for Edits {
    fn wants_paths(&self) -> bool {
        false
    }

    fn edit(&mut self, edit: Edit, _: Option<String>) -> io::Result<()> {
        self.0.push_back(edit);
        Ok(())
    }

    fn flaw(&mut self, _: Flaw) {}
}

const WINDOW: Reach = Reach {
    history: 0,
    lookahead: 0,
    capacity: 256 << 10,
};

impl<R: Read> MendingReader<R> {
    /// `findings` are those of a [`scan`](super::scan) of the same input.
    ///
    /// Errors: those of `input`; [`ErrorKind::InvalidInput`] if the findings refuse the input. Reading fails with
    /// [`ErrorKind::InvalidData`] if the input is not what was scanned.
    pub fn new(input: R, findings: &Findings) -> io::Result<Self> {
        MendingReader::within(input, findings, WINDOW, Reach::default())
    }

    /// With windows of these sizes for remembered and for found edits.
    pub(super) fn within(input: R, findings: &Findings, window: Reach, reach: Reach) -> io::Result<Self> {
        if findings.verdict == Verdict::Refused {
            let reason = findings.reason.as_deref().unwrap_or("refused");
            return Err(Error::new(ErrorKind::InvalidInput, reason.to_owned()));
        }
        let plan = &findings.plan;
        let (_, order, text) = Text::open(input, &plan.options)?;
        let text = text.take(plan.closing.as_ref().map_or(u64::MAX, |closing| closing.place.offset));
        let source = match &plan.edits {
            Some(edits) => {
                let edits = edits.clone().into_iter().peekable();
                Source::Remembered(Box::new(Remembered {
                    window: Window::new(text, window),
                    at: 0,
                    edits,
                }))
            }
            None => {
                let mut machine = Machine::new(text, &plan.options, reach, (), Edits::default());
                machine.may_be_cut = plan.closing.is_none();
                machine.start(order)?;
                Source::Found(Box::new(Found { machine, at: 0 }))
            }
        };
        let closing = plan.closing.clone();
        Ok(MendingReader {
            source,
            closing,
            ready: Ready::Window(0, 0),
            given: 0,
            ended: false,
            growth: 0,
        })
    }

    pub(super) fn ready(&self) -> &[u8] {
        match (&self.ready, &self.source) {
            (Ready::Window(from, to), Source::Remembered(source)) => source.window.slice(*from, *to),
            (Ready::Window(from, to), Source::Found(source)) => source.machine.window.slice(*from, *to),
            (Ready::Owned(bytes), _) => bytes,
        }
    }

    /// Makes the next bytes ready; false if they are the last.
    pub(super) fn advance(&mut self, edits: &mut dyn FnMut(&Edit)) -> io::Result<bool> {
        self.given = 0;
        self.ready = Ready::Window(0, 0);
        if !self.ended {
            self.ended = match &mut self.source {
                Source::Remembered(source) => source.advance(&mut self.ready, &mut self.growth, edits)?,
                Source::Found(source) => source.advance(&mut self.ready, &mut self.growth, edits)?,
            };
            return Ok(true);
        }
        if let Some(closing) = self.closing.take() {
            self.close(&closing, edits)?;
            self.ready = Ready::Owned(closing.new);
        }
        Ok(false)
    }

    /// Hands out what is dropped at the end: in pieces, the first of which is replaced by the closing brackets.
    fn close(&mut self, closing: &Closing, edits: &mut dyn FnMut(&Edit)) -> io::Result<()> {
        let rest = match &mut self.source {
            Source::Remembered(source) => source.window.input_mut(),
            Source::Found(source) => source.machine.window.input_mut(),
        };
        let rest = rest.get_mut();
        let mut offset = closing.place.offset;
        loop {
            let mut old = Vec::new();
            rest.take(LONGEST_RUN).read_to_end(&mut old)?;
            let first = offset == closing.place.offset;
            if old.is_empty() && !first {
                return Ok(());
            }
            let length = old.len() as u64;
            edits(&Edit {
                kind: closing.kind,
                offset,
                copy_offset: if first {
                    offset.wrapping_add_signed(self.growth)
                } else {
                    closing.place.offset.wrapping_add_signed(self.growth) + closing.new.len() as u64
                },
                old,
                new: if first { closing.new.clone() } else { Vec::new() },
                line: closing.place.line,
                column: closing.place.column,
                guess: false,
            });
            offset += length;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

impl<R: Read> Remembered<R> {
    /// Makes the next bytes ready; true at the end of the input.
    fn advance(&mut self, ready: &mut Ready, growth: &mut i64, edits: &mut dyn FnMut(&Edit)) -> io::Result<bool> {
        if self.at == self.window.end() {
            self.window.slide(self.at)?;
        }
        if let Some(edit) = self.edits.next_if(|edit| edit.offset == self.at) {
            let length = edit.old.len() as u64;
            if self.window.end() - self.at < length {
                self.window.slide(self.at)?;
            }
            if self.window.slice(self.at, self.at + length) != edit.old {
                return Err(changed());
            }
            self.at += length;
            *growth += edit.growth();
            edits(&edit);
            *ready = Ready::Owned(edit.new);
            return Ok(false);
        }
        let to = self
            .edits
            .peek()
            .map_or(u64::MAX, |edit| edit.offset)
            .min(self.window.end());
        *ready = Ready::Window(self.at, to);
        let ended = to == self.at;
        if ended && self.edits.peek().is_some() {
            return Err(changed());
        }
        self.at = to;
        Ok(ended)
    }
}

impl<R: Read> Found<R> {
    /// Makes the next bytes ready; true at the end of the input.
    fn advance(&mut self, ready: &mut Ready, growth: &mut i64, edits: &mut dyn FnMut(&Edit)) -> io::Result<bool> {
        let (ended, settled) = match self.machine.step()? {
            Step::More => (false, self.machine.settled_so_far()),
            Step::End(_) => {
                self.machine.end_of_kept()?;
                (true, self.machine.window.end())
            }
            Step::Refused(_) => return Err(changed()),
        };
        let due = |edit: &mut Edit| edit.offset < settled || ended;
        if self.machine.sink.0.front_mut().is_none_or(|edit| !due(edit)) {
            *ready = Ready::Window(self.at, settled);
            self.at = settled.max(self.at);
            return Ok(ended);
        }
        let mut mended = Vec::with_capacity((settled - self.at) as usize + 64);
        while let Some(edit) = self.machine.sink.0.pop_front_if(due) {
            mended.extend_from_slice(self.machine.window.slice(self.at, edit.offset));
            mended.extend_from_slice(&edit.new);
            self.at = edit.offset + edit.old.len() as u64;
            *growth += edit.growth();
            edits(&edit);
        }
        if self.at < settled {
            mended.extend_from_slice(self.machine.window.slice(self.at, settled));
            self.at = settled;
        }
        *ready = Ready::Owned(mended);
        Ok(ended)
    }
}

fn changed() -> Error {
    Error::new(
        ErrorKind::InvalidData,
        "the input is not what was scanned: it has changed since",
    )
}

impl<R: Read> Read for MendingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.given == self.ready().len() {
            if !self.advance(&mut |_| {})? && self.ready().is_empty() {
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
