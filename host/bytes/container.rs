//! What an input is wrapped in, told from its content and never from its name.

use flate2::read::MultiGzDecoder;
use serde::{Serialize, Serializer};
use std::io::{self, Cursor, ErrorKind, Read};

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
    Gzip(Box<MultiGzDecoder<Whole<R>>>),
}

impl<R: Read> Read for Opened<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Plain(input) => input.read(buffer),
            Kind::Gzip(input) => input.read(buffer),
        }
    }
}

/// Looks at the first bytes of `input` and takes off the wrapping: gzip is decompressed, all members of it; zstd and xz are
/// left as they are. Errors are those of `input`; damage in a gzip stream shows when it is read, as an error of
/// [`ErrorKind::InvalidData`], `InvalidInput` or `UnexpectedEof`.
pub fn open<R: Read>(mut input: R) -> io::Result<(Container, Opened<R>)> {
    let mut head = Vec::with_capacity(6);
    while head.len() < 6 {
        let mut rest = [0; 6];
        let wanted = 6 - head.len();
        match input.read(&mut rest[..wanted]) {
            Ok(0) => break,
            Ok(read) => head.extend_from_slice(&rest[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let container = Container::sniff(&head);
    let whole = Cursor::new(head).chain(input);
    let opened = match container {
        Container::Gzip => Kind::Gzip(Box::new(MultiGzDecoder::new(whole))),
        _ => Kind::Plain(whole),
    };
    Ok((container, Opened(opened)))
}
