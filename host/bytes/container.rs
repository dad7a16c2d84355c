//! What an input is wrapped in, told from its content and never from its name.

use super::gzip::{Gunzip, GzipEnd};
use serde::{Serialize, Serializer};
use std::io::{self, Cursor, Read};

/// What an input is wrapped in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    Plain,
    /// RFC 1952, any number of members.
    Gzip,
    /// RFC 8878; recognised, not opened.
    Zstd,
    /// Recognised, not opened.
    Xz,
}

impl Container {
    pub fn as_str(self) -> &'static str {
        match self {
            Container::Plain => "plain",
            Container::Gzip => "gzip",
            Container::Zstd => "zstd",
            Container::Xz => "xz",
        }
    }

    /// By the first bytes of an input: six are enough.
    pub fn sniff(head: &[u8]) -> Container {
        match head {
            [0x1F, 0x8B, 0x08, ..] => Container::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Container::Zstd,
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Container::Xz,
            _ => Container::Plain,
        }
    }
}

impl Serialize for Container {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The bytes of an input without its wrapping.
pub struct Opened<R: Read>(Kind<R>);

type Whole<R> = io::Chain<Cursor<Vec<u8>>, R>;

enum Kind<R: Read> {
    Plain(Whole<R>),
    Gzip(Box<Gunzip<Whole<R>>>),
}

impl<R: Read> Read for Opened<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(input) => input.read(buffer),
            Kind::Gzip(input) => input.read(buffer),
        }
    }
}

impl<R: Read> Opened<R> {
    /// How the gzip stream ended, once it has.
    pub(super) fn gzip_end(&self) -> Option<&GzipEnd> {
        match &self.0 {
            Kind::Plain(_) => None,
            Kind::Gzip(input) => input.end(),
        }
    }
}

/// The bytes that a gzip stream may give for each of its own, if nothing else is said. Traces give 10 to 50
/// (facts/tracelens.md section 2); deflate can give 1032.
pub const USUAL_EXPANSION: u64 = 200;

/// Looks at the first bytes of `input` and takes off the wrapping: gzip is decompressed, all members of it; zstd and xz are
/// left as they are. Errors are those of `input`. A gzip stream that is damaged ends where it cannot be read any further;
/// [`scan`](super::scan) says what is wrong with it. So does one that gives more than [`USUAL_EXPANSION`] bytes for each of
/// its own, after the first 64 MiB.
pub fn open<R: Read>(input: R) -> io::Result<(Container, Opened<R>)> {
    open_within(input, USUAL_EXPANSION)
}

pub(super) fn open_within<R: Read>(mut input: R, expansion: u64) -> io::Result<(Container, Opened<R>)> {
    let head = first_bytes(&mut input, 6)?;
    let container = Container::sniff(&head);
    let whole = Cursor::new(head).chain(input);
    let opened = match container {
        Container::Gzip => Kind::Gzip(Box::new(Gunzip::new(whole, expansion.max(1)))),
        _ => Kind::Plain(whole),
    };
    Ok((container, Opened(opened)))
}

/// Up to so many bytes of the start of `input`.
pub(super) fn first_bytes<R: Read>(input: &mut R, wanted: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(wanted);
    input.take(wanted as u64).read_to_end(&mut head)?;
    Ok(head)
}
