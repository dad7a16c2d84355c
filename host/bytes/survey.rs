//! Two questions about a text, answered in one pass at the speed of memory.

/// Whether a text is ASCII, and how many newlines it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Survey {
    pub ascii: bool,
    pub newlines: u64,
}

pub(super) fn survey(text: &[u8]) -> Survey {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the feature the function is compiled for.
        return unsafe { survey_avx2(text) };
    }
    run(text)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn survey_avx2(text: &[u8]) -> Survey {
    run(text)
}

const LANES: usize = 128;

/// Written so that the compiler makes vectors of the lanes, as wide as the function that it is inlined into allows.
#[inline(always)]
fn run(text: &[u8]) -> Survey {
    let mut all = 0;
    let mut newlines = 0;
    let (blocks, rest) = text.as_chunks::<LANES>();
    // No more blocks at a time than a lane of one byte can count.
    for blocks in blocks.chunks(255) {
        let mut bits = [0u8; LANES];
        let mut counts = [0u8; LANES];
        for block in blocks {
            for lane in 0..LANES {
                bits[lane] |= block[lane];
                counts[lane] += u8::from(block[lane] == b'\n');
            }
        }
        all |= bits.iter().fold(0, |all, bits| all | bits);
        newlines += counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    }
    for &byte in rest {
        all |= byte;
        newlines += u64::from(byte == b'\n');
    }
    Survey {
        ascii: all < 0x80,
        newlines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn surveys_say_what_is_there(text in prop::collection::vec(prop::sample::select(vec![b'a', b'\n', 0x7F, 0x80]), 0..700), repeats in 1usize..200) {
            let text = text.repeat(repeats);
            let newlines = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
            let expected = Survey { ascii: text.is_ascii(), newlines };
            prop_assert_eq!(survey(&text), expected);
            prop_assert_eq!(run(&text), expected);
        }
    }
}
