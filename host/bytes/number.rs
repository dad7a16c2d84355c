//! Numbers of RFC 8259, section 6.

/// A number that follows the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    /// Where it ends.
    pub end: usize,
    pub size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Ordinary,
    /// An integer that a signed 64-bit integer cannot hold, but an unsigned one can.
    BeyondI64,
    /// An integer that no 64-bit integer can hold.
    BeyondU64,
    /// No double comes near it: readers make infinity of it, or refuse it (facts/tracelens.md section 3 d).
    Infinite,
}

/// The number that starts at `at` and ends with its scalar; none if the bytes there are something else.
#[inline(always)]
pub(super) fn number(data: &[u8], at: usize) -> Option<Number> {
    let negative = data[at] == b'-';
    let start = at + usize::from(negative);
    let end = digits(data, start);
    let length = end - start;
    if length == 0 || length > 1 && data[start] == b'0' {
        return None;
    }
    let next = *data.get(end)?;
    if ends_scalar(next) && length < 19 {
        return Some(Number {
            end,
            size: Size::Ordinary,
        });
    }
    rest(data, at, start, end)
}

/// The less usual: fractions, exponents, many digits.
fn rest(data: &[u8], at: usize, start: usize, whole: usize) -> Option<Number> {
    let mut end = whole;
    let mut next = *data.get(end)?;
    if ends_scalar(next) {
        return Some(Number {
            end,
            size: size_of_integer(&data[start..end], start > at),
        });
    }
    if next == b'.' {
        end = digits(data, whole + 1);
        if end == whole + 1 {
            return None;
        }
        next = *data.get(end)?;
    }
    let scaled = next | 0x20 == b'e';
    if scaled {
        let sign = usize::from(matches!(data.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        end = digits(data, exponent);
        if end == exponent {
            return None;
        }
        next = *data.get(end)?;
    }
    if !ends_scalar(next) {
        return None;
    }
    let infinite = (scaled || whole - start > 308) && is_infinite(&data[at..end]);
    Some(Number {
        end,
        size: if infinite { Size::Infinite } else { Size::Ordinary },
    })
}

fn size_of_integer(digits: &[u8], negative: bool) -> Size {
    let i64_limit: &[u8] = if negative {
        b"9223372036854775808"
    } else {
        b"9223372036854775807"
    };
    let fits = |limit: &[u8]| digits.len() < limit.len() || digits.len() == limit.len() && digits <= limit;
    if fits(i64_limit) {
        Size::Ordinary
    } else if !negative && fits(b"18446744073709551615") {
        Size::BeyondI64
    } else if digits.len() > 308 && is_infinite(digits) {
        Size::Infinite
    } else {
        Size::BeyondU64
    }
}

fn is_infinite(number: &[u8]) -> bool {
    std::str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .is_some_and(f64::is_infinite)
}

/// Where the run of digits that starts at `at` ends: eight bytes at a time.
#[inline(always)]
fn digits(data: &[u8], mut at: usize) -> usize {
    while let Some(eight) = data.get(at..at + 8) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(eight);
        // A digit becomes 0 to 9; adding 0x76 sets the top bit of everything above. What a byte carries over spoils
        // only the bytes after it, and the first is all that counts.
        let values = u64::from_le_bytes(bytes) ^ 0x3030_3030_3030_3030;
        let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
        if others != 0 {
            return at + (others.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at + data[at.min(data.len())..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

/// Whether a scalar that reaches this byte ends before it: white space, an operator or a quote.
#[inline(always)]
pub(super) fn ends_scalar(byte: u8) -> bool {
    const ENDS: [bool; 256] = {
        let mut table = [false; 256];
        let ends = b" \t\n\r{}[]:,\"";
        let mut at = 0;
        while at < ends.len() {
            table[ends[at] as usize] = true;
            at += 1;
        }
        table
    };
    ENDS[byte as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Size> {
        let padded = format!("{text}{}", " ".repeat(64));
        let number = number(padded.as_bytes(), 0)?;
        (number.end == text.len()).then_some(number.size)
    }

    #[test]
    fn numbers_follow_the_grammar() {
        for good in [
            "0",
            "-0",
            "1",
            "12345678",
            "123456789",
            "10.5",
            "0.1",
            "-1e5",
            "1E+5",
            "1e-06",
            "1724300000123456.789",
        ] {
            assert_eq!(read(good), Some(Size::Ordinary), "{good}");
        }
        for bad in [
            "-", "01", "-01", "1.", ".5", "+1", "1e", "1e+", "1.e5", "0x10", "1_000", "1a", "--1", "1.2.3", "00", "1-1",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_told_apart() {
        assert_eq!(read("9223372036854775807"), Some(Size::Ordinary));
        assert_eq!(read("-9223372036854775808"), Some(Size::Ordinary));
        assert_eq!(read("9223372036854775808"), Some(Size::BeyondI64));
        assert_eq!(read("18446744073709551615"), Some(Size::BeyondI64));
        assert_eq!(read("18446744073709551616"), Some(Size::BeyondU64));
        assert_eq!(read("-9223372036854775809"), Some(Size::BeyondU64));
        assert_eq!(read("1e400"), Some(Size::Infinite));
        assert_eq!(read("-1e400"), Some(Size::Infinite));
        assert_eq!(read(&"9".repeat(400)), Some(Size::Infinite));
        assert_eq!(read(&format!("{}.5", "9".repeat(400))), Some(Size::Infinite));
        assert_eq!(read(&"9".repeat(308)), Some(Size::BeyondU64));
        assert_eq!(read("1e-400"), Some(Size::Ordinary));
    }

    #[test]
    fn a_number_is_read_to_the_last_byte_of_its_data() {
        assert_eq!(
            number(b"123,", 0),
            Some(Number {
                end: 3,
                size: Size::Ordinary
            })
        );
        assert_eq!(number(b"123", 0), None);
    }
}
