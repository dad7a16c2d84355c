//! gzip (RFC 1952), read as far as it goes: a stream that was cut gives what it holds, and how it ended is kept apart from
//! what was in it (facts/traces.md A36, A37, A42).

use super::flaw::FlawKind;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::io::{self, ErrorKind, Read};

/// How a gzip stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GzipEnd {
    /// After a member with a good checksum, or zero padding.
    Whole,
    /// Inside a member: at this many compressed bytes.
    Cut { at: u64 },
    /// After the data of a member, before or inside the checksum and the length.
    NoTrailer { at: u64 },
    /// Something else follows the last member.
    TrailingBytes { at: u64, first: Vec<u8> },
    /// It does not inflate, or its checksum differs. `writers` if another stream starts inside it.
    Corrupt { at: u64, what: &'static str, writers: bool },
    /// More than the allowed bytes for each compressed one.
    Expands { at: u64, limit: u64 },
}

impl GzipEnd {
    /// The flaw it is, the bytes to show for it, and what to say about it; none if the stream is whole.
    pub(super) fn damage(&self) -> Option<(FlawKind, Vec<u8>, String)> {
        let (kind, what) = match self {
            GzipEnd::Whole => return None,
            GzipEnd::Cut { at } => (
                FlawKind::GzipCut,
                format!("the gzip stream is cut after {at} compressed bytes: all counts are a floor"),
            ),
            GzipEnd::NoTrailer { at } => (
                FlawKind::GzipTrailerMissing,
                format!("the gzip stream ends at compressed byte {at} without its checksum: not verified"),
            ),
            GzipEnd::TrailingBytes { at, first } => {
                let what = format!("what follows the gzip stream at compressed byte {at} is left out");
                return Some((FlawKind::GzipTrailingBytes, first.clone(), what));
            }
            GzipEnd::Corrupt { at, what, writers } => {
                let cause = if *writers {
                    "another stream starts inside it: several writers shared the file, give each rank its own path"
                } else {
                    "its bytes changed after they were written: fetch the file again from where it was written"
                };
                (
                    FlawKind::GzipCorrupt,
                    format!("gzip: {what}, near compressed byte {at}; {cause}"),
                )
            }
            GzipEnd::Expands { at, limit } => (
                FlawKind::GzipExpansion,
                format!(
                    "gzip: more than {limit} bytes for each compressed one, by compressed byte {at}; raise \
                     the limit with --max-expansion if it is a trace"
                ),
            ),
        };
        Some((kind, Vec::new(), what))
    }
}

/// Below this many decompressed bytes no expansion is too much.
const ALWAYS_ALLOWED: u64 = 64 << 20;
const BUFFER: usize = 64 << 10;

pub(super) struct Gunzip<R> {
    input: R,
    buffer: Box<[u8]>,
    start: usize,
    filled: usize,
    /// Offset in the input of the end of the buffer.
    read: u64,
    inflate: Decompress,
    crc: Crc,
    state: State,
    /// Decompressed bytes so far.
    given: u64,
    expansion: u64,
    always_allowed: u64,
}

enum State {
    Header,
    Data,
    Trailer,
    /// After the last whole member.
    Between,
    Ended(GzipEnd),
}

impl<R: Read> Gunzip<R> {
    /// `expansion`: how many bytes may come out for each that goes in.
    pub(super) fn new(input: R, expansion: u64) -> Self {
        Gunzip {
            input,
            buffer: vec![0; BUFFER].into(),
            start: 0,
            filled: 0,
            read: 0,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            state: State::Header,
            given: 0,
            expansion,
            always_allowed: ALWAYS_ALLOWED,
        }
    }

    /// How the stream ended; none before the end.
    pub(super) fn end(&self) -> Option<&GzipEnd> {
        match &self.state {
            State::Ended(end) => Some(end),
            _ => None,
        }
    }

    /// Offset in the input of the next byte.
    fn at(&self) -> u64 {
        self.read - (self.filled - self.start) as u64
    }

    fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.filled]
    }

    /// Makes sure that `wanted` bytes are in the buffer, or all there are.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.filled - self.start >= wanted {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.filled, 0);
        self.filled -= self.start;
        self.start = 0;
        while self.filled < wanted {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(read) => {
                    self.filled += read;
                    self.read += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Passes over a member's header. The file name in it may be long, but not longer than the buffer.
    fn header(&mut self) -> io::Result<State> {
        self.fill(BUFFER)?;
        let at = self.at();
        Ok(match header_length(self.ahead()) {
            Header::Whole(length) => {
                self.start += length;
                self.inflate.reset(false);
                self.crc.reset();
                State::Data
            }
            Header::Cut => State::Ended(GzipEnd::Cut {
                at: at + self.ahead().len() as u64,
            }),
            Header::Other => State::Ended(GzipEnd::Corrupt {
                at,
                what: "its header is damaged",
                writers: false,
            }),
        })
    }

    /// What comes after a whole member.
    fn between(&mut self) -> io::Result<State> {
        loop {
            self.fill(2)?;
            match self.ahead() {
                [] => return Ok(State::Ended(GzipEnd::Whole)),
                [0x1F, 0x8B, ..] => return Ok(State::Header),
                [0, ..] => self.start += 1,
                _ => {
                    self.fill(32)?;
                    let first = self.ahead()[..self.ahead().len().min(32)].to_vec();
                    return Ok(State::Ended(GzipEnd::TrailingBytes { at: self.at(), first }));
                }
            }
        }
    }

    fn trailer(&mut self) -> io::Result<State> {
        self.fill(8)?;
        let at = self.at();
        let Some(&[a, b, c, d, e, f, g, h]) = self.ahead().first_chunk::<8>() else {
            return Ok(State::Ended(GzipEnd::NoTrailer { at }));
        };
        let (crc, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if crc != self.crc.sum() || length != self.crc.amount() {
            let what = "its checksum differs from its data";
            return Ok(State::Ended(GzipEnd::Corrupt {
                at,
                what,
                writers: false,
            }));
        }
        self.start += 8;
        Ok(State::Between)
    }

    /// Inflates into `out`.
    fn data(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            self.fill(1)?;
            let at = self.at();
            if self.ahead().is_empty() {
                self.state = State::Ended(GzipEnd::Cut { at });
                return Ok(0);
            }
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let result = self
                .inflate
                .decompress(&self.buffer[self.start..self.filled], out, FlushDecompress::None);
            let taken = (self.inflate.total_in() - before_in) as usize;
            let given = (self.inflate.total_out() - before_out) as usize;
            self.start += taken;
            self.given += given as u64;
            self.crc.update(&out[..given]);
            match result {
                Ok(Status::StreamEnd) => self.state = State::Trailer,
                Ok(_) => {}
                Err(_) => {
                    let writers = self.buffer[..self.filled].windows(10).skip(1).any(is_plain_header);
                    let at = self.at();
                    self.state = State::Ended(GzipEnd::Corrupt {
                        at,
                        what: "it does not inflate",
                        writers,
                    });
                }
            }
            if self.given > self.always_allowed && self.given / self.expansion > self.read {
                self.state = State::Ended(GzipEnd::Expands {
                    at: self.at(),
                    limit: self.expansion,
                });
            }
            if given > 0 || !matches!(self.state, State::Data) {
                return Ok(given);
            }
        }
    }
}

impl<R: Read> Read for Gunzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            self.state = match self.state {
                State::Header => self.header()?,
                State::Between => self.between()?,
                State::Trailer => self.trailer()?,
                State::Ended(_) => return Ok(0),
                State::Data => {
                    let given = self.data(out)?;
                    if given > 0 {
                        return Ok(given);
                    }
                    continue;
                }
            };
        }
    }
}

enum Header {
    Whole(usize),
    Cut,
    Other,
}

/// RFC 1952, section 2.3.
fn header_length(data: &[u8]) -> Header {
    let Some(fixed) = data.first_chunk::<10>() else {
        return if data.starts_with(&[0x1F, 0x8B, 8]) || data.len() < 3 {
            Header::Cut
        } else {
            Header::Other
        };
    };
    let flags = fixed[3];
    if fixed[..3] != [0x1F, 0x8B, 8] || flags & 0xE0 != 0 {
        return Header::Other;
    }
    let mut length = 10;
    if flags & 4 != 0 {
        let Some(&[low, high]) = data[length..].first_chunk::<2>() else {
            return Header::Cut;
        };
        length += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    // The name and the comment, each ended by a zero byte.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let Some(zero) = data.get(length..).and_then(|rest| memchr::memchr(0, rest)) else {
                return Header::Cut;
            };
            length += zero + 1;
        }
    }
    length += if flags & 2 != 0 { 2 } else { 0 };
    if length <= data.len() {
        Header::Whole(length)
    } else {
        Header::Cut
    }
}

/// Whether ten bytes are a header as gzip writers write it: two bytes alone occur by chance.
fn is_plain_header(data: &[u8]) -> bool {
    data.starts_with(&[0x1F, 0x8B, 8])
        && data[3] & 0xE0 == 0
        && matches!(data[8], 0 | 2 | 4)
        && matches!(data[9], 0..=13 | 255)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn expansion_has_a_limit() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
        let data = encoder.finish().unwrap();
        let read = |expansion, always_allowed| {
            let mut reader = Gunzip {
                always_allowed,
                ..Gunzip::new(&data[..], expansion)
            };
            let mut text = Vec::new();
            reader.read_to_end(&mut text).unwrap();
            (text.len(), reader.end().cloned())
        };
        assert_eq!(read(200, 2 << 20), (1 << 20, Some(GzipEnd::Whole)));
        assert_eq!(read(2000, 1 << 16), (1 << 20, Some(GzipEnd::Whole)));
        let (length, end) = read(200, 1 << 16);
        let end = end.unwrap();
        assert!(
            length < 1 << 19 && matches!(end, GzipEnd::Expands { limit: 200, .. }),
            "{length} {end:?}"
        );
        let (kind, _, what) = end.damage().unwrap();
        assert!(
            kind == FlawKind::GzipExpansion && what.contains("200 bytes for each"),
            "{what}"
        );
    }
}
