//! What `scan` and `repair` look for.

use clap::{Args, ValueEnum};

use crate::bytes::{Check, Options, Readers, USUAL_EXPANSION};

/// What is looked for, and how much of it is shown.
#[derive(Debug, Args)]
pub(super) struct Checks {
    /// Look for one class of damage only
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Whom the trace must please; may be given several times
    #[arg(long = "reader", value_name = "READER", value_enum, default_value = "tracelens")]
    readers: Vec<WhichReader>,
    /// Refuse gzip streams that grow more than this many times
    #[arg(long, value_name = "TIMES", default_value_t = USUAL_EXPANSION, value_parser = clap::value_parser!(u64).range(1..))]
    max_expansion: u64,
    /// List at most this many flaws of a file one by one; all are counted
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) list: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Only {
    /// Ill-formed UTF-8
    Utf8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhichReader {
    /// Any JSON reader: orjson, Python, Node
    Json,
    /// Also TraceLens's workbook writer, which escapes of control characters stop half way
    Tracelens,
    /// Also Perfetto, which refuses surrogate escapes even in pairs
    Perfetto,
}

impl Checks {
    pub(super) fn options(&self) -> Options {
        Options {
            check: if self.only.is_some() { Check::Utf8 } else { Check::Json },
            listed: self.list,
            readers: Readers {
                spreadsheet: self.readers.contains(&WhichReader::Tracelens),
                perfetto: self.readers.contains(&WhichReader::Perfetto),
            },
            expansion: self.max_expansion,
            ..Options::default()
        }
    }
}
