//! A name cut into words.

/// A maximal run of letters, or of ASCII digits, in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    /// The run itself.
    pub text: &'a str,
    /// Byte offset of its first character in the name.
    pub start: usize,
    /// Byte offset behind its last character.
    pub end: usize,
}

impl Word<'_> {
    /// Whether it is a run of digits.
    pub fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }
}

/// The words of `name`, in order. Whatever is neither letter nor digit stands between them.
pub fn words(name: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word> = Vec::new();
    let mut kind_before = None;
    for (at, c) in name.char_indices() {
        let kind = c.is_alphanumeric().then(|| c.is_ascii_digit());
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(word) if kind.is_some() && kind == kind_before => {
                word.end = end;
                word.text = &name[word.start..end];
            }
            _ if kind.is_some() => words.push(Word {
                text: &name[at..end],
                start: at,
                end,
            }),
            _ => {}
        }
        kind_before = kind;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_digits_part() {
        let texts = |name| words(name).iter().map(|word| word.text).collect::<Vec<_>>();
        assert_eq!(
            texts("dp0_spår-rank[12].json"),
            ["dp", "0", "spår", "rank", "12", "json"]
        );
        assert_eq!(texts("\u{fffd}\n\u{1b}[31m"), ["31", "m"]);
        assert_eq!(texts(""), [""; 0]);
        let word = words("a_bc")[1];
        assert_eq!((word.start, word.end, word.is_number()), (2, 4, false));
    }
}
