//! The grammar of RFC 8259, walked from one structural position to the next.

use super::escapes::{Escape, escape};
use super::nesting::Frame;
use super::number::{Number, Size, ends_scalar, number};
use super::observer::{LONGEST_REPORTED, Observer, Scalar, Structure};
use super::view::View;

/// orjson's limit, and more than CPython's recursion allows (facts/tracelens.md section 3).
pub(super) const DEEPEST: usize = 1024;

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// A value: the document's, a member's or, after a comma, an element.
    Value,
    /// After `[`: an element or `]`.
    FirstElement,
    /// After `{`: a key or `}`.
    FirstKey,
    /// After a comma in an object.
    Key,
    /// After a key.
    Colon,
    /// After a value in a container: a comma or the end of the container.
    Next,
    /// Inside the string that started at `Grammar::string_at`, a key.
    InKey,
    /// Inside the string that started at `Grammar::string_at`, a value.
    InString,
    /// After the document.
    Nothing,
}

/// What the walk could not pass, and where: a byte position relative to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub at: usize,
    pub kind: Obstacle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Not what the grammar expects here.
    Unexpected,
    /// A control byte inside a string.
    Control,
    /// A backslash inside a string that starts no escape of RFC 8259, or the escape of a lone surrogate.
    Escape(Escape),
    /// A number that doubles cannot hold; it ends at this position.
    Infinite(usize),
    TooDeep,
}

/// Integers that some readers cannot hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LargeIntegers {
    pub beyond_i64: u64,
    pub beyond_u64: u64,
}

/// Which escapes are to be reported although the grammar allows them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strictness {
    pub control_escapes: bool,
    pub pairs: bool,
}

pub(super) struct Grammar {
    pub expect: Expect,
    pub frames: Vec<Frame>,
    pub large: LargeIntegers,
    pub strictness: Strictness,
    /// Offset of the opening quote of the string in hand.
    pub string_at: u64,
    /// Where the low half of the surrogate pair in hand stands.
    pub low_half_at: u64,
    /// Whether the key in hand is the first of its object.
    first_in_hand: bool,
    /// How many of the frames the observer listens to.
    pub heard: usize,
    /// Where the document's root value starts, once it has.
    pub root: Option<(u64, u8)>,
    /// Where the first key of the root object stands a second time, as the first key of an object deeper down.
    pub restart: Option<u64>,
    /// Escapes that read like the start of a name in a Windows path: `C:\temp`.
    pub windows_paths: u64,
    /// Offset of the opening quote of the last string that holds one.
    pub path_at: u64,
    /// Offset of the closing quote of the last string value.
    pub string_end: u64,
    pub first_key: Box<[u8]>,
    /// For each frame the name of its member in hand, once the window has left that behind.
    pub kept_keys: Vec<Box<[u8]>>,
    /// Where the value of the member in hand of the root object starts.
    pub member_at: u64,
}

/// Told what happens at the top of the document.
pub(super) trait Top {
    /// The name, without its quotes, of the next member; it stands at `from`.
    fn key(&mut self, from: u64, key: &[u8]);
    /// A member's value is complete: from `from` to `to`, both offsets in the input.
    fn value(&mut self, from: u64, to: u64, text: Option<&[u8]>);
}

impl Grammar {
    pub(super) fn new(strictness: Strictness) -> Self {
        Grammar {
            expect: Expect::Value,
            frames: Vec::with_capacity(16),
            large: LargeIntegers::default(),
            strictness,
            string_at: 0,
            low_half_at: u64::MAX,
            first_in_hand: false,
            heard: 0,
            root: None,
            restart: None,
            windows_paths: 0,
            path_at: u64::MAX,
            string_end: 0,
            first_key: Box::default(),
            kept_keys: Vec::new(),
            member_at: 0,
        }
    }

    /// Walks the positions, which are relative to the view's byte `batch`, from number `taken` on, until they end or
    /// something cannot be passed. `taken` is then the number after that of the trouble.
    pub(super) fn walk<O: Observer, T: Top>(
        &mut self,
        view: View<'_>,
        batch: usize,
        positions: &[u32],
        taken: &mut usize,
        observer: &mut O,
        top: &mut T,
    ) -> Result<(), Trouble> {
        let bytes = view.bytes;
        let mut expect = self.expect;
        let mut next = *taken;
        macro_rules! stop {
            ($at:expr, $kind:expr) => {{
                self.expect = expect;
                *taken = next;
                return Err(Trouble { at: $at, kind: $kind });
            }};
        }
        macro_rules! value_ends {
            ($end:expr) => {{
                expect = self.value_ends(view, $end, top);
            }};
        }
        while let Some(&position) = positions.get(next) {
            next += 1;
            let at = batch + position as usize;
            let byte = bytes[at];
            match expect {
                Expect::Value | Expect::FirstElement => {
                    if self.frames.len() < 2 {
                        self.value_starts(view.origin + at as u64, byte);
                    }
                    match byte {
                        b'"' => {
                            let closing = positions.get(next).map(|&position| batch + position as usize);
                            self.string_at = view.origin + at as u64;
                            match closing {
                                Some(closing) if bytes[closing] == b'"' => {
                                    next += 1;
                                    self.string_value(view, closing, observer);
                                    value_ends!(closing + 1);
                                }
                                _ => expect = Expect::InString,
                            }
                        }
                        b'{' | b'[' => {
                            let structure = if byte == b'{' {
                                Structure::Object
                            } else {
                                Structure::Array
                            };
                            if self.frames.len() == DEEPEST {
                                stop!(at, Obstacle::TooDeep);
                            }
                            self.begin(view, structure, at, observer);
                            expect = if byte == b'{' {
                                Expect::FirstKey
                            } else {
                                Expect::FirstElement
                            };
                        }
                        b'0'..=b'9' | b'-' => {
                            let Some(Number { end, size }) = number(bytes, at) else {
                                stop!(at, Obstacle::Unexpected);
                            };
                            match size {
                                Size::Ordinary => {}
                                Size::BeyondI64 => self.large.beyond_i64 += 1,
                                Size::BeyondU64 => self.large.beyond_u64 += 1,
                                Size::Infinite => stop!(at, Obstacle::Infinite(end)),
                            }
                            if self.is_heard() {
                                self.report(view, Scalar::Number(&bytes[at..end]), observer);
                            }
                            value_ends!(end);
                        }
                        b']' if expect == Expect::FirstElement => {
                            self.end(observer);
                            value_ends!(at + 1);
                        }
                        _ => {
                            let (word, value): (&[u8], _) = match byte {
                                b't' => (b"true", Scalar::Bool(true)),
                                b'f' => (b"false", Scalar::Bool(false)),
                                b'n' => (b"null", Scalar::Null),
                                _ => stop!(at, Obstacle::Unexpected),
                            };
                            let end = at + word.len();
                            if bytes.get(at..end) != Some(word)
                                || !bytes.get(end).is_some_and(|&byte| ends_scalar(byte))
                            {
                                stop!(at, Obstacle::Unexpected);
                            }
                            if self.is_heard() {
                                self.report(view, value, observer);
                            }
                            value_ends!(end);
                        }
                    }
                }
                Expect::Next => {
                    let Some(frame) = self.frames.last_mut() else {
                        stop!(at, Obstacle::Unexpected);
                    };
                    match (byte, frame.structure) {
                        (b',', structure) => {
                            frame.index += 1;
                            frame.comma_at = view.origin + at as u64;
                            expect = if structure == Structure::Object {
                                Expect::Key
                            } else {
                                Expect::Value
                            };
                        }
                        (b'}', Structure::Object) | (b']', Structure::Array) => {
                            self.end(observer);
                            value_ends!(at + 1);
                        }
                        _ => stop!(at, Obstacle::Unexpected),
                    }
                }
                Expect::Key | Expect::FirstKey => match byte {
                    b'"' => expect = self.members(view, batch, positions, &mut next, expect, top),
                    b'}' if expect == Expect::FirstKey => {
                        self.end(observer);
                        value_ends!(at + 1);
                    }
                    _ => stop!(at, Obstacle::Unexpected),
                },
                Expect::Colon => match byte {
                    b':' => expect = Expect::Value,
                    _ => stop!(at, Obstacle::Unexpected),
                },
                Expect::InKey | Expect::InString => match byte {
                    b'"' if expect == Expect::InKey => {
                        self.key_ends(view, at, self.first_in_hand, top);
                        expect = Expect::Colon;
                    }
                    b'"' => {
                        self.string_value(view, at, observer);
                        value_ends!(at + 1);
                    }
                    b'\\' => {
                        let offset = view.origin + at as u64;
                        let escape = escape(&bytes[at..]);
                        match escape {
                            Escape::Plain => self.notice_path(bytes, at),
                            Escape::Control(_) if !self.strictness.control_escapes => self.notice_path(bytes, at),
                            Escape::Pair if !self.strictness.pairs => self.low_half_at = offset + 6,
                            Escape::LoneSurrogate if self.low_half_at == offset => {}
                            _ => stop!(at, Obstacle::Escape(escape)),
                        }
                    }
                    _ => stop!(at, Obstacle::Control),
                },
                Expect::Nothing => stop!(at, Obstacle::Unexpected),
            }
        }
        self.expect = expect;
        *taken = next;
        Ok(())
    }

    /// Walks members whose keys are plain and whose values are plain strings and numbers, from the key on whose opening
    /// quote has just been taken, as far as they go: nearly all there is in a trace. Leaves the rest to `walk`.
    #[inline(always)]
    fn members<T: Top>(
        &mut self,
        view: View<'_>,
        batch: usize,
        positions: &[u32],
        next: &mut usize,
        mut expect: Expect,
        top: &mut T,
    ) -> Expect {
        let bytes = view.bytes;
        let place = |number: usize| positions.get(number).map(|&position| batch + position as usize);
        let is = |number: usize, byte: u8| place(number).is_some_and(|at| bytes[at] == byte);
        loop {
            let first = expect == Expect::FirstKey;
            let opening = batch + positions[*next - 1] as usize;
            self.string_at = view.origin + opening as u64;
            let Some(closing) = place(*next).filter(|&closing| bytes[closing] == b'"') else {
                self.first_in_hand = first;
                return Expect::InKey;
            };
            self.key_ends(view, closing, first, top);
            if !is(*next + 1, b':') {
                *next += 1;
                return Expect::Colon;
            }
            *next += 2;
            let Some(value) = place(*next).filter(|_| self.frames.len() > 1 && !self.is_heard()) else {
                return Expect::Value;
            };
            match bytes[value] {
                b'0'..=b'9' | b'-' => match number(bytes, value) {
                    Some(Number {
                        size: Size::Ordinary, ..
                    }) => *next += 1,
                    _ => return Expect::Value,
                },
                b'"' if is(*next + 1, b'"') => {
                    self.string_end = view.origin + batch as u64 + u64::from(positions[*next + 1]);
                    *next += 2;
                }
                _ => return Expect::Value,
            }
            let Some(comma) = place(*next).filter(|&comma| bytes[comma] == b',') else {
                return Expect::Next;
            };
            if let Some(frame) = self.frames.last_mut() {
                frame.index += 1;
                frame.comma_at = view.origin + comma as u64;
            }
            *next += 1;
            expect = Expect::Key;
            if !is(*next, b'"') {
                return expect;
            }
            *next += 1;
        }
    }

    /// A value ends before the view's byte `end`: what may come next. The document may be complete, or one of its members.
    #[inline(always)]
    pub(super) fn value_ends<T: Top>(&self, view: View<'_>, end: usize, top: &mut T) -> Expect {
        match self.frames.len() {
            0 => Expect::Nothing,
            1 => {
                self.member_ends(view, end, top);
                Expect::Next
            }
            _ => Expect::Next,
        }
    }

    /// Notes it if the backslash at `at`, which stays, follows the letter of a drive: the string holds a Windows path. If the
    /// backslash starts an escape, it was hardly meant as one.
    pub(super) fn notice_path(&mut self, bytes: &[u8], at: usize) {
        let drive = at
            .checked_sub(2)
            .is_some_and(|from| bytes[from].is_ascii_alphabetic() && bytes[from + 1] == b':');
        if drive {
            self.path_at = self.string_at;
            let escape = matches!(bytes.get(at + 1), Some(b'b' | b'f' | b'n' | b'r' | b't'));
            self.windows_paths += u64::from(escape);
        }
    }

    fn value_starts(&mut self, at: u64, byte: u8) {
        if self.root.is_none() {
            self.root = Some((at, byte));
        }
        self.member_at = at;
    }

    #[cold]
    fn member_ends<T: Top>(&self, view: View<'_>, end: usize, top: &mut T) {
        if self.frames[0].structure == Structure::Object {
            let to = view.origin + end as u64;
            top.value(self.member_at, to, view.slice(self.member_at, to));
        }
    }

    #[inline(always)]
    fn key_ends<T: Top>(&mut self, view: View<'_>, closing: usize, first: bool, top: &mut T) {
        self.key_is(
            view,
            self.string_at,
            self.string_at + 1,
            view.origin + closing as u64,
            first,
            top,
        );
    }

    #[inline(always)]
    fn string_value<O: Observer>(&mut self, view: View<'_>, closing: usize, observer: &mut O) {
        self.string_end = view.origin + closing as u64;
        if self.is_heard() {
            let (from, to) = (self.string_at + 1, view.origin + closing as u64);
            let value = match view.slice(from, to) {
                Some(text) if text.len() <= LONGEST_REPORTED => Scalar::String(text),
                _ => Scalar::LongString,
            };
            self.report(view, value, observer);
        }
    }
}
