//! Ill-formed UTF-8, as the Unicode Standard counts it (chapter 3, "U+FFFD Substitution of Maximal Subparts"): the rule of
//! Rust's `String::from_utf8_lossy` and of Python's `errors="replace"`.

/// What stands in the place of one ill-formed sequence: U+FFFD in UTF-8.
pub(super) const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

/// Offset and length, both in bytes, of each ill-formed sequence of `data`, in order. A character that the end of `data`
/// cuts is one of them.
pub fn ill_formed(data: &[u8]) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some((at, length)) = first_ill_formed(data, from, true) {
        found.push((at as u64, length as u32));
        from = at + length;
    }
    found
}

/// `data` with U+FFFD for each ill-formed sequence.
pub fn repair(data: &[u8]) -> String {
    match simdutf8::basic::from_utf8(data) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(data).into_owned(),
    }
}

/// The first ill-formed sequence of `data` at or after `from` (a character boundary): where, and how many bytes.
/// Unless `complete`, a character that the end of `data` cuts is not ill-formed yet.
pub(super) fn first_ill_formed(data: &[u8], from: usize, complete: bool) -> Option<(usize, usize)> {
    let error = simdutf8::compat::from_utf8(&data[from..]).err()?;
    let at = from + error.valid_up_to();
    match error.error_len() {
        Some(length) => Some((at, length)),
        None if complete => Some((at, data.len() - at)),
        None => None,
    }
}

/// How many bytes at the end of `data` may belong to a character that goes on: 0 to 3.
pub(super) fn incomplete_tail(data: &[u8]) -> usize {
    for back in 1..=data.len().min(3) {
        let byte = data[data.len() - back];
        let needed = match byte {
            0x80..0xC0 => continue,
            0xC2..0xE0 => 2,
            0xE0..0xF0 => 3,
            0xF0..0xF5 => 4,
            _ => 0,
        };
        // A sequence that is ill-formed already is not cut: from_utf8 tells it from one that may go on.
        let open = needed > back
            && std::str::from_utf8(&data[data.len() - back..]).is_err_and(|error| error.error_len().is_none());
        return if open { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_character_is_one_sequence_and_a_surrogate_three() {
        assert_eq!(ill_formed(b"vecadd\xE2\x82\""), [(6, 2)]);
        assert_eq!(ill_formed(b"a\xED\xA0\x80b"), [(1, 1), (2, 1), (3, 1)]);
        assert_eq!(ill_formed(b"\x90\xD5\x8B\xA8U"), [(0, 1), (3, 1)]);
        assert_eq!(ill_formed("caf\u{e9}".as_bytes()), []);
        assert_eq!(ill_formed(b"caf\xC3"), [(3, 1)]);
    }

    #[test]
    fn only_an_unfinished_character_is_an_incomplete_tail() {
        assert_eq!(incomplete_tail(b""), 0);
        assert_eq!(incomplete_tail(b"a"), 0);
        assert_eq!(incomplete_tail("\u{1F600}".as_bytes()), 0);
        assert_eq!(incomplete_tail(b"a\xF0\x9F\x98"), 3);
        assert_eq!(incomplete_tail(b"a\xF0\x9F"), 2);
        assert_eq!(incomplete_tail(b"a\xE2"), 1);
        assert_eq!(incomplete_tail(b"a\xED\xA0"), 0);
        assert_eq!(incomplete_tail(b"a\xFF"), 0);
        assert_eq!(incomplete_tail(b"\x80\x80\x80"), 0);
    }

    proptest! {
        #[test]
        fn replacing_what_is_ill_formed_is_from_utf8_lossy(data in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut replaced = Vec::new();
            let mut from = 0;
            for (at, length) in ill_formed(&data) {
                replaced.extend_from_slice(&data[from..at as usize]);
                replaced.extend_from_slice(REPLACEMENT);
                from = at as usize + length as usize;
            }
            replaced.extend_from_slice(&data[from..]);
            let expected = String::from_utf8_lossy(&data);
            prop_assert_eq!(replaced.as_slice(), expected.as_bytes());
            prop_assert_eq!(repair(&data), expected);
        }
    }
}
