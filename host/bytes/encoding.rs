//! The check of the encoding, in step with the walk.

use super::edit::Sink;
use super::flaw::FlawKind;
use super::machine::Machine;
use super::observer::Observer;
use super::utf8::{REPLACEMENT, first_ill_formed, incomplete_tail};
use std::io::{self, Read};

/// How far the check of the encoding has come; all offsets in the input.
pub(super) struct Encoding {
    /// Everything before is either well-formed or dealt with.
    pub from: u64,
    /// Up to here bytes have been looked at; between the two something is ill-formed.
    pub to: u64,
    /// The first ill-formed sequence after `from`, if it is known already.
    next: Option<(u64, u64)>,
}

impl Encoding {
    /// Of a check that begins at `offset`.
    pub(super) fn from(offset: u64) -> Self {
        Encoding {
            from: offset,
            to: offset,
            next: None,
        }
    }
}

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    pub(super) fn check_encoding(&mut self, to: u64) {
        if to <= self.encoding.to {
            return;
        }
        let last = self.window.is_finished() && to == self.window.end();
        let fresh = self.window.slice(self.encoding.from, to);
        let cut = if last { 0 } else { incomplete_tail(fresh) };
        self.encoding.to = to - cut as u64;
        if simdutf8::basic::from_utf8(&fresh[..fresh.len() - cut]).is_ok() {
            self.encoding.from = self.encoding.to;
        }
    }

    /// The first ill-formed sequence that is not dealt with and starts before `limit`.
    pub(super) fn next_ill_formed(&mut self, limit: u64) -> Option<(u64, u64)> {
        let Encoding { from, to, next } = self.encoding;
        if from >= to {
            return None;
        }
        self.encoding.next = next.or_else(|| {
            let (at, length) = first_ill_formed(self.window.slice(from, to), 0, true)?;
            Some((from + at as u64, length as u64))
        });
        if self.encoding.next.is_none() {
            self.encoding.from = to;
        }
        self.encoding.next.filter(|(at, _)| *at < limit)
    }

    pub(super) fn replace_ill_formed(&mut self, at: u64, length: u64) -> io::Result<()> {
        self.advance(at);
        self.replace(FlawKind::IllFormedUtf8, at, length, REPLACEMENT, false)?;
        self.lines.pass_ill_formed(length);
        self.encoding.from = at + length;
        self.encoding.next = None;
        Ok(())
    }

    /// Leaves what is ill-formed before `offset` to an edit that covers it.
    pub(super) fn ignore_encoding_until(&mut self, offset: u64) {
        if self.encoding.from < offset {
            self.encoding.from = offset;
            self.encoding.next = None;
        }
    }
}
