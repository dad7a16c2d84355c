//! UTF-16 as UTF-8, without loss: a surrogate that stands alone becomes the three bytes it would have if it were a character
//! (WTF-8, <https://simonsapin.github.io/wtf-8/>), which the check of the encoding then finds ill-formed.

use std::io::{self, ErrorKind, Read, Write};

/// The order of the bytes of a code unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    fn unit(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    fn bytes(self, unit: u16) -> [u8; 2] {
        match self {
            Order::Little => unit.to_le_bytes(),
            Order::Big => unit.to_be_bytes(),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Order::Little => "utf-16le",
            Order::Big => "utf-16be",
        }
    }

    /// By the first four bytes of a document: its byte order mark, or JSON's first characters, which are ASCII.
    pub(super) fn sniff(head: &[u8]) -> Option<Order> {
        match head {
            [0xFF, 0xFE, 0, 0, ..] => None,
            [0xFF, 0xFE, ..] => Some(Order::Little),
            [0xFE, 0xFF, ..] => Some(Order::Big),
            [first, 0, second, 0, ..] if *first != 0 && *second != 0 => Some(Order::Little),
            [0, first, 0, second, ..] if *first != 0 && *second != 0 => Some(Order::Big),
            _ => None,
        }
    }
}

/// Reads UTF-16 as WTF-8, a byte order mark included. A last odd byte is left out.
pub(super) struct FromUtf16<R> {
    input: R,
    order: Order,
    text: Vec<u8>,
    given: usize,
    /// The high surrogate before the next unit.
    high: Option<u16>,
    odd: Option<u8>,
}

impl<R: Read> FromUtf16<R> {
    pub(super) fn new(input: R, order: Order) -> Self {
        FromUtf16 {
            input,
            order,
            text: Vec::new(),
            given: 0,
            high: None,
            odd: None,
        }
    }

    /// The last byte of the input, if it belongs to no unit.
    pub(super) fn odd_byte(&self) -> Option<u8> {
        self.odd
    }

    pub(super) fn get_ref(&self) -> &R {
        &self.input
    }

    fn refill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.given = 0;
        let mut bytes = [0; 16 << 10];
        let mut filled = 0;
        if let Some(odd) = self.odd.take() {
            bytes[0] = odd;
            filled = 1;
        }
        let read = loop {
            match self.input.read(&mut bytes[filled..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        filled += read;
        let (units, rest) = bytes[..filled].as_chunks::<2>();
        self.odd = rest.first().copied();
        for unit in units {
            self.push(self.order.unit(*unit));
        }
        if read == 0
            && let Some(high) = self.high.take()
        {
            push_surrogate(&mut self.text, high);
        }
        Ok(())
    }

    fn push(&mut self, unit: u16) {
        if let Some(high) = self.high.take() {
            if (0xDC00..0xE000).contains(&unit) {
                let code = 0x10000 + (u32::from(high) - 0xD800) * 0x400 + (u32::from(unit) - 0xDC00);
                push_code(&mut self.text, code);
                return;
            }
            push_surrogate(&mut self.text, high);
        }
        match unit {
            0xD800..0xDC00 => self.high = Some(unit),
            0xDC00..0xE000 => push_surrogate(&mut self.text, unit),
            _ => push_code(&mut self.text, u32::from(unit)),
        }
    }
}

fn push_code(text: &mut Vec<u8>, code: u32) {
    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

fn push_surrogate(text: &mut Vec<u8>, unit: u16) {
    text.extend_from_slice(&[
        0xE0 | (unit >> 12) as u8,
        0x80 | (unit >> 6 & 0x3F) as u8,
        0x80 | (unit & 0x3F) as u8,
    ]);
}

impl<R: Read> Read for FromUtf16<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() {
            let odd = self.odd;
            self.refill()?;
            if self.text.is_empty() && self.odd == odd && self.high.is_none() {
                return Ok(0);
            }
        }
        let length = out.len().min(self.text.len() - self.given);
        out[..length].copy_from_slice(&self.text[self.given..][..length]);
        self.given += length;
        Ok(length)
    }
}

/// Writes WTF-8 as UTF-16: what [`FromUtf16`] read, byte for byte.
pub(super) struct ToUtf16<W> {
    output: W,
    order: Order,
    /// The bytes of a character whose end is still to come.
    cut: Vec<u8>,
}

impl<W: Write> ToUtf16<W> {
    pub(super) fn new(output: W, order: Order) -> Self {
        ToUtf16 {
            output,
            order,
            cut: Vec::new(),
        }
    }

    /// Writes the last odd byte, if there is one. Fails if a character is not complete.
    pub(super) fn finish(mut self, odd: Option<u8>) -> io::Result<W> {
        if !self.cut.is_empty() {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the text ends inside a character",
            ));
        }
        self.output.write_all(odd.as_slice())?;
        self.output.flush()?;
        Ok(self.output)
    }
}

impl<W: Write> Write for ToUtf16<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut units = Vec::with_capacity(text.len() * 2);
        for &byte in text {
            self.cut.push(byte);
            let needed = match self.cut[0] {
                0..0x80 => 1,
                0xC0..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0..0xF8 => 4,
                _ => return Err(io::Error::new(ErrorKind::InvalidData, "the text is no UTF-8")),
            };
            if self.cut.len() < needed {
                continue;
            }
            let lead = u32::from(self.cut[0]) & (0x7F >> if needed == 1 { 0 } else { needed });
            let code = self.cut[1..]
                .iter()
                .fold(lead, |code, byte| code << 6 | u32::from(byte & 0x3F));
            self.cut.clear();
            match u16::try_from(code) {
                Ok(unit) => units.extend_from_slice(&self.order.bytes(unit)),
                Err(_) => {
                    let above = code - 0x10000;
                    units.extend_from_slice(&self.order.bytes(0xD800 + (above >> 10) as u16));
                    units.extend_from_slice(&self.order.bytes(0xDC00 + (above & 0x3FF) as u16));
                }
            }
        }
        self.output.write_all(&units)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_come_back(data in prop::collection::vec(any::<u8>(), 0..200), big: bool) {
            let order = if big { Order::Big } else { Order::Little };
            let mut reader = FromUtf16::new(&data[..], order);
            let mut text = Vec::new();
            reader.read_to_end(&mut text).unwrap();
            let odd = reader.odd_byte();
            let mut writer = ToUtf16::new(Vec::new(), order);
            for piece in text.chunks(3) {
                writer.write_all(piece).unwrap();
            }
            prop_assert_eq!(writer.finish(odd).unwrap(), data);
        }

        #[test]
        fn text_is_utf8(text in ".{0,80}", big: bool) {
            let order = if big { Order::Big } else { Order::Little };
            let bytes: Vec<u8> = text.encode_utf16().flat_map(|unit| order.bytes(unit)).collect();
            let mut read = String::new();
            FromUtf16::new(&bytes[..], order).read_to_string(&mut read).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}
