//! The log of a mend: JSON Lines from which the original can be restored.
//!
//! The first line names the format, the container and the encoding of the original. A line for each edit follows, in the order
//! of their offsets: `{"kind":"ill-formed-utf8","offset":17,"copy_offset":17,"old":"90","new":"efbfbd","line":1,"column":18}`,
//! offsets in bytes of the original's and of the copy's text, bytes in hex. A gzip original cannot be made again from its text, so
//! its own bytes are in the log too, as `{"container":"1f8b..."}` lines in between. The last line counts and sums up; a log
//! without it was cut.

use super::container::Container;
use super::edit::Edit;
use super::findings::Findings;
use super::mend::{Mended, MendingReader};
use super::utf16::{Order, ToUtf16};
use flate2::Crc;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::{self, BufRead, Read, Write};
use thiserror::Error;

/// The version of the format.
const VERSION: u32 = 1;
/// The longest line of a log, in bytes: an edit of 64 KiB in hex, and some room.
const LONGEST_LINE: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Line {
    Start {
        tracemend_log: u32,
        container: String,
        encoding: String,
        /// The last byte of UTF-16 text, in hex, if it belongs to no code unit.
        odd_byte: Option<String>,
    },
    Edit {
        kind: String,
        offset: u64,
        copy_offset: u64,
        old: String,
        new: String,
        line: u64,
        column: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        guess: bool,
    },
    Container {
        container: String,
    },
    End {
        edits: u64,
        /// Bytes of the copy.
        copy_size: u64,
        /// CRC-32 (RFC 1952) of the copy.
        copy_crc32: u32,
    },
}

/// Why an original cannot be restored.
#[derive(Debug, Error)]
pub enum RestoreError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The log is none, or was cut.
    #[error("line {line} of the log: {what}")]
    Log { line: u64, what: String },
    /// The copy is not what the log was written with.
    #[error("the copy is not the one that this log belongs to: {0}")]
    OtherCopy(String),
}

/// [`mend`](super::mend), and writes to `log` all that [`restore`] needs.
///
/// Errors: those of [`mend`](super::mend), and of writing the log.
pub fn mend_logged<R: Read, W: Write, L: Write>(
    mut input: R,
    findings: &Findings,
    mut out: W,
    mut log: L,
) -> io::Result<Mended> {
    let odd_byte = findings.plan.odd_byte.map(|byte| hex(&[byte]));
    write_line(
        &mut log,
        &Line::Start {
            tracemend_log: VERSION,
            container: findings.container.as_str().to_owned(),
            encoding: findings.encoding.to_owned(),
            odd_byte,
        },
    )?;
    let is_plain = findings.container == Container::Plain;
    let seen = RefCell::new(Vec::new());
    let mut mended = Mended { size: 0, edits: 0 };
    let mut crc = Crc::new();
    let tee = Tee {
        input: &mut input,
        seen: (!is_plain).then_some(&seen),
    };
    let mut reader = MendingReader::new(tee, findings)?;
    loop {
        let mut result = Ok(());
        let more = reader.advance(&mut |edit| {
            mended.edits += 1;
            if result.is_ok() {
                result = write_line(&mut log, &Line::from(edit));
            }
        })?;
        result?;
        let ready = reader.ready();
        out.write_all(ready)?;
        crc.update(ready);
        mended.size += ready.len() as u64;
        write_container(&mut log, &mut seen.borrow_mut())?;
        if !more {
            break;
        }
    }
    drop(reader);
    if !is_plain {
        loop {
            let mut rest = Vec::new();
            (&mut input).take(64 << 10).read_to_end(&mut rest)?;
            if rest.is_empty() {
                break;
            }
            write_container(&mut log, &mut rest)?;
        }
    }
    write_line(
        &mut log,
        &Line::End {
            edits: mended.edits,
            copy_size: mended.size,
            copy_crc32: crc.sum(),
        },
    )?;
    log.flush()?;
    out.flush()?;
    Ok(mended)
}

/// Writes to `out` the input from which [`mend_logged`] made `copy` and `log`, byte for byte. What has been written is not to
/// be used if this fails.
///
/// Returns the number of bytes written, before they are encoded as UTF-16.
pub fn restore<C: Read, L: BufRead, W: Write>(copy: C, log: L, mut out: W) -> Result<u64, RestoreError> {
    let mut log = Reader { log, line: 0 };
    let Line::Start {
        tracemend_log: VERSION,
        container,
        encoding,
        odd_byte,
    } = log.next()?
    else {
        return Err(log.error("no log of a mend, or one of another version"));
    };
    let order = [Order::Little, Order::Big]
        .into_iter()
        .find(|order| order.name() == encoding);
    if container != Container::Plain.as_str() {
        return restore_container(log, out);
    }
    let Some(order) = order else {
        let size = restore_text(copy, log, &mut out)?;
        out.flush()?;
        return Ok(size);
    };
    let odd_byte = match odd_byte.map(|byte| bytes(&byte)) {
        None => None,
        Some(Some(byte)) if byte.len() == 1 => Some(byte[0]),
        Some(_) => return Err(log.error("the odd byte is no byte")),
    };
    let mut transcoder = ToUtf16::new(out, order);
    let size = restore_text(copy, log, &mut transcoder)?;
    transcoder.finish(odd_byte)?;
    Ok(size)
}

fn restore_text<C: Read, L: BufRead>(copy: C, mut log: Reader<L>, out: &mut dyn Write) -> Result<u64, RestoreError> {
    let mut copy = Copy {
        copy,
        at: 0,
        crc: Crc::new(),
    };
    let (mut size, mut edits_read) = (0, 0);
    loop {
        match log.next()? {
            Line::Edit {
                offset,
                copy_offset,
                old,
                new,
                ..
            } => {
                let (Some(old), Some(new)) = (bytes(&old), bytes(&new)) else {
                    return Err(log.error("bytes that are no hex"));
                };
                let Some(length) = copy_offset.checked_sub(copy.at) else {
                    return Err(log.error("an edit before the one above it"));
                };
                size += copy.pass(length, out)?;
                if size != offset {
                    return Err(log.error("offsets that contradict the edits above"));
                }
                copy.expect(&new)?;
                out.write_all(&old)?;
                size += old.len() as u64;
                edits_read += 1;
            }
            Line::End {
                edits,
                copy_size,
                copy_crc32,
            } => {
                if edits != edits_read {
                    return Err(log.error(&format!("{edits} edits are announced, {edits_read} are there")));
                }
                size += copy.pass(u64::MAX, out)?;
                if (copy.at, copy.crc.sum()) != (copy_size, copy_crc32) {
                    return Err(RestoreError::OtherCopy(format!(
                        "{} bytes with checksum {:08x}, not {copy_size} with {copy_crc32:08x}",
                        copy.at,
                        copy.crc.sum(),
                    )));
                }
                return Ok(size);
            }
            Line::Start { .. } | Line::Container { .. } => return Err(log.error("unexpected here")),
        }
    }
}

fn restore_container<L: BufRead, W: Write>(mut log: Reader<L>, mut out: W) -> Result<u64, RestoreError> {
    let mut size = 0;
    loop {
        match log.next()? {
            Line::Container { container } => {
                let Some(container) = bytes(&container) else {
                    return Err(log.error("bytes that are no hex"));
                };
                out.write_all(&container)?;
                size += container.len() as u64;
            }
            Line::Edit { .. } => {}
            Line::End { .. } => {
                out.flush()?;
                return Ok(size);
            }
            Line::Start { .. } => return Err(log.error("unexpected here")),
        }
    }
}

/// The copy, as far as it has been read.
struct Copy<C> {
    copy: C,
    at: u64,
    crc: Crc,
}

impl<C: Read> Copy<C> {
    /// Hands on up to `length` bytes. Returns how many there were.
    fn pass(&mut self, length: u64, out: &mut dyn Write) -> io::Result<u64> {
        let mut buffer = [0; 64 << 10];
        let mut passed = 0;
        while passed < length {
            let wanted = buffer.len().min(usize::try_from(length - passed).unwrap_or(usize::MAX));
            let read = match self.copy.read(&mut buffer[..wanted]) {
                Ok(0) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            };
            self.crc.update(&buffer[..read]);
            out.write_all(&buffer[..read])?;
            passed += read as u64;
        }
        self.at += passed;
        Ok(passed)
    }

    fn expect(&mut self, new: &[u8]) -> Result<(), RestoreError> {
        let mut found = Vec::new();
        (&mut self.copy).take(new.len() as u64).read_to_end(&mut found)?;
        if found != new {
            let what = format!("at byte {} it has {}, not {}", self.at, hex(&found), hex(new));
            return Err(RestoreError::OtherCopy(what));
        }
        self.crc.update(new);
        self.at += new.len() as u64;
        Ok(())
    }
}

struct Reader<L> {
    log: L,
    line: u64,
}

impl<L: BufRead> Reader<L> {
    fn next(&mut self) -> Result<Line, RestoreError> {
        self.line += 1;
        let mut text = Vec::new();
        (&mut self.log).take(LONGEST_LINE).read_until(b'\n', &mut text)?;
        if text.is_empty() {
            return Err(self.error("missing: the log was cut, or is none"));
        }
        serde_json::from_slice(&text).map_err(|_| self.error("no line of a log"))
    }

    fn error(&self, what: &str) -> RestoreError {
        RestoreError::Log {
            line: self.line,
            what: what.to_owned(),
        }
    }
}

/// Keeps what is read from a container.
struct Tee<'a, R> {
    input: &'a mut R,
    seen: Option<&'a RefCell<Vec<u8>>>,
}

impl<R: Read> Read for Tee<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if let Some(seen) = self.seen {
            seen.borrow_mut().extend_from_slice(&buffer[..read]);
        }
        Ok(read)
    }
}

impl From<&Edit> for Line {
    fn from(edit: &Edit) -> Line {
        Line::Edit {
            kind: edit.kind.name().to_owned(),
            offset: edit.offset,
            copy_offset: edit.copy_offset,
            old: hex(&edit.old),
            new: hex(&edit.new),
            line: edit.line,
            column: edit.column,
            guess: edit.guess,
        }
    }
}

fn write_line(log: &mut dyn Write, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    log.write_all(&text)
}

/// Writes out and empties `seen`.
fn write_container(log: &mut dyn Write, seen: &mut Vec<u8>) -> io::Result<()> {
    for piece in seen.chunks(64 << 10) {
        write_line(log, &Line::Container { container: hex(piece) })?;
    }
    seen.clear();
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    pairs
        .iter()
        .map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?))
        .collect()
}
