//! A run's traces as a plugin sees them.

use std::io;
use std::sync::Arc;

use crate::plugins::Contents;
use crate::traces::Run;

/// Serves the traces of a run by their position in it.
pub(super) struct RunContents {
    run: Arc<Run>,
}

impl RunContents {
    pub(super) fn new(run: Arc<Run>) -> Self {
        RunContents { run }
    }
}

impl Contents for RunContents {
    fn count(&self) -> u32 {
        u32::try_from(self.run.traces.len()).unwrap_or(u32::MAX)
    }

    fn members(&self, index: u32, key: &str) -> Vec<String> {
        let members = self.run.traces[index as usize].findings.members.iter();
        members
            .filter(|member| member.key == key)
            .map(|member| member.text.clone())
            .collect()
    }

    fn head(&self, index: u32, max: usize) -> io::Result<Vec<u8>> {
        self.run.head(index as usize, max)
    }

    fn tail(&self, index: u32, max: usize) -> io::Result<Vec<u8>> {
        self.run.tail(index as usize, max)
    }

    fn find(&self, index: u32, needle: &[u8], limit: usize, around: usize) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.run.find(index as usize, needle, limit, around)
    }
}
