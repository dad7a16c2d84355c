//! Damage: what kind, where, how much of it.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FlawKind {
    /// Bytes that are no UTF-8, a maximal subpart at a time (Unicode chapter 3). Mended to U+FFFD.
    IllFormedUtf8,
    /// U+FEFF before the document. Removed.
    ByteOrderMark,
    /// The document is UTF-16. Transcoded.
    Utf16,
    /// A byte below 0x20 inside a string. Tab, newline and carriage return become escapes, all others U+FFFD: an escape of
    /// theirs parses, then breaks spreadsheet writers (facts/tracelens.md section 3 e).
    ControlCharacter,
    /// The escape of a control character that spreadsheets cannot hold. Mended to U+FFFD.
    ControlEscape,
    /// A `\uD800` to `\uDFFF` escape that is not half of a pair. Mended to U+FFFD.
    LoneSurrogate,
    /// A pair of surrogate escapes, which Perfetto refuses (facts/traces.md A49). Mended to the character they stand for.
    SurrogatePair,
    /// A backslash that starts no escape of RFC 8259. Doubled; `\'` becomes `'`.
    IllegalEscape,
    /// A quote inside a string. Escaped, where the writer's order of keys proves where the string ends.
    UnescapedQuote,
    /// NaN, infinities, and numbers that no double can hold. Mended to `null`.
    NonFiniteNumber,
    /// A number with a plus sign, or with no digit before or after its point. The sign removed, a 0 added.
    MalformedNumber,
    /// Any other word, hex number or number with leading zeros where a value should be. Made a string.
    BareWord,
    /// A key without one or both of its quotes. Added.
    UnquotedKey,
    /// A key without a value. `null` added.
    MissingValue,
    /// A comma with nothing before it or nothing after it. Removed.
    StrayComma,
    /// Two elements or members without a comma between them. Added.
    MissingComma,
    /// Brackets missing at the very start or the very end. Added.
    MissingBracket,
    /// The input ends before the document does. Closed after the last whole event.
    Cut,
    /// Zero bytes after the document. Removed.
    TrailingBytes,
    /// The gzip stream ends early. What it holds is used.
    GzipCut,
    /// The gzip stream ends without its checksum, which therefore proves nothing.
    GzipTrailerMissing,
    /// Bytes that are no gzip after a gzip stream. Left out.
    GzipTrailingBytes,
    /// A gzip stream that does not inflate, or not to what its checksum says. Refused.
    GzipCorrupt,
    /// A gzip stream that grows beyond all measure. Refused.
    GzipExpansion,
    /// The name says another container than the content. Found by whoever knows the name; the copy gets one that is true.
    MisleadingSuffix,
    /// Containers nested deeper than orjson reads. Refused.
    TooDeep,
    /// No document at all. Refused.
    Empty,
    /// A second document after the first, or inside it: an appended run, or two writers. Refused.
    SeveralDocuments,
    /// Something else than JSON. Refused.
    NotJson,
    /// Anything else that RFC 8259 does not allow. Refused.
    Syntax,
}

impl FlawKind {
    /// All kinds, in their order.
    pub const ALL: [FlawKind; 30] = [
        FlawKind::IllFormedUtf8,
        FlawKind::ByteOrderMark,
        FlawKind::Utf16,
        FlawKind::ControlCharacter,
        FlawKind::ControlEscape,
        FlawKind::LoneSurrogate,
        FlawKind::SurrogatePair,
        FlawKind::IllegalEscape,
        FlawKind::UnescapedQuote,
        FlawKind::NonFiniteNumber,
        FlawKind::MalformedNumber,
        FlawKind::BareWord,
        FlawKind::UnquotedKey,
        FlawKind::MissingValue,
        FlawKind::StrayComma,
        FlawKind::MissingComma,
        FlawKind::MissingBracket,
        FlawKind::Cut,
        FlawKind::TrailingBytes,
        FlawKind::GzipCut,
        FlawKind::GzipTrailerMissing,
        FlawKind::GzipTrailingBytes,
        FlawKind::GzipCorrupt,
        FlawKind::GzipExpansion,
        FlawKind::MisleadingSuffix,
        FlawKind::TooDeep,
        FlawKind::Empty,
        FlawKind::SeveralDocuments,
        FlawKind::NotJson,
        FlawKind::Syntax,
    ];

    /// The name in reports and logs; it does not change.
    pub fn name(self) -> &'static str {
        match self {
            FlawKind::IllFormedUtf8 => "ill-formed-utf8",
            FlawKind::ByteOrderMark => "byte-order-mark",
            FlawKind::Utf16 => "utf-16",
            FlawKind::ControlCharacter => "control-character",
            FlawKind::ControlEscape => "control-escape",
            FlawKind::LoneSurrogate => "lone-surrogate",
            FlawKind::SurrogatePair => "surrogate-pair",
            FlawKind::IllegalEscape => "illegal-escape",
            FlawKind::UnescapedQuote => "unescaped-quote",
            FlawKind::NonFiniteNumber => "non-finite-number",
            FlawKind::MalformedNumber => "malformed-number",
            FlawKind::BareWord => "bare-word",
            FlawKind::UnquotedKey => "unquoted-key",
            FlawKind::MissingValue => "missing-value",
            FlawKind::StrayComma => "stray-comma",
            FlawKind::MissingComma => "missing-comma",
            FlawKind::MissingBracket => "missing-bracket",
            FlawKind::Cut => "cut",
            FlawKind::TrailingBytes => "trailing-bytes",
            FlawKind::GzipCut => "gzip-cut",
            FlawKind::GzipTrailerMissing => "gzip-trailer-missing",
            FlawKind::GzipTrailingBytes => "gzip-trailing-bytes",
            FlawKind::GzipCorrupt => "gzip-corrupt",
            FlawKind::GzipExpansion => "gzip-expansion",
            FlawKind::MisleadingSuffix => "misleading-suffix",
            FlawKind::TooDeep => "too-deep",
            FlawKind::Empty => "empty",
            FlawKind::SeveralDocuments => "several-documents",
            FlawKind::NotJson => "not-json",
            FlawKind::Syntax => "syntax",
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
    /// The member or element it lies in, as in `traceEvents[3].args.name`; none outside all, and none for flaws that are not
    /// listed.
    pub path: Option<String>,
    /// Whether the mend rests on what the known writers do, not on the grammar alone.
    pub guess: bool,
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
    pub(super) fn add(&mut self, limit: usize, flaw: Flaw) {
        self.count += 1;
        *self.by_kind.entry(flaw.kind).or_default() += 1;
        if self.listed.len() < limit {
            self.listed.push(flaw);
        }
    }

    /// Takes one flaw off the count.
    pub(super) fn remove(&mut self, kind: FlawKind) {
        self.count = self.count.saturating_sub(1);
        if let Some(count) = self.by_kind.get_mut(&kind) {
            *count -= 1;
            if *count == 0 {
                self.by_kind.remove(&kind);
            }
        }
    }
}
