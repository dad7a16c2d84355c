//! Where in the document a pass is: line, column and path.

use super::edit::Sink;
use super::machine::Machine;
use super::observer::{Observer, Structure};
use super::place::{Lines, Place};
use super::view::View;
use std::fmt::Write as _;
use std::io::Read;

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    /// Counts lines up to `to`, and notes on the way where unfinished things start.
    pub(super) fn advance(&mut self, to: u64) {
        let frames = self.grammar.frames.len();
        self.marks.resize(frames, Lines::new().place());
        for number in 0..frames {
            let start = self.grammar.cut_point(number);
            if self.lines.place().offset <= start && start < to {
                self.pass_lines(start);
                self.marks[number] = self.lines.place();
            }
        }
        self.pass_lines(to);
    }

    fn pass_lines(&mut self, to: u64) {
        let from = self.lines.place().offset;
        if from < to {
            self.lines.pass(self.window.slice(from, to));
        }
    }

    /// Line and column of `at`: not before the last place passed, unless something unfinished starts there, or it is on the
    /// same line.
    pub(super) fn place(&mut self, at: u64) -> Place {
        self.advance(at);
        let here = self.lines.place();
        match self.marks.iter().find(|mark| mark.offset == at) {
            Some(mark) => *mark,
            None => self.place_before(at, here),
        }
    }

    /// The place of `at`, a little before one that is known, from what the window still has.
    fn place_before(&self, at: u64, known: Place) -> Place {
        let characters = |text: &[u8]| String::from_utf8_lossy(text).chars().count() as u64;
        let between = self.window.slice(at, known.offset);
        let newlines = memchr::memchr_iter(b'\n', between).count() as u64;
        let column = if newlines == 0 {
            known.column.saturating_sub(characters(between)).max(1)
        } else {
            let before = self.window.slice(self.window.origin(), at);
            characters(&before[memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1)..]) + 1
        };
        Place {
            offset: at,
            line: known.line - newlines,
            column,
        }
    }

    pub(super) fn path(&self) -> Option<String> {
        self.path_of(self.grammar.frames.len())
    }

    /// The member in hand of the container at `depth`: `traceEvents[3].args.name`.
    pub(super) fn path_of(&self, depth: usize) -> Option<String> {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        let mut path = String::new();
        for (number, frame) in self.grammar.frames[..depth].iter().enumerate() {
            match frame.structure {
                Structure::Array => {
                    let _ = write!(path, "[{}]", frame.index);
                }
                Structure::Object => {
                    let key = String::from_utf8_lossy(self.grammar.key(number + 1, view).unwrap_or_default());
                    if !key.is_empty()
                        && key
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
                    {
                        path.push_str(if path.is_empty() { "" } else { "." });
                        path.push_str(&key);
                    } else {
                        let _ = write!(path, "[{key:?}]");
                    }
                }
            }
        }
        (!path.is_empty()).then_some(path)
    }
}
