//! Where JSON's structure lies, found 64 bytes at a time.
//!
//! The technique is that of simdjson (Langdale and Lemire, "Parsing Gigabytes of JSON per Second", 2019): bit masks of quotes,
//! backslashes and operators, a prefix XOR that tells the inside of strings from the outside, and from these the positions
//! that a grammar has to look at. Everything between two positions is the inside of a string, white space or the rest of a
//! scalar.

/// What one block leaves for the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carry {
    /// All ones if the block ended inside a string.
    in_string: u64,
    /// 1 if the block ended with a backslash that escapes the next byte.
    escaped: u64,
    /// 1 if the block ended inside a scalar (a number, a literal, a bare word).
    scalar: u64,
}

impl Carry {
    /// The carry of a place inside a string, outside an escape.
    pub(super) fn inside_string() -> Carry {
        Carry {
            in_string: u64::MAX,
            ..Carry::default()
        }
    }
}

/// One bit for each of 64 bytes.
#[derive(Clone, Copy, Default)]
struct Masks {
    quote: u64,
    backslash: u64,
    /// Bytes below 0x20.
    control: u64,
    /// `{ } [ ] : ,` and, harmlessly, the control bytes 0x0C and 0x1A (the grammar looks at the byte itself).
    operator: u64,
    /// Space, tab, newline, carriage return.
    space: u64,
}

const BLOCK: usize = 64;

/// Fills `positions` with the places in `data[..length]` that a JSON grammar must look at, relative to the start of `data`:
/// both quotes of each string, operators outside strings, the first byte of each scalar, and inside strings each control byte
/// and each backslash that starts an escape.
///
/// `positions` must hold at least `length` + 64 entries; the number of entries filled is returned.
pub(super) fn index(data: &[u8], length: usize, carry: &mut Carry, positions: &mut [u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if x86::is_supported() {
        // SAFETY: the processor has the features the function is compiled for.
        return unsafe { x86::index(data, length, carry, positions) };
    }
    run(data, length, carry, positions, classify, prefix_xor)
}

#[inline(always)]
fn run(
    data: &[u8],
    length: usize,
    carry: &mut Carry,
    positions: &mut [u32],
    classify: impl Fn(&[u8; BLOCK]) -> Masks,
    prefix_xor: impl Fn(u64) -> u64,
) -> usize {
    let data = &data[..length];
    let mut state = *carry;
    let mut filled = 0;
    let (blocks, rest) = data.as_chunks::<BLOCK>();
    for (number, block) in blocks.iter().enumerate() {
        let wanted = wanted(classify(block), &mut state, BLOCK, &prefix_xor);
        filled = write((number * BLOCK) as u32, wanted, positions, filled);
    }
    if !rest.is_empty() {
        let mut block = [b' '; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        let wanted = wanted(classify(&block), &mut state, rest.len(), &prefix_xor);
        filled = write((blocks.len() * BLOCK) as u32, wanted, positions, filled);
    }
    *carry = state;
    filled
}

/// The bits of a block that the grammar must look at; `used` is how many of its bytes are data, the others being padding.
#[inline(always)]
fn wanted(masks: Masks, carry: &mut Carry, used: usize, prefix_xor: &impl Fn(u64) -> u64) -> u64 {
    let (escape, escaped, next_escaped) = escapes(masks.backslash, carry.escaped, used);
    let quotes = masks.quote & !escaped;
    let in_string = prefix_xor(quotes) ^ carry.in_string;
    let outside = !(in_string | quotes);
    let scalar = outside & !(masks.operator | masks.space);
    let scalar_start = scalar & !(scalar << 1 | carry.scalar);
    *carry = Carry {
        in_string: ((in_string as i64) >> 63) as u64,
        escaped: next_escaped,
        scalar: scalar >> (used - 1) & 1,
    };
    quotes | outside & masks.operator | scalar_start | in_string & (masks.control | escape)
}

/// Which backslashes start an escape, which bytes are escaped, and whether the byte after the block is.
#[inline(always)]
fn escapes(backslash: u64, escaped_first: u64, used: usize) -> (u64, u64, u64) {
    if backslash == 0 {
        return (0, escaped_first, 0);
    }
    const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let potential = backslash & !escaped_first;
    let maybe_escaped = potential << 1;
    let series = (maybe_escaped | ODD).wrapping_sub(potential);
    let escape_and_terminal = series ^ ODD;
    let escaped = escape_and_terminal ^ (backslash | escaped_first);
    let escape = escape_and_terminal & backslash;
    (escape, escaped, escape >> (used - 1) & 1)
}

/// Each bit the XOR of itself and all below: of quotes, the inside of strings.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^ bits << 32
}

/// Appends the set bits of a block. Eight are written at a time, whether there are eight or not: a loop with one exit that
/// the processor predicts well.
#[inline(always)]
fn write(base: u32, mut bits: u64, positions: &mut [u32], filled: usize) -> usize {
    let count = bits.count_ones() as usize;
    let mut at = filled;
    while bits != 0 {
        let eight: &mut [u32] = &mut positions[at..at + 8];
        for slot in eight {
            *slot = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
        }
        at += 8;
    }
    filled + count
}

/// The masks of a block on any processor.
fn classify(block: &[u8; BLOCK]) -> Masks {
    let mut masks = Masks::default();
    for (place, &byte) in block.iter().enumerate() {
        let bit = 1u64 << place;
        match byte {
            b'"' => masks.quote |= bit,
            b'\\' => masks.backslash |= bit,
            b'{' | b'}' | b'[' | b']' | b':' | b',' => masks.operator |= bit,
            b' ' => masks.space |= bit,
            b'\t' | b'\n' | b'\r' => {
                masks.space |= bit;
                masks.control |= bit;
            }
            0..0x20 => masks.control |= bit,
            _ => {}
        }
    }
    masks
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{BLOCK, Carry, Masks};
    use std::arch::is_x86_feature_detected;
    use std::arch::x86_64::*;

    pub(super) fn is_supported() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq")
    }

    #[target_feature(enable = "avx2,bmi1,popcnt,pclmulqdq")]
    pub(super) fn index(data: &[u8], length: usize, carry: &mut Carry, positions: &mut [u32]) -> usize {
        super::run(
            data,
            length,
            carry,
            positions,
            |block| classify(block),
            |bits| prefix_xor(bits),
        )
    }

    /// A product without carries by all ones.
    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    fn prefix_xor(bits: u64) -> u64 {
        let product = _mm_clmulepi64_si128(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1), 0);
        _mm_cvtsi128_si64(product) as u64
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn classify(block: &[u8; BLOCK]) -> Masks {
        // SAFETY: both loads lie within the 64 bytes of the block; loadu asks for no alignment.
        let (low, high) = unsafe {
            (
                _mm256_loadu_si256(block.as_ptr().cast()),
                _mm256_loadu_si256(block.as_ptr().add(32).cast()),
            )
        };
        // Indexed by the low four bits of a byte. Operators: `[` and `]` differ from `{` and `}` in 0x20 alone.
        let operators = _mm256_setr_epi8(
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3A, 0x7B, 0x2C, 0x7D, 0, 0, //
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3A, 0x7B, 0x2C, 0x7D, 0, 0,
        );
        let spaces = _mm256_setr_epi8(
            0x20, 100, 100, 100, 17, 100, 113, 2, 100, 0x09, 0x0A, 112, 100, 0x0D, 100, 100, //
            0x20, 100, 100, 100, 17, 100, 113, 2, 100, 0x09, 0x0A, 112, 100, 0x0D, 100, 100,
        );
        let bits = |low: __m256i, high: __m256i| {
            u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
        };
        let equal = |byte: u8| {
            let byte = _mm256_set1_epi8(byte as i8);
            bits(_mm256_cmpeq_epi8(low, byte), _mm256_cmpeq_epi8(high, byte))
        };
        let limit = _mm256_set1_epi8(0x1F);
        let case = _mm256_set1_epi8(0x20);
        Masks {
            quote: equal(b'"'),
            backslash: equal(b'\\'),
            control: bits(
                _mm256_cmpeq_epi8(_mm256_min_epu8(low, limit), low),
                _mm256_cmpeq_epi8(_mm256_min_epu8(high, limit), high),
            ),
            operator: bits(
                _mm256_cmpeq_epi8(_mm256_shuffle_epi8(operators, low), _mm256_or_si256(low, case)),
                _mm256_cmpeq_epi8(_mm256_shuffle_epi8(operators, high), _mm256_or_si256(high, case)),
            ),
            space: bits(
                _mm256_cmpeq_epi8(_mm256_shuffle_epi8(spaces, low), low),
                _mm256_cmpeq_epi8(_mm256_shuffle_epi8(spaces, high), high),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, a byte at a time.
    fn reference(data: &[u8], inside: bool) -> Vec<u32> {
        let (mut inside, mut escaped, mut scalar) = (inside, false, false);
        let mut positions = Vec::new();
        for (at, &byte) in data.iter().enumerate() {
            let was_escaped = std::mem::take(&mut escaped);
            let was_scalar = std::mem::take(&mut scalar);
            escaped = byte == b'\\' && !was_escaped;
            if byte == b'"' && !was_escaped {
                inside = !inside;
                positions.push(at as u32);
            } else if inside {
                if byte < 0x20 || escaped {
                    positions.push(at as u32);
                }
            } else if matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',') {
                positions.push(at as u32);
            } else if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                scalar = true;
                if !was_scalar {
                    positions.push(at as u32);
                }
            }
        }
        positions
    }

    fn indexed(data: &[u8], inside: bool, pieces: &[usize], portable: bool) -> Vec<u32> {
        let mut carry = if inside {
            Carry::inside_string()
        } else {
            Carry::default()
        };
        let (mut all, mut start) = (Vec::new(), 0);
        let mut sizes = pieces.iter().cycle();
        while start < data.len() {
            let size = (*sizes.next().unwrap()).min(data.len() - start);
            let mut positions = vec![0; size + 64];
            let piece = &data[start..];
            let filled = if portable {
                run(piece, size, &mut carry, &mut positions, classify, prefix_xor)
            } else {
                index(piece, size, &mut carry, &mut positions)
            };
            all.extend(positions[..filled].iter().map(|at| at + start as u32));
            start += size;
        }
        all
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_are_indexed_as_defined(
            text in "[a\"\\\\{}\\[\\]:, \n\u{1}\u{e9}1]{0,400}",
            inside: bool,
            pieces in prop::collection::vec(1usize..200, 1..5),
        ) {
            let expected = reference(text.as_bytes(), inside);
            prop_assert_eq!(&indexed(text.as_bytes(), inside, &pieces, false), &expected);
            prop_assert_eq!(&indexed(text.as_bytes(), inside, &pieces, true), &expected);
        }
    }
}
