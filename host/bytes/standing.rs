//! What decides how a pass goes on from a place, so that it can be taken up there, or found to stand as another one did.

use super::blocks::Carry;
use super::edit::Sink;
use super::encoding::Encoding;
use super::grammar::{Expect, Grammar};
use super::machine::Machine;
use super::observer::{Observer, Structure};
use super::options::{Check, Options};
use super::place::Lines;
use super::recover::{ARGUMENTS, ROCPROFILER};
use super::view::View;
use super::window::{Reach, Window};
use std::io::{self, Read};

/// The state of a pass, relative to the place where it stands. Two passes that stand alike find the same things in the same
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub carry: Carry,
    pub expect: Expect,
    /// The containers that have begun, each with the name of its member in hand if that decides anything.
    pub open: Vec<(Structure, &'static [u8])>,
    /// In how many bytes the low half of the surrogate pair in hand comes.
    pub low_half_in: Option<u64>,
    /// Whether the string in hand holds a Windows path.
    pub in_path: bool,
}

/// A place of a pass, and how the pass stood there.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// In bytes from the start of the text.
    pub at: u64,
    /// How many bytes before the place the check of the encoding has still to look at: the start of a character, as a rule.
    pub unchecked: u64,
    pub standing: Standing,
}

/// What is taken for damage depends on these names alone.
const DECIDING: [&[u8]; 2] = [ROCPROFILER, ARGUMENTS];

impl Mark {
    /// Before the character that starts at `at`, where only the encoding is checked.
    pub(super) fn of_encoding(at: u64) -> Mark {
        let standing = Standing {
            carry: Carry::default(),
            expect: Expect::Value,
            open: Vec::new(),
            low_half_in: None,
            in_path: false,
        };
        Mark {
            at,
            unchecked: 0,
            standing,
        }
    }
}

impl<R: Read, O: Observer, S: Sink> Machine<R, O, S> {
    /// Where the pass is now.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            unchecked: self.at - self.encoding.from.min(self.at),
            standing: self.standing(),
        }
    }

    pub(super) fn standing(&self) -> Standing {
        let view = View {
            bytes: self.window.bytes(),
            origin: self.window.origin(),
        };
        let grammar = &self.grammar;
        let name = |depth: usize| {
            let key = grammar.key(depth, view)?;
            DECIDING.into_iter().find(|name| *name == key)
        };
        let frames = grammar.frames.iter().zip(1..);
        Standing {
            carry: self.carry,
            expect: grammar.expect,
            open: frames
                .map(|(frame, depth)| (frame.structure, name(depth).unwrap_or_default()))
                .collect(),
            low_half_in: grammar.low_half_in(self.at),
            in_path: grammar.expect == Expect::InString && grammar.path_at == grammar.string_at,
        }
    }

    /// A pass that goes on at `at` as if it had come there from the start, standing as `mark` says; the first byte of `input`
    /// is the first one unchecked.
    pub(super) fn resumed(
        input: R,
        options: &Options,
        reach: Reach,
        observer: O,
        sink: S,
        mark: &Mark,
        at: u64,
    ) -> io::Result<Self> {
        let origin = at - mark.unchecked;
        let mut window = Window::from(input, reach, origin);
        window.slide(origin)?;
        let mut machine = Machine::over(window, options, observer, sink);
        machine.encoding = Encoding::from(origin);
        machine.lines = Lines::from(origin);
        machine.carry = mark.standing.carry;
        machine.at = at;
        if options.check == Check::Json {
            machine.grammar.resume(&mark.standing, at);
        }
        Ok(machine)
    }
}

impl Grammar {
    /// In how many bytes from `at` on the low half of the surrogate pair in hand stands.
    fn low_half_in(&self, at: u64) -> Option<u64> {
        self.low_half_at
            .checked_sub(at)
            .filter(|_| self.low_half_at != u64::MAX)
    }

    fn resume(&mut self, standing: &Standing, at: u64) {
        self.expect = standing.expect;
        for (structure, name) in &standing.open {
            self.enter(*structure, name);
        }
        if let Some(distance) = standing.low_half_in {
            self.low_half_at = at + distance;
        }
        // Whatever string is in hand began before.
        self.string_at = at.saturating_sub(1);
        if standing.in_path {
            self.path_at = self.string_at;
        }
    }
}
