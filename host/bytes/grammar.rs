//! The grammar of RFC 8259, walked from one structural position to the next.

use super::number::{Number, Size, ends_scalar, number};
use super::observer::{LONGEST_REPORTED, Observer, Scalar, Structure};

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

/// A container that has begun.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub structure: Structure,
    /// Elements or members before the one in hand.
    pub index: u64,
    /// Where the name of the member in hand stands, without its quotes.
    key_at: u64,
    key_length: usize,
    /// That name, once the window has left it behind.
    kept_key: Option<Box<[u8]>>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    Plain,
    /// `\u` and four hex digits of a control character.
    Control,
    /// A high surrogate and the low one that belongs to it: 12 bytes.
    Pair,
    /// Half of a pair: 6 bytes.
    LoneSurrogate,
    Illegal,
}

/// Integers that some readers cannot hold.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LargeIntegers {
    pub beyond_i64: u64,
    pub beyond_u64: u64,
}

/// The part of the window a walk may look at.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub bytes: &'a [u8],
    /// Offset in the input of the first byte.
    pub origin: u64,
}

impl<'a> View<'a> {
    fn slice(&self, from: u64, to: u64) -> Option<&'a [u8]> {
        let from = from.checked_sub(self.origin)? as usize;
        self.bytes.get(from..(to - self.origin) as usize)
    }
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
    low_half_at: u64,
    /// How many of the frames the observer listens to.
    heard: usize,
    /// Where the document's root value starts, once it has.
    pub root: Option<(u64, u8)>,
    /// Where the value of the member in hand of the root object starts.
    pub member_at: u64,
}

/// Told what happens at the top of the document.
pub(super) trait Top {
    fn key(&mut self, key: &[u8]);
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
            heard: 0,
            root: None,
            member_at: 0,
        }
    }

    /// The name of the member in hand in the container at `depth`.
    pub(super) fn key<'a>(&'a self, depth: usize, view: View<'a>) -> Option<&'a [u8]> {
        let frame = self.frames.get(depth.checked_sub(1)?)?;
        if frame.structure == Structure::Array || frame.key_length > LONGEST_REPORTED {
            return None;
        }
        match &frame.kept_key {
            Some(key) => Some(key),
            None => view.slice(frame.key_at, frame.key_at + frame.key_length as u64),
        }
    }

    /// Keeps the names that a window starting at `origin` will not show any more.
    pub(super) fn keep_keys(&mut self, origin: u64, view: View<'_>) {
        for frame in &mut self.frames {
            if frame.key_at < origin && frame.kept_key.is_none() {
                let length = frame.key_length.min(LONGEST_REPORTED) as u64;
                frame.kept_key = view.slice(frame.key_at, frame.key_at + length).map(Into::into);
            }
        }
    }

    /// Walks the positions, which are relative to the view's byte `batch`, until they end or something cannot be passed.
    /// Positions from the trouble on have then not been taken.
    pub(super) fn walk<O: Observer, T: Top>(
        &mut self,
        view: View<'_>,
        batch: usize,
        positions: &[u32],
        observer: &mut O,
        top: &mut T,
    ) -> Result<(), Trouble> {
        let bytes = view.bytes;
        let mut expect = self.expect;
        let mut next = 0;
        macro_rules! stop {
            ($at:expr, $kind:expr) => {{
                self.expect = expect;
                return Err(Trouble { at: $at, kind: $kind });
            }};
        }
        // After a value: the document may be complete, or one of its members.
        macro_rules! value_ends {
            ($end:expr) => {{
                expect = match self.frames.len() {
                    0 => Expect::Nothing,
                    1 => {
                        self.member_ends(view, $end, top);
                        Expect::Next
                    }
                    _ => Expect::Next,
                };
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
                            self.begin(view, structure, observer);
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
                        (b',', Structure::Object) => {
                            frame.index += 1;
                            expect = Expect::Key;
                        }
                        (b',', Structure::Array) => {
                            frame.index += 1;
                            expect = Expect::Value;
                        }
                        (b'}', Structure::Object) | (b']', Structure::Array) => {
                            self.end(observer);
                            value_ends!(at + 1);
                        }
                        _ => stop!(at, Obstacle::Unexpected),
                    }
                }
                Expect::Key | Expect::FirstKey => match byte {
                    b'"' => {
                        self.string_at = view.origin + at as u64;
                        let closing = positions.get(next).map(|&position| batch + position as usize);
                        match closing {
                            Some(closing) if bytes[closing] == b'"' => {
                                next += 1;
                                self.key_ends(view, closing, top);
                                expect = Expect::Colon;
                                if let Some(&position) = positions.get(next)
                                    && bytes[batch + position as usize] == b':'
                                {
                                    next += 1;
                                    expect = Expect::Value;
                                }
                            }
                            _ => expect = Expect::InKey,
                        }
                    }
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
                        self.key_ends(view, at, top);
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
                            Escape::Plain => {}
                            Escape::Control if !self.strictness.control_escapes => {}
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
        Ok(())
    }

    #[inline(always)]
    fn is_heard(&self) -> bool {
        self.heard == self.frames.len()
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
    fn begin<O: Observer>(&mut self, view: View<'_>, structure: Structure, observer: &mut O) {
        let depth = self.frames.len() + 1;
        let heard =
            self.is_heard() && depth <= O::MAX_DEPTH && observer.begin(structure, depth, self.key(depth - 1, view));
        self.heard += usize::from(heard);
        self.frames.push(Frame {
            structure,
            index: 0,
            key_at: u64::MAX,
            key_length: 0,
            kept_key: None,
        });
    }

    #[inline(always)]
    fn end<O: Observer>(&mut self, observer: &mut O) {
        if self.is_heard() {
            observer.end(self.frames.len());
            self.heard -= 1;
        }
        self.frames.pop();
    }

    #[inline(always)]
    fn key_ends<T: Top>(&mut self, view: View<'_>, closing: usize, top: &mut T) {
        let (from, to) = (self.string_at + 1, view.origin + closing as u64);
        let depth = self.frames.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.key_at = from;
            frame.key_length = (to - from) as usize;
            frame.kept_key = None;
        }
        if depth == 1
            && let Some(key) = view.slice(from, to.min(from + LONGEST_REPORTED as u64))
        {
            top.key(key);
        }
    }

    #[inline(always)]
    fn string_value<O: Observer>(&mut self, view: View<'_>, closing: usize, observer: &mut O) {
        if self.is_heard() {
            let (from, to) = (self.string_at + 1, view.origin + closing as u64);
            let value = match view.slice(from, to) {
                Some(text) if text.len() <= LONGEST_REPORTED => Scalar::String(text),
                _ => Scalar::LongString,
            };
            self.report(view, value, observer);
        }
    }

    fn report<O: Observer>(&self, view: View<'_>, value: Scalar<'_>, observer: &mut O) {
        let depth = self.frames.len();
        observer.scalar(value, depth, self.key(depth, view));
    }
}

/// What the backslash at the start of `data` begins.
pub(super) fn escape(data: &[u8]) -> Escape {
    let unit = |data: &[u8]| -> Option<u32> {
        let digits = data.strip_prefix(b"\\u")?.get(..4)?;
        digits
            .iter()
            .try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
    };
    match data.get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::Plain,
        Some(b'u') => match unit(data) {
            None => Escape::Illegal,
            Some(..0x20) => Escape::Control,
            Some(0xD800..0xDC00) => match unit(&data[6..]) {
                Some(0xDC00..0xE000) => Escape::Pair,
                _ => Escape::LoneSurrogate,
            },
            Some(0xDC00..0xE000) => Escape::LoneSurrogate,
            Some(_) => Escape::Plain,
        },
        _ => Escape::Illegal,
    }
}
