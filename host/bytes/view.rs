//! The part of an input that lies in memory, and its white space.

/// The part of the window a walk may look at.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub bytes: &'a [u8],
    /// Offset in the input of the first byte.
    pub origin: u64,
}

impl<'a> View<'a> {
    pub(super) fn slice(&self, from: u64, to: u64) -> Option<&'a [u8]> {
        let from = from.checked_sub(self.origin)? as usize;
        self.bytes.get(from..(to - self.origin) as usize)
    }
}

/// The white space of RFC 8259, section 2.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// `text` without the white space at its start.
pub(super) fn after_space(text: &[u8]) -> &[u8] {
    &text[text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len())..]
}
