//! Flaws and edits, gathered as a pass comes by them.

use super::copying::Copying;
use super::edit::{Edit, Sink};
use super::ending::Closing;
use super::flaw::{Flaw, FlawKind, Flaws, LONGEST_SHOWN};
use super::options::Options;
use super::standing::Mark;
use super::verify::Stretches;
use std::collections::VecDeque;
use std::io;

/// How many of the last flaws can be taken back if a cut drops what they stand in.
const MOST_RECENT: usize = 4096;
/// The most bytes of an edit that is remembered.
const LONGEST_REMEMBERED: usize = 1024;

/// Gathers flaws and edits as a pass comes by them.
pub(super) struct Found {
    pub flaws: Flaws,
    listed: usize,
    /// None if they are too many to be kept.
    pub edits: Option<Vec<Edit>>,
    remembered: usize,
    /// The last flaws: a cut may drop what they stand in.
    recent: VecDeque<(u64, FlawKind)>,
    /// Where the edits lie.
    pub stretches: Stretches,
    /// Who writes the copy meanwhile.
    pub copying: Option<Copying>,
}

impl Found {
    pub(super) fn new(options: &Options) -> Self {
        Found {
            flaws: Flaws::default(),
            listed: options.listed,
            remembered: options.remembered,
            edits: Some(Vec::new()),
            recent: VecDeque::new(),
            stretches: Stretches::default(),
            copying: None,
        }
    }

    pub(super) fn add(&mut self, flaw: Flaw) {
        if self.recent.len() == MOST_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((flaw.offset, flaw.kind));
        self.flaws.add(self.listed, flaw);
    }

    /// Forgets the flaws of what is dropped, and adds the cut itself. Of more than [`MOST_RECENT`] flaws in one event the
    /// first are counted all the same.
    pub(super) fn close(&mut self, closing: &Closing, dropped: &[u8]) {
        let from = closing.place.offset;
        // A value that was missing before the comma at which the cut starts stays.
        let drops = |offset, kind| offset > from || offset == from && kind != FlawKind::MissingValue;
        while let Some((_, kind)) = self.recent.pop_back_if(|(offset, kind)| drops(*offset, *kind)) {
            self.flaws.remove(kind);
        }
        self.flaws.listed.retain(|flaw| !drops(flaw.offset, flaw.kind));
        if let Some(edits) = &mut self.edits {
            edits.retain(|edit| !drops(edit.offset, edit.kind));
        }
        self.stretches.close(from);
        if let Some(copying) = &mut self.copying {
            copying.close(from, self.edits.as_deref());
        }
        self.add(Flaw {
            kind: closing.kind,
            offset: from,
            length: closing.end - from,
            bytes: dropped[..dropped.len().min(LONGEST_SHOWN)].to_vec(),
            line: closing.place.line,
            column: closing.place.column,
            path: closing.path.clone(),
            guess: false,
        });
    }
}

impl Found {
    /// Takes the last flaw back, which is of this kind and at this offset.
    pub(super) fn forget(&mut self, kind: FlawKind, offset: u64) {
        self.recent.pop_back();
        self.flaws.remove(kind);
        self.flaws
            .listed
            .pop_if(|flaw| (flaw.kind, flaw.offset) == (kind, offset));
    }
}

impl Sink for &mut Found {
    fn wants_paths(&self) -> bool {
        self.flaws.listed.len() < self.listed
    }

    fn edit(&mut self, edit: Edit, path: Option<String>) -> io::Result<()> {
        self.add(Flaw {
            path,
            ..Flaw::from(&edit)
        });
        self.stretches.edit(&edit);
        if let Some(copying) = &mut self.copying {
            copying.edit(&edit)?;
        }
        if let Some(edits) = &mut self.edits {
            if edits.len() < self.remembered && edit.old.len() <= LONGEST_REMEMBERED {
                edits.push(edit);
            } else {
                self.edits = None;
            }
        }
        Ok(())
    }

    fn flaw(&mut self, flaw: Flaw) {
        self.add(flaw);
    }

    fn settled(&mut self, before: &[u8], to: u64) -> io::Result<()> {
        match &mut self.copying {
            Some(copying) => copying.settled(before, to),
            None => Ok(()),
        }
    }

    fn wants_marks(&self) -> bool {
        self.edits.is_some()
    }

    fn mark(&mut self, mark: Mark) {
        self.stretches.mark(mark);
    }
}
