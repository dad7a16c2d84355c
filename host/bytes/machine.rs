//! The pass itself: window by window, batch by batch, the encoding and the grammar side by side.

use super::blocks::{self, Carry};
use super::container::Container;
use super::flaw::{Flaw, FlawKind, LONGEST_SHOWN};
use super::grammar::{Expect, Grammar, Obstacle, Strictness, Trouble, View};
use super::members::Members;
use super::mend::Edit;
use super::observer::Observer;
use super::place::{Lines, Place};
use super::scan::{Check, LONGEST_END, Member, Options, Root};
use super::utf8::{REPLACEMENT, first_ill_formed, incomplete_tail};
use super::window::{Reach, Window};
use std::io::{self, ErrorKind, Read};

/// Bytes indexed at a time: with their positions they stay in the first two levels of cache.
const BATCH: usize = 16 << 10;

/// Who is told what is wrong.
pub(super) trait Sink {
    /// A flaw, and what is to stand in its place.
    fn edit(&mut self, edit: Edit) -> io::Result<()>;
    /// A flaw that cannot be mended.
    fn flaw(&mut self, flaw: Flaw);
}

/// What a pass learned besides flaws.
pub(super) struct Report {
    pub size: u64,
    pub reason: Option<String>,
    pub warnings: Vec<String>,
    pub members: Vec<Member>,
    pub keys: Vec<String>,
    pub root: Option<Root>,
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
}

pub(super) struct Machine<'a, R, O, S> {
    window: Window<R>,
    observer: &'a mut O,
    sink: &'a mut S,
    check: Check,
    grammar: Grammar,
    top: Members,
    encoding: Encoding,
    lines: Lines,
    /// Bytes by which the mended copy is longer than what has been read.
    growth: i64,
    head: Vec<u8>,
}

/// How far the check of the encoding has come; all offsets in the input.
#[derive(Default)]
struct Encoding {
    /// Everything before is either well-formed or reported.
    from: u64,
    /// Up to here bytes have been looked at; between the two something is ill-formed.
    to: u64,
    /// The first ill-formed sequence after `from`, if it is known already.
    next: Option<(u64, u64)>,
}

impl<'a, R: Read, O: Observer, S: Sink> Machine<'a, R, O, S> {
    pub(super) fn new(input: R, options: &Options, reach: Reach, observer: &'a mut O, sink: &'a mut S) -> Self {
        Machine {
            window: Window::new(input, reach),
            observer,
            sink,
            check: options.check,
            grammar: Grammar::new(Strictness::default()),
            top: Members::default(),
            encoding: Encoding::default(),
            lines: Lines::new(),
            growth: 0,
            head: Vec::new(),
        }
    }

    pub(super) fn refuse_container(mut self, container: Container) -> io::Result<Report> {
        self.window.slide(0)?;
        self.keep_head();
        let name = container.as_str();
        let reason = format!("{name}-compressed; decompress it first (`{name} -d FILE`)");
        Ok(self.report(0, Some(reason)))
    }

    pub(super) fn run(mut self) -> io::Result<Report> {
        let mut carry = Carry::default();
        let mut positions = vec![0; BATCH + 64];
        let mut at = 0;
        loop {
            if self.window.is_short(at)
                && let Some(reason) = self.slide(at)?
            {
                return Ok(self.report(at, Some(reason)));
            }
            let available = (self.window.end() - at) as usize;
            if available == 0 {
                break;
            }
            let ready = if self.window.is_finished() {
                available
            } else {
                available - self.window.lookahead()
            };
            let length = ready.min(BATCH);
            let to = at + length as u64;
            self.check_encoding(to);
            if self.check == Check::Json {
                let view = View {
                    bytes: self.window.bytes(),
                    origin: self.window.origin(),
                };
                let batch = (at - view.origin) as usize;
                let filled = blocks::index(&view.bytes[batch..], length, &mut carry, &mut positions);
                let walked = self
                    .grammar
                    .walk(view, batch, &positions[..filled], self.observer, &mut self.top);
                if let Err(trouble) = walked {
                    let reason = self.refuse(trouble)?;
                    return Ok(self.report(to, Some(reason)));
                }
            }
            self.report_ill_formed(to)?;
            // Not over a character that the batch cuts: it may turn out ill-formed.
            self.pass_lines(self.encoding.to);
            at = to;
        }
        self.report_ill_formed(at)?;
        let reason = if self.check == Check::Json {
            self.refuse_end(at)
        } else {
            None
        };
        Ok(self.report(at, reason))
    }

    /// Slides the window; the reason if the input cannot be decompressed any further.
    fn slide(&mut self, at: u64) -> io::Result<Option<String>> {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        self.grammar.keep_keys(self.window.next_origin(at), view);
        let result = self.window.slide(at);
        if at == 0 {
            self.keep_head();
        }
        match result {
            Ok(()) => Ok(None),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof
                ) =>
            {
                let end = self.window.end();
                let place = self.place(end);
                self.add_flaw(FlawKind::BadCompression, place, 0);
                Ok(Some(format!("gzip: {error}, after {end} decompressed bytes")))
            }
            Err(error) => Err(error),
        }
    }

    fn keep_head(&mut self) {
        self.head = self.window.slice(0, LONGEST_END as u64).to_vec();
    }

    fn check_encoding(&mut self, to: u64) {
        let last = self.window.is_finished() && to == self.window.end();
        let fresh = self.window.slice(self.encoding.from, to);
        let cut = if last { 0 } else { incomplete_tail(fresh) };
        self.encoding.to = to - cut as u64;
        if simdutf8::basic::from_utf8(&fresh[..fresh.len() - cut]).is_ok() {
            self.encoding.from = self.encoding.to;
        }
    }

    /// Reports the ill-formed sequences that start before `limit`.
    fn report_ill_formed(&mut self, limit: u64) -> io::Result<()> {
        while self.encoding.from < self.encoding.to {
            let from = self.encoding.from;
            let next = self.encoding.next.take().or_else(|| {
                let (at, length) = first_ill_formed(self.window.slice(from, self.encoding.to), 0, true)?;
                Some((from + at as u64, length as u64))
            });
            let Some((at, length)) = next else {
                self.encoding.from = self.encoding.to;
                break;
            };
            if at >= limit {
                self.encoding.next = Some((at, length));
                break;
            }
            let place = self.place(at);
            let edit = self.edit(FlawKind::IllFormedUtf8, place, length, REPLACEMENT);
            self.sink.edit(edit)?;
            self.lines.pass_ill_formed(length);
            self.encoding.from = at + length;
        }
        Ok(())
    }

    fn edit(&mut self, kind: FlawKind, place: Place, length: u64, new: &[u8]) -> Edit {
        let edit = Edit {
            kind,
            offset: place.offset,
            copy_offset: place.offset.wrapping_add_signed(self.growth),
            old: self.window.slice(place.offset, place.offset + length).to_vec(),
            new: new.to_vec(),
            line: place.line,
            column: place.column,
        };
        self.growth += new.len() as i64 - length as i64;
        edit
    }

    fn add_flaw(&mut self, kind: FlawKind, place: Place, length: u64) {
        let shown = length.min(LONGEST_SHOWN as u64);
        let bytes = self.window.slice(place.offset, place.offset + shown).to_vec();
        let Place { offset, line, column } = place;
        self.sink.flaw(Flaw {
            kind,
            offset,
            length,
            bytes,
            line,
            column,
        });
    }

    /// Line and column of `offset`, which lies in the window and not before the last place asked for.
    fn place(&mut self, offset: u64) -> Place {
        self.pass_lines(offset);
        self.lines.place()
    }

    fn pass_lines(&mut self, to: u64) {
        let from = self.lines.place().offset;
        if from < to {
            self.lines.pass(self.window.slice(from, to));
        }
    }

    fn refuse(&mut self, trouble: Trouble) -> io::Result<String> {
        let offset = self.window.origin() + trouble.at as u64;
        self.report_ill_formed(offset)?;
        let place = self.place(offset);
        let (kind, length, what) = match trouble.kind {
            Obstacle::Unexpected => (FlawKind::Syntax, 1, self.unexpected(offset)),
            Obstacle::Control => (
                FlawKind::ControlCharacter,
                1,
                "control character in a string".to_owned(),
            ),
            Obstacle::Escape(_) => (FlawKind::IllegalEscape, 2, "illegal escape in a string".to_owned()),
            Obstacle::Infinite(end) => (
                FlawKind::NonFiniteNumber,
                (end - trouble.at) as u64,
                "number beyond the range of doubles".to_owned(),
            ),
            Obstacle::TooDeep => (FlawKind::TooDeep, 1, "nested more than 1024 deep".to_owned()),
        };
        self.add_flaw(kind, place, length);
        Ok(located(&what, place))
    }

    fn unexpected(&self, offset: u64) -> String {
        let wanted = match self.grammar.expect {
            Expect::Value | Expect::FirstElement if self.grammar.root.is_none_or(|(at, _)| at == offset) => {
                "a JSON document"
            }
            Expect::Value => "a value",
            Expect::FirstElement => "a value or ']'",
            Expect::FirstKey => "a key or '}'",
            Expect::Key => "a key",
            Expect::Colon => "':' after a key",
            Expect::Next | Expect::InKey | Expect::InString => "',' or the end of the container",
            Expect::Nothing => "the end of the file",
        };
        let found = self.window.slice(offset, offset + 1).first().copied().unwrap_or(b' ');
        format!("expected {wanted}, found {}", shown(found))
    }

    /// Why an input that ends at `end` is no document.
    fn refuse_end(&mut self, end: u64) -> Option<String> {
        if self.grammar.expect == Expect::Nothing {
            return None;
        }
        let place = self.place(end);
        let (kind, what) = match self.grammar.root {
            None => (
                FlawKind::Empty,
                if end == 0 {
                    "empty: 0 bytes"
                } else {
                    "empty: white space only"
                },
            ),
            Some(_) => (FlawKind::Cut, "the file ends before its JSON document does"),
        };
        self.add_flaw(kind, place, 0);
        Some(if kind == FlawKind::Empty {
            what.to_owned()
        } else {
            located(what, place)
        })
    }

    fn report(self, size: u64, reason: Option<String>) -> Report {
        let tail = self
            .window
            .slice(size.saturating_sub(LONGEST_END as u64), size)
            .to_vec();
        let root = self.grammar.root.map(|(_, byte)| match byte {
            b'{' => Root::Object,
            b'[' => Root::Array,
            _ => Root::Scalar,
        });
        let (members, keys, repeated) = self.top.take();
        let mut warnings = Vec::new();
        for (key, times) in repeated {
            warnings.push(format!(
                "the key {key:?} stands {times} times at the top; readers keep the last"
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
        Report {
            size,
            reason,
            warnings,
            members,
            keys,
            root,
            head: self.head,
            tail,
        }
    }
}

fn located(what: &str, place: Place) -> String {
    format!(
        "{what}, at byte {} (line {}, column {})",
        place.offset, place.line, place.column
    )
}

fn shown(byte: u8) -> String {
    if byte.is_ascii_graphic() {
        format!("'{}'", char::from(byte))
    } else {
        format!("byte {byte:02X}")
    }
}
