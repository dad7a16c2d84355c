//! A window that slides over an input of any length.

use super::ahead::fill;
use std::io::{self, Read};

/// How much a window keeps and sees, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// Kept before the place in hand: tokens and members up to this long can be looked at once their end is known.
    pub history: usize,
    /// Seen after the place in hand, unless the input ends earlier.
    pub lookahead: usize,
    /// The whole window.
    pub capacity: usize,
}

impl Default for Reach {
    fn default() -> Self {
        Reach {
            history: 128 << 10,
            lookahead: 64 << 10,
            capacity: 1 << 20,
        }
    }
}

/// Spaces after the end of the input, so that code may look at a few bytes without asking whether they are there.
pub(super) const PADDING: usize = 64;

pub(super) struct Window<R> {
    input: R,
    buffer: Box<[u8]>,
    /// Offset in the input of the first byte of the buffer.
    origin: u64,
    filled: usize,
    finished: bool,
    reach: Reach,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R, reach: Reach) -> Self {
        Window::from(input, reach, 0)
    }

    /// Over an input whose first byte has the offset `origin`.
    pub(super) fn from(input: R, reach: Reach, origin: u64) -> Self {
        let buffer = vec![0; reach.capacity + PADDING].into_boxed_slice();
        Window {
            input,
            buffer,
            origin,
            filled: 0,
            finished: false,
            reach,
        }
    }

    /// Whether `at` needs more of the input before it can be worked on.
    pub(super) fn is_short(&self, at: u64) -> bool {
        !self.finished && self.end() - at < (self.reach.lookahead + 1) as u64
    }

    /// What `slide(at)` will leave as the first offset.
    pub(super) fn next_origin(&self, at: u64) -> u64 {
        self.origin.max(at.saturating_sub(self.reach.history as u64))
    }

    /// Gives up what lies more than the history before `at` and reads until the window is full or the input ends.
    /// How the input cuts its bytes into reads does not matter.
    pub(super) fn slide(&mut self, at: u64) -> io::Result<()> {
        let gone = (self.next_origin(at) - self.origin) as usize;
        self.buffer.copy_within(gone..self.filled, 0);
        self.origin += gone as u64;
        self.filled -= gone;
        if !self.finished {
            self.filled += fill(&mut self.input, &mut self.buffer[self.filled..self.reach.capacity])?;
            self.finished = self.filled < self.reach.capacity;
        }
        if self.finished {
            self.buffer[self.filled..self.filled + PADDING].fill(b' ');
        }
        Ok(())
    }

    /// The bytes of the window; at the end of the input followed by `PADDING` spaces.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled + if self.finished { PADDING } else { 0 }]
    }

    /// The input's bytes from one offset to another, as far as the window has them.
    pub(super) fn slice(&self, from: u64, to: u64) -> &[u8] {
        let place = |offset: u64| (offset.clamp(self.origin, self.end()) - self.origin) as usize;
        &self.buffer[place(from)..place(to).max(place(from))]
    }

    pub(super) fn origin(&self) -> u64 {
        self.origin
    }

    /// Offset after the last byte read.
    pub(super) fn end(&self) -> u64 {
        self.origin + self.filled as u64
    }

    /// Whether the input has no more bytes than those of the window.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(super) fn input_mut(&mut self) -> &mut R {
        &mut self.input
    }

    pub(super) fn lookahead(&self) -> usize {
        self.reach.lookahead
    }
}
