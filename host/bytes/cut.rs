//! Where a document could be closed, seen from inside it.

use super::grammar::{Expect, Grammar};
use super::observer::Structure;

impl Grammar {
    /// Where what has begun last in the frame with this number, and is not complete, starts, together with the comma
    /// before it; `end` if nothing has.
    pub(super) fn unfinished(&self, number: usize, end: u64) -> u64 {
        let Some(frame) = self.frames.get(number) else {
            return end;
        };
        let deepest = number + 1 == self.frames.len();
        if deepest
            && matches!(
                self.expect,
                Expect::Next | Expect::FirstElement | Expect::FirstKey | Expect::Nothing
            )
        {
            return end;
        }
        if frame.index > 0 {
            frame.comma_at
        } else {
            self.unfinished_child(number, end)
        }
    }

    /// Where the frame with this number would be cut if its last child did not become whole.
    pub(super) fn cut_point(&self, number: usize) -> u64 {
        let frame = &self.frames[number];
        let deepest = number + 1 == self.frames.len();
        match (frame.structure, self.expect) {
            _ if frame.index > 0 => frame.comma_at,
            (_, Expect::InKey) | (Structure::Array, Expect::InString) if deepest => self.string_at,
            (Structure::Array, _) if deepest => u64::MAX,
            (Structure::Object, _) if frame.key_at == u64::MAX => u64::MAX,
            _ => frame.child_at,
        }
    }

    /// The same as `unfinished`, without the comma.
    pub(super) fn unfinished_child(&self, number: usize, end: u64) -> u64 {
        let Some(frame) = self.frames.get(number) else {
            return end;
        };
        if number + 1 < self.frames.len() {
            return frame.child_at;
        }
        match (frame.structure, self.expect) {
            (_, Expect::InKey) | (Structure::Array, Expect::InString) => self.string_at,
            (Structure::Object, Expect::Colon | Expect::Value | Expect::InString) => frame.child_at,
            _ => end,
        }
    }
}
