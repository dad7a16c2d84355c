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
    /// Where the comma before the one in hand stands; it means something if `index` is not 0.
    pub comma_at: u64,
    /// Where the last container in an array starts, or the last key of an object, its quote included.
    pub child_at: u64,
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
    /// A control character, in so many bytes, that spreadsheets cannot hold (facts/tracelens.md section 3 e): all but tab,
    /// newline and carriage return.
    Control(usize),
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
    pub(super) fn slice(&self, from: u64, to: u64) -> Option<&'a [u8]> {
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
    /// Whether the key in hand is the first of its object.
    first_in_hand: bool,
    /// How many of the frames the observer listens to.
    heard: usize,
    /// Where the document's root value starts, once it has.
    pub root: Option<(u64, u8)>,
    /// Where the first key of the root object stands a second time, as the first key of an object deeper down.
    pub restart: Option<u64>,
    /// Escapes that read like the start of a name in a Windows path: `C:\temp`.
    pub windows_paths: u64,
    /// Offset of the closing quote of the last string value.
    pub string_end: u64,
    first_key: Box<[u8]>,
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
            string_end: 0,
            first_key: Box::default(),
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

    /// Whether this is the first key of the root object.
    pub(super) fn starts_document(&self, key: Option<&[u8]>) -> bool {
        !self.first_key.is_empty() && key == Some(&*self.first_key)
    }

    /// The first key of the root object.
    pub(super) fn first_key(&self) -> &[u8] {
        &self.first_key
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
                    b'"' => {
                        self.string_at = view.origin + at as u64;
                        let closing = positions.get(next).map(|&position| batch + position as usize);
                        match closing {
                            Some(closing) if bytes[closing] == b'"' => {
                                next += 1;
                                self.key_ends(view, closing, expect == Expect::FirstKey, top);
                                expect = Expect::Colon;
                                if let Some(&position) = positions.get(next)
                                    && bytes[batch + position as usize] == b':'
                                {
                                    next += 1;
                                    expect = Expect::Value;
                                }
                            }
                            _ => {
                                self.first_in_hand = expect == Expect::FirstKey;
                                expect = Expect::InKey;
                            }
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

    /// Whether the backslash at `at` follows the letter of a drive and starts an escape that was hardly meant as one.
    pub(super) fn notice_path(&mut self, bytes: &[u8], at: usize) {
        let drive = at
            .checked_sub(2)
            .is_some_and(|from| bytes[from].is_ascii_alphabetic() && bytes[from + 1] == b':');
        if drive && matches!(bytes.get(at + 1), Some(b'b' | b'f' | b'n' | b'r' | b't')) {
            self.windows_paths += 1;
        }
    }

    #[inline(always)]
    pub(super) fn is_heard(&self) -> bool {
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
    pub(super) fn begin<O: Observer>(&mut self, view: View<'_>, structure: Structure, at: usize, observer: &mut O) {
        if let Some(parent) = self.frames.last_mut()
            && parent.structure == Structure::Array
        {
            parent.child_at = view.origin + at as u64;
        }
        let depth = self.frames.len() + 1;
        let heard =
            self.is_heard() && depth <= O::MAX_DEPTH && observer.begin(structure, depth, self.key(depth - 1, view));
        self.heard += usize::from(heard);
        self.frames.push(Frame {
            structure,
            index: 0,
            comma_at: 0,
            child_at: 0,
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

    /// The member in hand starts at `start` and has the name that stands between two offsets.
    #[inline(always)]
    pub(super) fn key_is<T: Top>(&mut self, view: View<'_>, start: u64, from: u64, to: u64, first: bool, top: &mut T) {
        let length = (to - from) as usize;
        let depth = self.frames.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.child_at = start;
            frame.key_at = from;
            frame.key_length = length;
            frame.kept_key = None;
        }
        if depth == 1 {
            self.top_key(view, from, to, first, top);
        } else if first && length == self.first_key.len() && view.slice(from, to) == Some(&*self.first_key) {
            self.restart.get_or_insert(from);
        }
    }

    #[cold]
    fn top_key<T: Top>(&mut self, view: View<'_>, from: u64, to: u64, first: bool, top: &mut T) {
        if let Some(key) = view.slice(from, to.min(from + LONGEST_REPORTED as u64)) {
            top.key(from, key);
            if first {
                self.first_key = key.into();
            }
        }
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

    pub(super) fn report<O: Observer>(&self, view: View<'_>, value: Scalar<'_>, observer: &mut O) {
        let depth = self.frames.len();
        observer.scalar(value, depth, self.key(depth, view));
    }
}

/// Where the document could be closed, seen from inside it.
impl Grammar {
    /// Where what has begun last in the frame with this number, and is not complete, starts, together with the comma
    /// before it; `end` if nothing has.
    pub(super) fn unfinished(&self, number: usize, end: u64) -> u64 {
        let Some(frame) = self.frames.get(number) else {
            return end;
        };
        let deepest = number + 1 == self.frames.len();
        if deepest
            && matches!(
                self.expect,
                Expect::Next | Expect::FirstElement | Expect::FirstKey | Expect::Nothing
            )
        {
            return end;
        }
        if frame.index > 0 {
            frame.comma_at
        } else {
            self.unfinished_child(number, end)
        }
    }

    /// Where the frame with this number would be cut if its last child did not become whole.
    pub(super) fn cut_point(&self, number: usize) -> u64 {
        let frame = &self.frames[number];
        let deepest = number + 1 == self.frames.len();
        match (frame.structure, self.expect) {
            _ if frame.index > 0 => frame.comma_at,
            (_, Expect::InKey) | (Structure::Array, Expect::InString) if deepest => self.string_at,
            (Structure::Array, _) if deepest => u64::MAX,
            (Structure::Object, _) if frame.key_at == u64::MAX => u64::MAX,
            _ => frame.child_at,
        }
    }

    /// The same as `unfinished`, without the comma.
    pub(super) fn unfinished_child(&self, number: usize, end: u64) -> u64 {
        let Some(frame) = self.frames.get(number) else {
            return end;
        };
        if number + 1 < self.frames.len() {
            return frame.child_at;
        }
        match (frame.structure, self.expect) {
            (_, Expect::InKey) | (Structure::Array, Expect::InString) => self.string_at,
            (Structure::Object, Expect::Colon | Expect::Value | Expect::InString) => frame.child_at,
            _ => end,
        }
    }
}

/// The white space of RFC 8259, section 2.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// `text` without the white space at its start.
pub(super) fn after_space(text: &[u8]) -> &[u8] {
    &text[text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len())..]
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
        Some(b'"' | b'\\' | b'/' | b'n' | b'r' | b't') => Escape::Plain,
        Some(b'b' | b'f') => Escape::Control(2),
        Some(b'u') => match unit(data) {
            None => Escape::Illegal,
            Some(0x09 | 0x0A | 0x0D) => Escape::Plain,
            Some(..0x20) => Escape::Control(6),
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
