//! Text for people: names and messages may hold anything, a terminal must not act on it.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

pub use crate::visible::printable;

/// An error's text on one line, safe to print.
pub fn one_line(text: &str) -> String {
    let joined = text
        .split('\n')
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    printable(&joined)
}

/// `1 trace`, `2 traces`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

/// A progress bar on standard error, if that is a terminal and the user did not ask for quiet.
pub fn progress_bar(quiet: bool, verb: &'static str) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {elapsed}");
    ProgressBar::new(0)
        .with_prefix(verb)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_printed_steers_a_terminal() {
        assert_eq!(one_line("first\n\n  second\tthird"), "first second\\tthird");
    }
}
