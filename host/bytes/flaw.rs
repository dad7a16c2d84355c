//! Damage: what kind, where, how much of it.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlawKind {
    /// Bytes that are no UTF-8, a maximal subpart at a time (Unicode chapter 3).
    IllFormedUtf8,
    /// A byte below 0x20 inside a string.
    ControlCharacter,
    /// A `\uD800` to `\uDFFF` escape that is not half of a pair.
    LoneSurrogate,
    /// A backslash that starts no escape of RFC 8259.
    IllegalEscape,
    /// NaN, infinities, and numbers that no double can hold.
    NonFiniteNumber,
    /// The input ends before the document does.
    Cut,
    /// Containers nested deeper than orjson reads.
    TooDeep,
    /// No document at all.
    Empty,
    /// Anything else that RFC 8259 does not allow.
    Syntax,
    /// A compressed stream that does not decompress.
    BadCompression,
}

impl FlawKind {
    /// The name in reports and logs; it does not change.
    pub fn name(self) -> &'static str {
        match self {
            FlawKind::IllFormedUtf8 => "ill-formed-utf8",
            FlawKind::ControlCharacter => "control-character",
            FlawKind::LoneSurrogate => "lone-surrogate",
            FlawKind::IllegalEscape => "illegal-escape",
            FlawKind::NonFiniteNumber => "non-finite-number",
            FlawKind::Cut => "cut",
            FlawKind::TooDeep => "too-deep",
            FlawKind::Empty => "empty",
            FlawKind::Syntax => "syntax",
            FlawKind::BadCompression => "bad-compression",
        }
    }
}

impl Serialize for FlawKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One piece of damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flaw {
    pub kind: FlawKind,
    /// In bytes from the start of the decompressed input.
    pub offset: u64,
    /// In bytes; 0 where something is missing.
    pub length: u64,
    /// The first [`LONGEST_SHOWN`] bytes of it, as they stand in the input.
    pub bytes: Vec<u8>,
    /// From 1; lines end with a newline.
    pub line: u64,
    /// From 1, in characters (an ill-formed sequence is one), as editors and orjson count.
    pub column: u64,
}

/// How many bytes of a flaw [`Flaw::bytes`] holds at most.
pub const LONGEST_SHOWN: usize = 32;

/// All damage of an input: counted without limit, listed up to one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flaws {
    pub count: u64,
    pub by_kind: BTreeMap<FlawKind, u64>,
    /// The first ones, in the order of their offsets.
    pub listed: Vec<Flaw>,
}

impl Flaws {
    pub(super) fn add(&mut self, limit: usize, flaw: impl FnOnce() -> Flaw, kind: FlawKind) {
        self.count += 1;
        *self.by_kind.entry(kind).or_default() += 1;
        if self.listed.len() < limit {
            self.listed.push(flaw());
        }
    }
}
