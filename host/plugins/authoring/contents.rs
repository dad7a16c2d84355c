//! Contents of traces that are on no disk.

use std::io;

use crate::plugins::Contents;

/// A batch whose traces all hold the same bytes.
pub(super) struct SameContents {
    count: u32,
    bytes: Vec<u8>,
    /// The JSON text of every member that is asked for.
    members: Vec<String>,
}

impl SameContents {
    pub(super) fn new(count: usize, bytes: Vec<u8>, members: Vec<String>) -> Self {
        SameContents {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            bytes,
            members,
        }
    }

    pub(super) fn empty(count: usize) -> Self {
        SameContents::new(count, Vec::new(), Vec::new())
    }
}

impl Contents for SameContents {
    fn count(&self) -> u32 {
        self.count
    }

    fn members(&self, _: u32, _: &str) -> Vec<String> {
        self.members.clone()
    }

    fn head(&self, _: u32, max: usize) -> io::Result<Vec<u8>> {
        Ok(self.bytes[..max.min(self.bytes.len())].to_vec())
    }

    fn tail(&self, _: u32, max: usize) -> io::Result<Vec<u8>> {
        Ok(self.bytes[self.bytes.len().saturating_sub(max)..].to_vec())
    }

    /// Every needle is found, at the beginning and wherever `limit` allows: a plugin that looks for one meets the bytes.
    fn find(&self, _: u32, _: &[u8], limit: usize, around: usize) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let places = self.bytes.chunks(2 * around.max(1)).enumerate().take(limit);
        Ok(places
            .map(|(index, chunk)| ((index * 2 * around) as u64, chunk.to_vec()))
            .collect())
    }
}
