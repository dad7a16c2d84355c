//! The pass itself: window by window, batch by batch, the encoding and the grammar side by side.

use super::blocks::{self, Carry};
use super::edit::{Edit, Sink};
use super::encoding::Encoding;
use super::findings::LONGEST_END;
use super::flaw::{Flaw, FlawKind, LONGEST_SHOWN};
use super::grammar::{Expect, Grammar, Strictness, Trouble};
use super::members::Members;
use super::observer::{Observer, Structure};
use super::options::{Check, Options};
use super::place::{Lines, Place};
use super::utf16::Order;
use super::view::{View, is_space};
use super::window::{Reach, Window};
use std::io::{self, Read};

/// Bytes indexed at a time: with their positions they stay in the first two levels of cache.
const BATCH: usize = 16 << 10;
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();
/// Bytes indexed after a mend that moved the boundaries of strings; doubled each time until a batch is whole again.
const SMALL_BATCH: usize = 256;

/// Where a pass stands after a step.
pub(super) enum Step {
    More,
    /// The input has been read to its end, or to where the rest of it is to be dropped.
    End(Ending),
    /// With the reason: one line that names the place.
    Refused(String),
}

/// How the input ends for the grammar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// Where.
    pub at: u64,
    /// Where a scalar starts that the end may have cut.
    pub scalar_at: Option<u64>,
}

/// What becomes of a trouble.
pub(super) enum Outcome {
    /// Walk on from the next position.
    Continue,
    /// Walk the same position again.
    Again,
    /// Walk on from the first position at or after this offset, which lies in the string in hand.
    Skip(u64),
    /// Index anew from this offset on.
    Reindex(u64, Carry),
    /// The input ends here.
    End(Ending),
    Refused(String),
}

pub(super) struct Machine<R, O, S> {
    pub(super) window: Window<R>,
    pub(super) observer: O,
    pub(super) sink: S,
    check: Check,
    pub(super) grammar: Grammar,
    pub(super) top: Members,
    pub(super) encoding: Encoding,
    pub(super) lines: Lines,
    /// For each frame, the place of what is unfinished in it: where the document could be closed.
    pub(super) marks: Vec<Place>,
    /// Bytes by which the mended copy is longer than what has been read.
    growth: i64,
    pub(super) head: Vec<u8>,
    pub(super) carry: Carry,
    positions: Box<[u32]>,
    batch: usize,
    pub(super) at: u64,
    /// Whether the input may end inside a scalar: not if it was limited to what a cut leaves of it.
    pub(super) may_be_cut: bool,
    /// No step goes beyond this offset.
    pub(super) stop_at: u64,
}

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    pub(super) fn new(input: R, options: &Options, reach: Reach, observer: O, sink: S) -> Self {
        Machine::over(Window::new(input, reach), options, observer, sink)
    }

    pub(super) fn over(window: Window<R>, options: &Options, observer: O, sink: S) -> Self {
        let strictness = Strictness {
            control_escapes: options.readers.spreadsheet,
            pairs: options.readers.perfetto,
        };
        Machine {
            window,
            observer,
            sink,
            check: options.check,
            grammar: Grammar::new(strictness),
            top: Members::default(),
            encoding: Encoding::from(0),
            lines: Lines::new(),
            marks: Vec::new(),
            growth: 0,
            head: Vec::new(),
            carry: Carry::default(),
            positions: vec![0; BATCH + 64].into(),
            batch: BATCH,
            at: 0,
            may_be_cut: true,
            stop_at: u64::MAX,
        }
    }

    /// Works through the input; `order` if it was UTF-16.
    pub(super) fn run(&mut self, order: Option<Order>) -> io::Result<Step> {
        self.start(order)?;
        loop {
            match self.step()? {
                Step::More => {}
                step => return Ok(step),
            }
        }
    }

    /// Takes off the byte order mark, and notes that the text was UTF-16.
    pub(super) fn start(&mut self, order: Option<Order>) -> io::Result<()> {
        self.slide(0)?;
        self.tell_mark();
        if self.check == Check::Utf8 {
            return Ok(());
        }
        let mark = if self.window.slice(0, 3) == BYTE_ORDER_MARK {
            3
        } else {
            0
        };
        if order.is_some() {
            self.replace(FlawKind::Utf16, 0, mark, b"", false)?;
        } else if mark > 0 {
            self.replace(FlawKind::ByteOrderMark, 0, mark, b"", false)?;
        }
        self.lines.pass_mark(mark);
        self.encoding.from = mark;
        self.at = mark;
        Ok(())
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (key, times) in self.top.repeated() {
            warnings.push(format!(
                "the key {key:?} stands {times} times at the top: readers keep the last"
            ));
        }
        let large = self.grammar.large;
        if large.beyond_i64 > 0 {
            warnings.push(format!(
                "{} integers beyond 2^63: yajl and simdjson refuse them",
                large.beyond_i64
            ));
        }
        if large.beyond_u64 > 0 {
            warnings.push(format!(
                "{} integers beyond 64 bits: readers round them to doubles",
                large.beyond_u64
            ));
        }
        if self.grammar.windows_paths > 0 {
            warnings.push(format!(
                "{} probable Windows paths with single backslashes: readers take \\t and the like in them for escapes",
                self.grammar.windows_paths
            ));
        }
        warnings
    }

    /// Works on the next batch of the input.
    pub(super) fn step(&mut self) -> io::Result<Step> {
        let at = self.at;
        if self.window.is_short(at) {
            self.slide(at)?;
            self.tell_mark();
        }
        let available = (self.window.end() - at) as usize;
        if available == 0 {
            return Ok(Step::End(Ending {
                at,
                scalar_at: self.number_before(at),
            }));
        }
        let ready = if self.window.is_finished() {
            available
        } else {
            available - self.window.lookahead()
        };
        let mut to = (at + ready.min(self.batch) as u64).min(self.stop_at);
        self.batch = (self.batch * 2).min(BATCH);
        self.check_encoding(to);
        match self.check {
            Check::Utf8 => {
                while let Some((ill_at, length)) = self.next_ill_formed(to) {
                    self.replace_ill_formed(ill_at, length)?;
                }
            }
            Check::Json => match self.walk(at, to)? {
                Walked::All => {}
                Walked::Until(offset) => to = offset,
                Walked::Stopped(step) => return Ok(step),
            },
        }
        let settled = self.settled(to);
        self.advance(settled);
        self.at = to;
        self.sink.settled(self.window.slice(0, settled), settled)?;
        Ok(Step::More)
    }

    /// Inside a key nothing can be taken up: a part of its name is gone by then.
    fn tell_mark(&mut self) {
        if self.sink.wants_marks() && self.grammar.expect != Expect::InKey {
            let mark = self.mark();
            self.sink.mark(mark);
        }
    }

    /// Everything before this offset is as it will stay, or has been handed to the sink.
    pub(super) fn settled_so_far(&self) -> u64 {
        self.settled(self.at)
    }

    pub(super) fn slide(&mut self, at: u64) -> io::Result<()> {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        self.grammar.keep_keys(self.window.next_origin(at), view);
        self.window.slide(at)?;
        if at == 0 {
            self.head = self.window.slice(0, LONGEST_END as u64).to_vec();
        }
        Ok(())
    }

    fn walk(&mut self, at: u64, to: u64) -> io::Result<Walked> {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        let batch = (at - view.origin) as usize;
        let filled = blocks::index(
            &view.bytes[batch..],
            (to - at) as usize,
            &mut self.carry,
            &mut self.positions,
        );
        let number_at = |positions: &[u32], offset: u64| {
            positions[..filled].partition_point(|&position| at + u64::from(position) < offset)
        };
        let mut taken = 0;
        loop {
            // Ill-formed sequences inside strings are replaced as the walk comes by them; outside strings the grammar
            // stops at them by itself.
            let ill_formed = self.next_ill_formed(to);
            let until = match ill_formed {
                Some((offset, _)) => number_at(&self.positions, offset).max(taken),
                None => filled,
            };
            let walked = self.walk_positions(batch, until, &mut taken);
            if let Err(trouble) = walked {
                let offset = self.window.origin() + trouble.at as u64;
                match self.recover(trouble)? {
                    Outcome::Continue => {}
                    Outcome::Again => taken -= 1,
                    Outcome::Skip(offset) if offset <= to => taken = number_at(&self.positions, offset),
                    Outcome::Skip(offset) => {
                        self.carry = Carry::inside_string();
                        return Ok(Walked::Until(offset));
                    }
                    Outcome::Reindex(offset, carry) => {
                        self.carry = carry;
                        self.batch = SMALL_BATCH;
                        return Ok(Walked::Until(offset));
                    }
                    Outcome::End(ending) => return Ok(Walked::Stopped(Step::End(ending))),
                    Outcome::Refused(reason) => return Ok(Walked::Stopped(Step::Refused(reason))),
                }
                debug_assert!(offset < to);
                continue;
            }
            match ill_formed {
                Some((offset, length)) if matches!(self.grammar.expect, Expect::InKey | Expect::InString) => {
                    self.replace_ill_formed(offset, length)?;
                }
                // The walk has not come to the scalar that it begins or stands in.
                Some((offset, length)) => self.ignore_encoding_until(offset + length),
                None => return Ok(Walked::All),
            }
        }
    }

    fn walk_positions(&mut self, batch: usize, until: usize, taken: &mut usize) -> Result<(), Trouble> {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        self.grammar.walk(
            view,
            batch,
            &self.positions[..until],
            taken,
            &mut self.observer,
            &mut self.top,
        )
    }

    /// Hands an edit to the sink: `length` bytes at `at` become `new`.
    pub(super) fn replace(&mut self, kind: FlawKind, at: u64, length: u64, new: &[u8], guess: bool) -> io::Result<()> {
        self.advance(at);
        let Place { line, column, .. } = self.lines.place();
        let edit = Edit {
            kind,
            offset: at,
            copy_offset: at.wrapping_add_signed(self.growth),
            old: self.window.slice(at, at + length).to_vec(),
            new: new.to_vec(),
            line,
            column,
            guess,
        };
        self.growth += new.len() as i64 - length as i64;
        self.top.edit(&edit);
        let path = if self.sink.wants_paths() { self.path() } else { None };
        self.sink.settled(self.window.slice(0, at), at)?;
        self.sink.edit(edit, path)
    }

    pub(super) fn add_flaw(&mut self, kind: FlawKind, place: Place, length: u64) {
        let shown = length.min(LONGEST_SHOWN as u64);
        let bytes = self.window.slice(place.offset, place.offset + shown).to_vec();
        let path = if self.sink.wants_paths() { self.path() } else { None };
        let Place { offset, line, column } = place;
        self.sink.flaw(Flaw {
            kind,
            offset,
            length,
            bytes,
            line,
            column,
            path,
            guess: false,
        });
    }

    /// Up to where nothing that comes before `at` will be edited any more: a comma may turn out to be the last one, a
    /// quote not to be the closing one, the start of a character to be ill-formed.
    fn settled(&self, at: u64) -> u64 {
        let at = at.min(self.encoding.to);
        let Some(frame) = self.grammar.frames.last() else {
            return at;
        };
        let held = match (self.grammar.expect, frame.structure) {
            (Expect::Key, _) | (Expect::Value, Structure::Array) => frame.comma_at,
            (Expect::Next, Structure::Object) => match self.string_before(at) {
                Some(closing) => closing,
                None => at,
            },
            _ => at,
        };
        if held < self.window.origin() { at } else { held }
    }

    /// The closing quote of the string value that ends before `at`, if only white space stands between.
    pub(super) fn string_before(&self, at: u64) -> Option<u64> {
        let closing = self.grammar.string_end;
        let between = self.window.slice(closing + 1, at);
        let whole = closing >= self.window.origin() && closing < at && between.len() as u64 == at - closing - 1;
        (whole && self.window.slice(closing, closing + 1) == b"\"" && between.iter().all(|byte| is_space(*byte)))
            .then_some(closing)
    }
}

enum Walked {
    All,
    /// The batch ends early, here.
    Until(u64),
    Stopped(Step),
}
