//! Numbers of a trace, exactly: Kineto writes microseconds as decimals (`1682725898083829.123`), which as doubles lose their
//! nanoseconds from 2^53 on, and add up to another sum in another order.

/// More digits than this say nothing that an `i64` of nanoseconds could hold.
const DIGITS: u32 = 30;

/// The JSON number in `text` times ten to the `power`, rounded to the nearest integer, halves away from zero. Converters write
/// numbers as strings too (facts/traces.md A63, A46): quotes around it do not matter. `None` for anything else and for what an
/// `i64` does not hold.
pub(super) fn scaled(text: &str, power: i64) -> Option<i64> {
    let text = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
        .trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() {
        return None;
    }
    let mut value: i128 = 0;
    let mut taken = 0;
    let mut shift = exponent.checked_add(power)?;
    for (position, digit) in whole.bytes().chain(fraction.bytes()).enumerate() {
        if !digit.is_ascii_digit() {
            return None;
        }
        if taken < DIGITS {
            value = value * 10 + i128::from(digit - b'0');
            taken += u32::from(value != 0);
            shift -= i64::from(position >= whole.len());
        } else {
            shift += i64::from(position < whole.len());
        }
    }
    let ten_to = |power: i64| 10_i128.checked_pow(u32::try_from(power).ok()?);
    let value = if value == 0 {
        0
    } else if shift >= 0 {
        value.checked_mul(ten_to(shift)?)?
    } else {
        match ten_to(-shift) {
            Some(divisor) => (value + divisor / 2) / divisor,
            None => 0,
        }
    };
    i64::try_from(if negative { -value } else { value }).ok()
}

/// The count in `text`: a number that is whole and not negative.
pub(super) fn count(text: &str) -> Option<u64> {
    u64::try_from(scaled(text, 0)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn microseconds_become_nanoseconds_exactly() {
        for (text, nanoseconds) in [
            ("3743411225132.752", Some(3_743_411_225_132_752)),
            ("1724300000123456.789", Some(1_724_300_000_123_456_789)),
            ("\"1724300000123456.789\"", Some(1_724_300_000_123_456_789)),
            ("2.4040000000000001", Some(2404)),
            ("0.0005", Some(1)),
            ("0.0004999999999999999999999999999999999999999", Some(0)),
            ("-1.5", Some(-1500)),
            ("1.5e3", Some(1_500_000)),
            ("15E-1", Some(1500)),
            ("0e999999999", Some(0)),
            ("9223372036854775.807", Some(i64::MAX)),
            ("9223372036854775.808", None),
            ("1e400", None),
            ("1e-400", Some(0)),
            ("null", None),
            ("", None),
            ("\"\"", None),
            ("\"12a\"", None),
            ("-", None),
            ("1.2.3", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(scaled(text, 3), nanoseconds, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_nanosecond_survives(nanoseconds in 0..i64::MAX) {
            let text = format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
            prop_assert_eq!(scaled(&text, 3), Some(nanoseconds));
            prop_assert_eq!(scaled(&nanoseconds.to_string(), 0), Some(nanoseconds));
        }

        #[test]
        fn any_text_is_a_number_or_none(text in "[-+.eE0-9\" ]{0,60}") {
            let _ = scaled(&text, 3);
        }
    }
}
