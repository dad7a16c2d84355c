//! What one pass over an input found.

use super::container::Container;
use super::edit::Edit;
use super::ending::Closing;
use super::flaw::Flaws;
use super::options::Options;
use super::verify::Stretches;
use serde::{Serialize, Serializer};

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
    /// "utf-8", "utf-16le" or "utf-16be".
    pub encoding: &'static str,
    /// Bytes of the text: decompressed and, if it is UTF-16, transcoded. Of a refused input, those read until it was refused.
    pub size: u64,
    pub verdict: Verdict,
    /// Why the input is refused: one line that names the place and the cure.
    pub reason: Option<String>,
    pub flaws: Flaws,
    /// What no reader refuses, but a user should know: a line each.
    pub warnings: Vec<String>,
    /// The members of the root object whose values have at most [`LONGEST_MEMBER`] bytes, in file order, wherever they stand
    /// and however often. Of a refused input, those before the place of refusal.
    pub members: Vec<Member>,
    /// The names of all members of the root object, escapes decoded, each once, in file order.
    pub keys: Vec<String>,
    /// None if nothing JSON was found, or nothing JSON was looked for.
    pub root: Option<Root>,
    /// The first bytes of the text, as they stand in the input.
    pub head: Vec<u8>,
    /// The last bytes of the text, as they stand in the input.
    pub tail: Vec<u8>,
    pub(super) plan: Plan,
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
            plan: Plan::default(),
        }
    }
}

impl Findings {
    /// Of an input that cannot be read, and why.
    pub fn unread(reason: String) -> Self {
        Findings {
            verdict: Verdict::Refused,
            reason: Some(reason),
            ..Findings::default()
        }
    }
}

/// What a second pass needs to know of the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub options: Options,
    /// All edits but the closing one, if they are few.
    pub edits: Option<Vec<Edit>>,
    /// Where these and the closing one lie, if that is known of all.
    pub stretches: Option<Stretches>,
    pub closing: Option<Closing>,
    pub odd_byte: Option<u8>,
}
