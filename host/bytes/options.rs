//! What to look for.

use super::container::USUAL_EXPANSION;

/// What an input is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// That it is well-formed UTF-8, whatever it means.
    Utf8,
    /// That it is also one JSON document (RFC 8259) that every reader of facts/tracelens.md section 3 loads.
    Json,
}

/// What must be able to use a file, besides the JSON readers of facts/tracelens.md section 3 (orjson, Python, Node), which
/// always must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Readers {
    /// TraceLens's workbook writer, which a control character in a name stops half way, even if it stands there as an escape.
    pub spreadsheet: bool,
    /// Perfetto, which refuses surrogate escapes, even in pairs (facts/traces.md A49).
    pub perfetto: bool,
}

impl Default for Readers {
    /// All but Perfetto.
    fn default() -> Self {
        Readers {
            spreadsheet: true,
            perfetto: false,
        }
    }
}

/// How to scan.
#[derive(Clone, Debug)]
pub struct Options {
    pub check: Check,
    /// How many flaws are listed one by one; all are counted.
    pub listed: usize,
    pub readers: Readers,
    /// How many edits are kept in memory for the second pass. With more, it finds them again, which is slower.
    pub remembered: usize,
    /// How many bytes a gzip stream may give for each of its own, once it has given 64 MiB.
    pub expansion: u64,
}

impl Default for Options {
    /// A full check that lists the first 100 flaws.
    fn default() -> Self {
        Options {
            check: Check::Json,
            listed: 100,
            readers: Readers::default(),
            remembered: 4096,
            expansion: USUAL_EXPANSION,
        }
    }
}
