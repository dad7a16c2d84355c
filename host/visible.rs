//! Characters that a reader cannot see, or that act on whatever shows them: names and messages may hold anything.

/// Whether `c` could steer a terminal, reorder or hide what is read: control characters, and what Unicode calls bidirectional
/// controls (UAX 9), line and paragraph separators, and default-ignorable format characters.
pub fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` with each such character shown as an escape: `\n`, `\u{202e}`.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_steering(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_shown_steers() {
        assert_eq!(
            printable("rank\u{1b}[31m\n\u{202e}模型\u{200b}\u{e0041}"),
            "rank\\u{1b}[31m\\n\\u{202e}模型\\u{200b}\\u{e0041}"
        );
    }
}
