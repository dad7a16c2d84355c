//! Words in the place of a value: what C, C++ and Python print where JSON has no word for it.

/// What a bare word becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// NaN or an infinity.
    NonFinite,
    /// A number, in RFC 8259's spelling, every digit kept.
    Number(Vec<u8>),
    /// The word as a JSON string, with its quotes.
    Other(Vec<u8>),
}

/// None for what is no word: control characters, backslashes, and strings in the quotes of another language.
pub(super) fn word(text: &[u8]) -> Option<Word> {
    if text
        .iter()
        .any(|byte| byte.is_ascii_control() || b"\\'`".contains(byte))
    {
        return None;
    }
    if is_non_finite(text) {
        return Some(Word::NonFinite);
    }
    if let Some(number) = respelled(text) {
        return Some(Word::Number(number));
    }
    let text = String::from_utf8_lossy(text);
    Some(Word::Other([b"\"", text.as_bytes(), b"\""].concat()))
}

/// `nan`, `-nan(ind)`, `inf`, `Infinity`, `1.#QNAN`, in any case: glibc's, Microsoft's, Python's and JavaScript's.
fn is_non_finite(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let unsigned = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(&text);
    let nan = unsigned
        .strip_prefix(b"nan")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"(") && rest.ends_with(b")"));
    let microsoft = unsigned.strip_prefix(b"1.#").is_some_and(|rest| {
        [b"inf".as_slice(), b"ind", b"qnan", b"snan"].iter().any(|name| {
            rest.strip_prefix(*name)
                .is_some_and(|digits| digits.iter().all(|&byte| byte == b'0'))
        })
    });
    nan || microsoft || unsigned == b"inf" || unsigned == b"infinity"
}

/// `+1`, `.5` and `5.` as `1`, `0.5` and `5.0`.
fn respelled(text: &[u8]) -> Option<Vec<u8>> {
    let (sign, rest): (&[u8], _) = match text {
        [b'+', rest @ ..] => (b"", rest),
        [b'-', rest @ ..] => (b"-", rest),
        rest => (b"", rest),
    };
    let exponent_at = rest.iter().position(|byte| byte | 0x20 == b'e').unwrap_or(rest.len());
    let (mantissa, exponent) = rest.split_at(exponent_at);
    let point = mantissa.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&mantissa[..point], Some(&mantissa[point + 1..])),
        None => (mantissa, None),
    };
    if whole.is_empty() && fraction.is_none_or(<[u8]>::is_empty) {
        return None;
    }
    let mut number = sign.to_vec();
    number.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    if let Some(fraction) = fraction {
        number.push(b'.');
        number.extend_from_slice(if fraction.is_empty() { b"0" } else { fraction });
    }
    number.extend_from_slice(exponent);
    // The grammar has the last word, and serde_json refuses numbers that doubles cannot hold.
    serde_json::from_slice::<serde_json::Number>(&number)
        .is_ok()
        .then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_no_number_are_null() {
        for text in [
            "nan",
            "-nan",
            "NaN",
            "nan(0x8000000000000)",
            "-nan(ind)",
            "inf",
            "+inf",
            "-Infinity",
            "1.#QNAN",
            "-1.#IND00",
        ] {
            assert_eq!(word(text.as_bytes()), Some(Word::NonFinite), "{text}");
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        let number = |text: &str| match word(text.as_bytes()) {
            Some(Word::Number(number)) => String::from_utf8(number).unwrap(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(number("+1724300000123456.789"), "1724300000123456.789");
        assert_eq!(number(".5"), "0.5");
        assert_eq!(number("-.50e-3"), "-0.50e-3");
        assert_eq!(number("5."), "5.0");
    }

    #[test]
    fn all_other_words_are_strings() {
        for text in [
            "N/A",
            "ncclFloat32",
            "0x7f12d00",
            "007",
            "nanosleep",
            "infinite",
            "True",
            "12ms",
            "1.2.3",
            "+",
            ".",
        ] {
            assert_eq!(
                word(text.as_bytes()),
                Some(Word::Other(format!("\"{text}\"").into_bytes())),
                "{text}"
            );
        }
        assert_eq!(word(b"a\xFFb"), Some(Word::Other("\"a\u{FFFD}b\"".into())));
        assert_eq!(word(b"a\\b"), None);
        assert_eq!(word(b"a\x01"), None);
        assert_eq!(word(b"'a'"), None);
    }
}
