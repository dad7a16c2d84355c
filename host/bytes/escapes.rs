//! Escapes of RFC 8259, section 7, and what passes for them.

/// What a backslash in a string begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    Plain,
    /// A control character, in so many bytes, that spreadsheets cannot hold (facts/tracelens.md section 3 e): all but tab,
    /// newline and carriage return.
    Control(usize),
    /// A high surrogate and the low one that belongs to it: 12 bytes.
    Pair,
    /// Half of a pair: 6 bytes.
    LoneSurrogate,
    Illegal,
}

/// What the backslash at the start of `data` begins.
pub(super) fn escape(data: &[u8]) -> Escape {
    let unit = |data: &[u8]| -> Option<u32> {
        let digits = data.strip_prefix(b"\\u")?.get(..4)?;
        digits
            .iter()
            .try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
    };
    match data.get(1) {
        Some(b'"' | b'\\' | b'/' | b'n' | b'r' | b't') => Escape::Plain,
        Some(b'b' | b'f') => Escape::Control(2),
        Some(b'u') => match unit(data) {
            None => Escape::Illegal,
            Some(0x09 | 0x0A | 0x0D) => Escape::Plain,
            Some(..0x20) => Escape::Control(6),
            Some(0xD800..0xDC00) => match unit(&data[6..]) {
                Some(0xDC00..0xE000) => Escape::Pair,
                _ => Escape::LoneSurrogate,
            },
            Some(0xDC00..0xE000) => Escape::LoneSurrogate,
            Some(_) => Escape::Plain,
        },
        _ => Escape::Illegal,
    }
}
