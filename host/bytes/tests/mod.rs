//! What the room promises as a whole.

mod containers;
mod copying;
mod damage;
mod encoding;
mod found;
mod fuzzed;
mod json;
mod mutation;
mod rules;

use super::scan::scan_within;
use super::window::Reach;
use super::*;
use std::io::{self, ErrorKind, Read};

/// A window so small that everything is cut.
pub(super) const TINY: Reach = Reach {
    history: 64,
    lookahead: 48,
    capacity: 160,
};

/// A window that holds a small trace in parts, but any token whole.
pub(super) const SMALL: Reach = Reach {
    history: 600,
    lookahead: 300,
    capacity: 1000,
};

pub(super) fn scanned(data: &[u8]) -> Findings {
    scan(data, &Options::default(), &mut ()).unwrap()
}

pub(super) fn scanned_tiny(data: &[u8]) -> Findings {
    scan_within(data, &Options::default(), &mut (), TINY).unwrap()
}

/// The mended copy and the edits, which say truly where they stand in both.
pub(super) fn mended(data: &[u8], findings: &Findings) -> (Vec<u8>, Vec<Edit>) {
    let (mut copy, mut edits) = (Vec::new(), Vec::new());
    let mended = mend(data, findings, &mut copy, &mut |edit| edits.push(edit.clone())).unwrap();
    assert_eq!((mended.size, mended.edits), (copy.len() as u64, edits.len() as u64));
    for edit in &edits {
        assert!(
            copy[edit.copy_offset as usize..].starts_with(&edit.new),
            "{edit:?} {}",
            data.escape_ascii()
        );
    }
    (copy, edits)
}

/// The mended copy, if the second pass has to find all edits again, in a window of little more than nothing.
pub(super) fn found_again(data: &[u8], findings: &Findings) -> Vec<u8> {
    let mut forgetful = findings.clone();
    forgetful.plan.edits = None;
    let mut copy = Vec::new();
    MendingReader::within(data, &forgetful, TINY, SMALL)
        .unwrap()
        .read_to_end(&mut copy)
        .unwrap();
    copy
}

/// Gives its bytes in pieces of the sizes asked for, with interruptions (size 0) between.
pub(super) struct Pieces<'a> {
    pub data: &'a [u8],
    pub sizes: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl<'a> Pieces<'a> {
    pub fn new(data: &'a [u8], sizes: &'a [usize]) -> Self {
        Pieces {
            data,
            sizes: sizes.iter().cycle(),
        }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self
            .sizes
            .next()
            .copied()
            .unwrap_or(1)
            .min(buffer.len())
            .min(self.data.len());
        if size == 0 && !self.data.is_empty() {
            return Err(ErrorKind::Interrupted.into());
        }
        buffer[..size].copy_from_slice(&self.data[..size]);
        self.data = &self.data[size..];
        Ok(size)
    }
}
