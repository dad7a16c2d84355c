//! Text for one line of a log.

/// Any text as one line of bounded length without control characters.
pub fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{} ...", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_bounded() {
        assert_eq!(one_line("a\u{1b}[31m\r\n\tb"), "a [31m b");
        let long = one_line(&"é".repeat(1000));
        assert_eq!(long.chars().count(), 304);
    }
}
