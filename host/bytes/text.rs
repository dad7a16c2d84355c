//! An input as the text it holds: its wrapping taken off, UTF-16 transcoded.

use super::container::{Container, Opened, first_bytes, open_within};
use super::gzip::GzipEnd;
use super::options::{Check, Options};
use super::utf16::{FromUtf16, Order};
use std::io::{self, Cursor, Read};

type Whole<R> = io::Chain<Cursor<Vec<u8>>, Opened<R>>;

pub(super) enum Text<R: Read> {
    Utf8(Whole<R>),
    Utf16(Box<FromUtf16<Whole<R>>>),
}

impl<R: Read> Text<R> {
    /// With [`Check::Utf8`] UTF-16 is left alone.
    pub(super) fn open(input: R, options: &Options) -> io::Result<(Container, Option<Order>, Text<R>)> {
        let (container, mut opened) = open_within(input, options.expansion)?;
        let head = first_bytes(&mut opened, 4)?;
        let order = if options.check == Check::Json {
            Order::sniff(&head)
        } else {
            None
        };
        let whole = Cursor::new(head).chain(opened);
        let text = match order {
            Some(order) => Text::Utf16(Box::new(FromUtf16::new(whole, order))),
            None => Text::Utf8(whole),
        };
        Ok((container, order, text))
    }

    pub(super) fn gzip_end(&self) -> Option<&GzipEnd> {
        let (_, opened) = match self {
            Text::Utf8(whole) => whole.get_ref(),
            Text::Utf16(text) => text.get_ref().get_ref(),
        };
        opened.gzip_end()
    }

    /// The last byte of UTF-16, if it belongs to no unit.
    pub(super) fn odd_byte(&self) -> Option<u8> {
        match self {
            Text::Utf8(_) => None,
            Text::Utf16(text) => text.odd_byte(),
        }
    }
}

impl<R: Read> Read for Text<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Text::Utf8(text) => text.read(buffer),
            Text::Utf16(text) => text.read(buffer),
        }
    }
}
