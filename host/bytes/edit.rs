//! What is replaced by what.

use super::flaw::{Flaw, FlawKind, LONGEST_SHOWN};
use super::standing::Mark;
use std::io;

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub kind: FlawKind,
    /// In bytes from the start of the input, decompressed and, if it is UTF-16, transcoded.
    pub offset: u64,
    /// In bytes from the start of the mended copy.
    pub copy_offset: u64,
    /// What stands in the input.
    pub old: Vec<u8>,
    /// What stands in the copy instead.
    pub new: Vec<u8>,
    /// In the input, from 1.
    pub line: u64,
    /// In the input, from 1, in characters.
    pub column: u64,
    /// Whether it rests on what the known writers do, not on the grammar alone.
    pub guess: bool,
}

impl Edit {
    /// Bytes by which the copy becomes longer.
    pub(super) fn growth(&self) -> i64 {
        self.new.len() as i64 - self.old.len() as i64
    }
}

impl From<&Edit> for Flaw {
    fn from(edit: &Edit) -> Flaw {
        Flaw {
            kind: edit.kind,
            offset: edit.offset,
            length: edit.old.len() as u64,
            bytes: edit.old[..edit.old.len().min(LONGEST_SHOWN)].to_vec(),
            line: edit.line,
            column: edit.column,
            path: None,
            guess: edit.guess,
        }
    }
}

/// Who is told what is wrong. Flaws come in the order of their offsets.
pub(super) trait Sink {
    /// Whether to say of flaws which member they lie in.
    fn wants_paths(&self) -> bool;
    /// A flaw, and what is to stand in its place.
    fn edit(&mut self, edit: Edit, path: Option<String>) -> io::Result<()>;
    /// A flaw that cannot be mended.
    fn flaw(&mut self, flaw: Flaw);
    /// Everything before the offset `to` stays as it is, but for the edits told. `before` are the bytes that end there, as far
    /// back as they are at hand.
    fn settled(&mut self, before: &[u8], to: u64) -> io::Result<()> {
        let _ = (before, to);
        Ok(())
    }
    /// Whether to tell places from which the pass could be taken up again.
    fn wants_marks(&self) -> bool {
        false
    }
    /// Such a place.
    fn mark(&mut self, mark: Mark) {
        let _ = mark;
    }
}
