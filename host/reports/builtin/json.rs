//! The values of a long JSON document, one at a time, each as its text.
//!
//! The text comes mended, so it is known to follow the grammar; what is left is to find where a value ends, and that needs only
//! strings and brackets. Values that nobody asks for pass at the speed of `memchr`; the rest is for serde_json.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Reads that are asked of the input, in bytes.
const CHUNK: usize = 256 << 10;

/// A longer value is passed over: no event of a profiler is, and memory must not depend on the trace.
pub(super) const LONGEST_VALUE: usize = 16 << 20;

/// A place in a document.
pub(super) struct Document<R> {
    input: R,
    buffer: Vec<u8>,
    /// Position in the buffer of what comes next.
    at: usize,
    filled: usize,
    finished: bool,
}

impl<R: Read> Document<R> {
    pub(super) fn new(input: R) -> Self {
        Document {
            input,
            buffer: vec![0; 2 * CHUNK],
            at: 0,
            filled: 0,
            finished: false,
        }
    }

    /// The first byte of the next token, which stays where it is; none at the end.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            let rest = &self.buffer[self.at..self.filled];
            match rest.iter().position(|byte| !blank(byte)) {
                Some(position) => {
                    self.at += position;
                    return Ok(Some(self.buffer[self.at]));
                }
                None if self.finished => return Ok(None),
                None => {
                    self.at = self.filled;
                    self.refill(self.at)?;
                }
            }
        }
    }

    /// Goes into the object or array that comes next, if it is one that begins with `bracket`; passes over anything else.
    pub(super) fn enter(&mut self, bracket: u8) -> io::Result<bool> {
        if self.peek()? == Some(bracket) {
            self.at += 1;
            return Ok(true);
        }
        self.skip()?;
        Ok(false)
    }

    /// The next key of an object that was entered; none once it has ended.
    pub(super) fn key(&mut self) -> io::Result<Option<String>> {
        if !self.next(b'}')? {
            return Ok(None);
        }
        // A key too long to be held is none of those that are looked for.
        let key = match self.value()? {
            Some(text) => serde_json::from_str(text).map_err(io::Error::other)?,
            None => String::new(),
        };
        match self.peek()? {
            Some(b':') => self.at += 1,
            _ => return Err(malformed()),
        }
        Ok(Some(key))
    }

    /// Whether another element follows in an array that was entered; it must be read or skipped.
    pub(super) fn element(&mut self) -> io::Result<bool> {
        self.next(b']')
    }

    fn next(&mut self, end: u8) -> io::Result<bool> {
        if self.peek()? == Some(b',') {
            self.at += 1;
        }
        match self.peek()? {
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Ok(true),
            None => Err(malformed()),
        }
    }

    /// The text of the value that comes next; none if it is longer than [`LONGEST_VALUE`].
    pub(super) fn value(&mut self) -> io::Result<Option<&str>> {
        let range = self.pass(LONGEST_VALUE)?;
        let Some((from, to)) = range else { return Ok(None) };
        simdutf8::basic::from_utf8(&self.buffer[from..to])
            .map(Some)
            .map_err(|_| malformed())
    }

    /// Passes over the value that comes next.
    pub(super) fn skip(&mut self) -> io::Result<()> {
        self.pass(0).map(|_| ())
    }

    /// Goes behind the next value. Where it stands in the buffer, if it is no longer than `longest`.
    fn pass(&mut self, longest: usize) -> io::Result<Option<(usize, usize)>> {
        self.peek()?;
        let mut from = Some(self.at);
        let mut end = End::default();
        loop {
            if let Some(length) = end.find(&self.buffer[self.at..self.filled]) {
                self.at += length;
                let from = from.filter(|from| self.at - from <= longest);
                return Ok(from.map(|from| (from, self.at)));
            }
            self.at = self.filled;
            if self.finished {
                return match end {
                    End::Scalar => Ok(from.map(|from| (from, self.at))),
                    _ => Err(malformed()),
                };
            }
            from = from.filter(|from| self.at - from <= longest);
            from = self.refill(from.unwrap_or(self.at))?.filter(|_| from.is_some());
        }
    }

    /// Reads more, keeping what begins at `from`; says where that is now.
    fn refill(&mut self, from: usize) -> io::Result<Option<usize>> {
        self.buffer.copy_within(from..self.filled, 0);
        self.filled -= from;
        self.at -= from;
        if self.buffer.len() - self.filled < CHUNK {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.finished = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(Some(0));
        }
    }
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the mended text is no JSON")
}

/// Finds the end of a value, fed piece by piece.
#[derive(Clone, Copy, Default, PartialEq)]
enum End {
    #[default]
    Unknown,
    /// In a number or a word.
    Scalar,
    /// So many containers deep, between tokens.
    Inside(u32),
    /// So many containers deep, in a string.
    String(u32),
    /// The same, behind a backslash.
    Escape(u32),
}

impl End {
    /// How many of the bytes belong to the value, if it ends in them. Otherwise all do.
    fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match *self {
                End::Unknown => {
                    *self = match rest[0] {
                        b'{' | b'[' => End::Inside(1),
                        b'"' => End::String(0),
                        _ => End::Scalar,
                    };
                    at += 1;
                }
                End::Scalar => {
                    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b' ' | b'\t' | b'\n' | b'\r');
                    return rest.iter().position(ends).map(|length| at + length);
                }
                End::Inside(depth) => {
                    let found = rest
                        .iter()
                        .position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))?;
                    at += found + 1;
                    *self = match rest[found] {
                        b'"' => End::String(depth),
                        b'{' | b'[' => End::Inside(depth + 1),
                        _ if depth == 1 => return Some(at),
                        _ => End::Inside(depth - 1),
                    };
                }
                End::String(depth) => {
                    let found = memchr::memchr2(b'"', b'\\', rest)?;
                    at += found + 1;
                    *self = match (rest[found], depth) {
                        (b'\\', _) => End::Escape(depth),
                        (_, 0) => return Some(at),
                        _ => End::Inside(depth),
                    };
                }
                End::Escape(depth) => {
                    *self = End::String(depth);
                    at += 1;
                }
            }
        }
        None
    }
}

/// The texts of the members with these names of the object in `text`, the last of each name; none if it is no object.
pub(super) fn members<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Option<[Option<&'a str>; N]> {
    struct Pick<'n, const N: usize>([&'n str; N]);

    impl<'de, const N: usize> Visitor<'de> for Pick<'_, N> {
        type Value = [Option<&'de str>; N];

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut picked = [None; N];
            while let Some(position) = map.next_key_seed(Which(&self.0))? {
                let value: &RawValue = map.next_value()?;
                if let Some(position) = position {
                    picked[position] = Some(value.get());
                }
            }
            Ok(picked)
        }
    }

    /// The position of a key among the names.
    struct Which<'n>(&'n [&'n str]);

    impl<'de> serde::de::DeserializeSeed<'de> for Which<'_> {
        type Value = Option<usize>;

        fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
            key.deserialize_identifier(self)
        }
    }

    impl Visitor<'_> for Which<'_> {
        type Value = Option<usize>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a key")
        }

        fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
            Ok(self.0.iter().position(|name| *name == key))
        }
    }

    serde_json::Deserializer::from_str(text)
        .deserialize_map(Pick(names))
        .ok()
}

/// The string in `text`; none if it is another value.
pub(super) fn string(text: &str) -> Option<std::borrow::Cow<'_, str>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    match memchr::memchr(b'\\', inside.as_bytes()) {
        None => Some(inside.into()),
        Some(_) => serde_json::from_str::<String>(text).ok().map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives at most so many bytes a read.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(buffer.len()).min(self.0.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn elements(text: &str, drip: usize) -> Vec<String> {
        let mut document = Document::new(Drip(text.as_bytes(), drip));
        assert!(document.enter(b'[').unwrap());
        let mut elements = Vec::new();
        while document.element().unwrap() {
            elements.push(document.value().unwrap().unwrap().to_owned());
        }
        assert_eq!(document.peek().unwrap(), None);
        elements
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<i64>().prop_map(Into::into),
            any::<i32>().prop_map(|number| (f64::from(number) / 8.0).into()),
            r#"[a-z"\\\[\]{}:,é ]{0,12}"#.prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::vec((r#"["\\a-c]{0,4}"#, inner), 0..5)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_found_however_the_reads_fall(values in prop::collection::vec(json(), 0..8), drip in 1_usize..40, pretty: bool) {
            let array = serde_json::Value::Array(values.clone());
            let text = if pretty { serde_json::to_string_pretty(&array) } else { serde_json::to_string(&array) }.unwrap();
            let got: Vec<serde_json::Value> = elements(&text, drip).iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            prop_assert_eq!(got, values);
        }
    }

    #[test]
    fn a_value_beyond_all_measure_is_passed_over() {
        let text = format!(r#"{{"long": "{}", "short": 7}}"#, "x".repeat(LONGEST_VALUE));
        let mut document = Document::new(text.as_bytes());
        assert!(document.enter(b'{').unwrap());
        assert_eq!(document.key().unwrap().as_deref(), Some("long"));
        assert_eq!(document.value().unwrap(), None);
        assert!(document.buffer.len() <= 4 * LONGEST_VALUE);
        assert_eq!(document.key().unwrap().as_deref(), Some("short"));
        assert_eq!(document.value().unwrap(), Some("7"));
        assert_eq!(document.key().unwrap(), None);
    }

    #[test]
    fn members_are_picked_by_name_and_the_last_one_counts() {
        let text = r#"{"a": {"b": 1}, "b": [1, 2], "\u0063": "x", "a": 2.50}"#;
        assert_eq!(
            members(text, ["a", "b", "c", "d"]),
            Some([Some("2.50"), Some("[1, 2]"), Some("\"x\""), None])
        );
        assert_eq!(members("[1]", ["a"]), None);
        assert_eq!(string(r#""a\u0062""#).as_deref(), Some("ab"));
        assert_eq!(string("12"), None);
    }
}
