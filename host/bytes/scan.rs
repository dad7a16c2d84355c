//! One pass over an input: its damage, and what its head, its tail and its top level say.

use super::container::{Container, open};
use super::flaw::{Flaw, FlawKind, Flaws};
use super::machine::{Machine, Sink};
use super::mend::Edit;
use super::observer::Observer;
use super::window::Reach;
use serde::{Serialize, Serializer};
use std::io::{self, Read};

/// What an input is checked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// That it is well-formed UTF-8, whatever it means.
    Utf8,
    /// That it is also one JSON document (RFC 8259) that every reader of facts/tracelens.md section 3 loads.
    Json,
}

/// How to scan.
#[derive(Clone, Debug)]
pub struct Options {
    pub check: Check,
    /// How many flaws are listed one by one; all are counted.
    pub listed: usize,
}

impl Default for Options {
    /// A full check that lists the first 100 flaws.
    fn default() -> Self {
        Options {
            check: Check::Json,
            listed: 100,
        }
    }
}

/// Whether an input can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// As it is.
    Clean,
    /// After mending.
    Damaged,
    /// Nothing sane can be made of it.
    Refused,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Damaged => "damaged",
            Verdict::Refused => "refused",
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a document is at its top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Root {
    Object,
    Array,
    Scalar,
}

/// A member of the root object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name, escapes decoded.
    pub key: String,
    /// The value: JSON text, mended.
    pub text: String,
}

/// The longest value, in bytes, that becomes a [`Member`].
pub const LONGEST_MEMBER: usize = 64 << 10;
/// How many bytes all [`Findings::members`] have together at most; later ones are left out.
pub const ALL_MEMBERS: usize = 1 << 20;
/// How many [`Findings::keys`] there are at most.
pub const MOST_KEYS: usize = 1024;
/// How long, in bytes, [`Findings::head`] and [`Findings::tail`] are at most.
pub const LONGEST_END: usize = 64 << 10;

/// What one pass found.
#[derive(Clone, Debug)]
pub struct Findings {
    pub container: Container,
    pub encoding: &'static str,
    /// Decompressed bytes; of a refused input, those read until it was refused.
    pub size: u64,
    pub verdict: Verdict,
    /// Why the input is refused: one line that names the place.
    pub reason: Option<String>,
    pub flaws: Flaws,
    /// Oddities that no reader refuses, a line each.
    pub warnings: Vec<String>,
    /// The members of the root object whose values have at most [`LONGEST_MEMBER`] bytes, in file order, wherever they stand
    /// and however often. Of a refused input, those before the place of refusal.
    pub members: Vec<Member>,
    /// The names of all members of the root object, escapes decoded, each once, in file order.
    pub keys: Vec<String>,
    /// None if nothing JSON was found, or nothing JSON was looked for.
    pub root: Option<Root>,
    /// The first bytes, as they stand in the input.
    pub head: Vec<u8>,
    /// The last bytes, as they stand in the input.
    pub tail: Vec<u8>,
}

impl Default for Findings {
    /// Of an input that nobody scanned: clean, as far as anyone knows.
    fn default() -> Self {
        Findings {
            container: Container::Plain,
            encoding: "binary",
            size: 0,
            verdict: Verdict::Clean,
            reason: None,
            flaws: Flaws::default(),
            warnings: Vec::new(),
            members: Vec::new(),
            keys: Vec::new(),
            root: None,
            head: Vec::new(),
            tail: Vec::new(),
        }
    }
}

/// Reads `input` to its end, in one pass and constant memory, and says what is wrong with it. With [`Check::Json`] the
/// `observer` hears what the document holds. However `input` cuts its bytes into reads, the findings are the same.
///
/// Errors are those of reading `input`; damage of any kind is a finding.
pub fn scan<R: Read, O: Observer>(input: R, options: &Options, observer: &mut O) -> io::Result<Findings> {
    scan_within(input, options, observer, Reach::default())
}

pub(super) fn scan_within<R: Read, O: Observer>(
    input: R,
    options: &Options,
    observer: &mut O,
    reach: Reach,
) -> io::Result<Findings> {
    let (container, opened) = open(input)?;
    let mut found = Found {
        flaws: Flaws::default(),
        listed: options.listed,
    };
    let machine = Machine::new(opened, options, reach, observer, &mut found);
    let report = match container {
        Container::Plain | Container::Gzip => machine.run()?,
        Container::Zstd | Container::Xz => machine.refuse_container(container)?,
    };
    let verdict = match (&report.reason, found.flaws.count) {
        (Some(_), _) => Verdict::Refused,
        (None, 0) => Verdict::Clean,
        (None, _) => Verdict::Damaged,
    };
    Ok(Findings {
        container,
        encoding: "utf-8",
        size: report.size,
        verdict,
        reason: report.reason,
        flaws: found.flaws,
        warnings: report.warnings,
        members: report.members,
        keys: report.keys,
        root: report.root,
        head: report.head,
        tail: report.tail,
    })
}

struct Found {
    flaws: Flaws,
    listed: usize,
}

impl Sink for Found {
    fn edit(&mut self, edit: Edit) -> io::Result<()> {
        self.flaw(Flaw::from(&edit));
        Ok(())
    }

    fn flaw(&mut self, flaw: Flaw) {
        let kind: FlawKind = flaw.kind;
        self.flaws.add(self.listed, || flaw, kind);
    }
}
