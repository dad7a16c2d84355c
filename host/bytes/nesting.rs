//! The containers that have begun, the names of their members in hand, and who listens to them.

use super::grammar::{Grammar, Top};
use super::observer::{LONGEST_REPORTED, Observer, Scalar, Structure};
use super::view::View;

/// A container that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub structure: Structure,
    /// Elements or members before the one in hand.
    pub index: u64,
    /// Where the comma before the one in hand stands; it means something if `index` is not 0.
    pub comma_at: u64,
    /// Where the last container in an array starts, or the last key of an object, its quote included.
    pub child_at: u64,
    /// Where the name of the member in hand stands, without its quotes.
    pub key_at: u64,
    pub key_length: usize,
    /// Whether that name is among the kept ones.
    pub key_is_kept: bool,
}

impl Grammar {
    /// The name of the member in hand in the container at `depth`.
    pub(super) fn key<'a>(&'a self, depth: usize, view: View<'a>) -> Option<&'a [u8]> {
        let frame = self.frames.get(depth.checked_sub(1)?)?;
        if frame.structure == Structure::Array || frame.key_length > LONGEST_REPORTED {
            return None;
        }
        if frame.key_is_kept {
            return self.kept_keys.get(depth - 1).map(|key| &**key);
        }
        view.slice(frame.key_at, frame.key_at + frame.key_length as u64)
    }

    /// Goes on inside a container that began before the window, with the member of this name in hand.
    pub(super) fn enter(&mut self, structure: Structure, name: &[u8]) {
        self.kept_keys.push(name.into());
        self.frames.push(Frame {
            structure,
            index: 0,
            comma_at: 0,
            child_at: 0,
            key_at: 0,
            key_length: name.len(),
            key_is_kept: true,
        });
    }

    /// Whether this is the first key of the root object.
    pub(super) fn starts_document(&self, key: Option<&[u8]>) -> bool {
        !self.first_key.is_empty() && key == Some(&*self.first_key)
    }

    /// Keeps the names that a window starting at `origin` will not show any more.
    pub(super) fn keep_keys(&mut self, origin: u64, view: View<'_>) {
        self.kept_keys.resize(self.frames.len(), Box::default());
        for (frame, kept) in self.frames.iter_mut().zip(&mut self.kept_keys) {
            if frame.key_at < origin && !frame.key_is_kept {
                let length = frame.key_length.min(LONGEST_REPORTED) as u64;
                *kept = view
                    .slice(frame.key_at, frame.key_at + length)
                    .unwrap_or_default()
                    .into();
                frame.key_is_kept = true;
            }
        }
    }

    #[inline(always)]
    pub(super) fn is_heard(&self) -> bool {
        self.heard == self.frames.len()
    }

    #[inline(always)]
    pub(super) fn begin<O: Observer>(&mut self, view: View<'_>, structure: Structure, at: usize, observer: &mut O) {
        if let Some(parent) = self.frames.last_mut()
            && parent.structure == Structure::Array
        {
            parent.child_at = view.origin + at as u64;
        }
        let depth = self.frames.len() + 1;
        let heard =
            self.is_heard() && depth <= O::MAX_DEPTH && observer.begin(structure, depth, self.key(depth - 1, view));
        self.heard += usize::from(heard);
        self.frames.push(Frame {
            structure,
            index: 0,
            comma_at: 0,
            child_at: 0,
            key_at: u64::MAX,
            key_length: 0,
            key_is_kept: false,
        });
    }

    #[inline(always)]
    pub(super) fn end<O: Observer>(&mut self, observer: &mut O) {
        if self.is_heard() {
            observer.end(self.frames.len());
            self.heard -= 1;
        }
        self.frames.pop();
    }

    /// The member in hand starts at `start` and has the name that stands between two offsets.
    #[inline(always)]
    pub(super) fn key_is<T: Top>(&mut self, view: View<'_>, start: u64, from: u64, to: u64, first: bool, top: &mut T) {
        let length = (to - from) as usize;
        let depth = self.frames.len();
        if let Some(frame) = self.frames.last_mut() {
            frame.child_at = start;
            frame.key_at = from;
            frame.key_length = length;
            frame.key_is_kept = false;
        }
        if depth == 1 {
            self.top_key(view, from, to, first, top);
        } else if first && length == self.first_key.len() && view.slice(from, to) == Some(&*self.first_key) {
            self.restart.get_or_insert(from);
        }
    }

    #[cold]
    fn top_key<T: Top>(&mut self, view: View<'_>, from: u64, to: u64, first: bool, top: &mut T) {
        if let Some(key) = view.slice(from, to.min(from + LONGEST_REPORTED as u64)) {
            top.key(from, key);
            if first {
                self.first_key = key.into();
            }
        }
    }

    pub(super) fn report<O: Observer>(&self, view: View<'_>, value: Scalar<'_>, observer: &mut O) {
        let depth = self.frames.len();
        observer.scalar(value, depth, self.key(depth, view));
    }
}
