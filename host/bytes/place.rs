//! Line and column of a byte offset.

use super::survey::{Survey, survey};

/// A place in a text. Offsets count bytes from 0; lines end with a newline and are counted from 1; columns count characters
/// from 1, as editors and orjson do (facts/tracelens.md section 3), an ill-formed sequence being one character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub offset: u64,
    pub line: u64,
    pub column: u64,
}

/// Follows a text from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines(Place);

impl Lines {
    pub(super) fn new() -> Self {
        Lines(Place {
            offset: 0,
            line: 1,
            column: 1,
        })
    }

    /// From `offset` on, counted as if the text began there.
    pub(super) fn from(offset: u64) -> Self {
        Lines(Place {
            offset,
            ..Lines::new().0
        })
    }

    pub(super) fn place(&self) -> Place {
        self.0
    }

    /// Passes over `text`, which holds no ill-formed sequence.
    pub(super) fn pass(&mut self, text: &[u8]) {
        self.pass_surveyed(text, survey(text));
    }

    /// The same, if the survey of the text is known.
    pub(super) fn pass_surveyed(&mut self, text: &[u8], survey: Survey) {
        let mut last_line = text;
        if survey.newlines > 0 {
            self.0.line += survey.newlines;
            self.0.column = 1;
            last_line = &text[memchr::memrchr(b'\n', text).map_or(0, |newline| newline + 1)..];
        }
        self.0.column += if survey.ascii {
            last_line.len() as u64
        } else {
            characters(last_line)
        };
        self.0.offset += text.len() as u64;
    }

    /// Passes over `text` on one line, which may hold ill-formed sequences.
    pub(super) fn pass_lossy(&mut self, text: &[u8]) {
        self.0.column += String::from_utf8_lossy(text).chars().count() as u64;
        self.0.offset += text.len() as u64;
    }

    /// Passes over a byte order mark, which is no character of the text.
    pub(super) fn pass_mark(&mut self, length: u64) {
        self.0.offset += length;
    }

    /// Passes over one ill-formed sequence of so many bytes.
    pub(super) fn pass_ill_formed(&mut self, length: u64) {
        self.0.column += 1;
        self.0.offset += length;
    }
}

/// Characters of a well-formed text: the bytes that do not continue one. Counted in runs short enough for sums of one byte
/// each, which the compiler turns into SIMD.
fn characters(text: &[u8]) -> u64 {
    let continuing: u64 = text
        .chunks(255)
        .map(|run| u64::from(run.iter().map(|&byte| u8::from(byte & 0xC0 == 0x80)).sum::<u8>()))
        .sum();
    text.len() as u64 - continuing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let mut lines = Lines::new();
        lines.pass("a\u{e9}\u{1F600}".as_bytes());
        assert_eq!(
            lines.place(),
            Place {
                offset: 7,
                line: 1,
                column: 4
            }
        );
        lines.pass_ill_formed(2);
        assert_eq!(
            lines.place(),
            Place {
                offset: 9,
                line: 1,
                column: 5
            }
        );
        lines.pass("\n\nxy".as_bytes());
        assert_eq!(
            lines.place(),
            Place {
                offset: 13,
                line: 3,
                column: 3
            }
        );
        lines.pass("\u{e9}".repeat(1000).as_bytes());
        assert_eq!(
            lines.place(),
            Place {
                offset: 2013,
                line: 3,
                column: 1003
            }
        );
    }
}
