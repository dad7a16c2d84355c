//! dyno's own words for what went wrong, out of its standard error.

use dynolog::one_line;

/// The error that dyno reported, as one line: a panic's message without its place in the source, clap's `error:` paragraph, or
/// anyhow's `Error:` line; otherwise the first line that says anything.
pub fn own_words(stderr: &str) -> Option<String> {
    panic_message(stderr)
        .or_else(|| paragraph(stderr, "error:"))
        .or_else(|| paragraph(stderr, "Error:"))
        .or_else(|| stderr.lines().find(|line| !line.trim().is_empty()).map(one_line))
        .filter(|words| !words.is_empty())
}

/// `thread 'main' (1) panicked at src/main.rs:129:45:` and the message on the lines after it, or, as Rust before 1.73 wrote it,
/// `thread 'main' panicked at 'message', src/main.rs:129:45`.
fn panic_message(stderr: &str) -> Option<String> {
    let (_, panic) = stderr.split_once("panicked at ")?;
    let (place, message) = panic.split_once('\n').unwrap_or((panic, ""));
    match place.strip_prefix('\'').and_then(|quoted| quoted.rsplit_once("', ")) {
        Some((message, _)) => Some(one_line(message)),
        None => Some(one_line(&first_paragraph(message))),
    }
}

fn paragraph(stderr: &str, start: &str) -> Option<String> {
    let at = if stderr.starts_with(start) {
        0
    } else {
        stderr.find(&format!("\n{start}"))? + 1
    };
    Some(one_line(&first_paragraph(&stderr[at..])))
}

/// The lines up to an empty one or to Rust's hint about backtraces.
fn first_paragraph(text: &str) -> String {
    let lines = text
        .lines()
        .take_while(|line| !line.trim().is_empty() && !line.starts_with("note: run with"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_message() {
        let new = "\nthread 'main' (23238) panicked at src/main.rs:129:45:\nCouldn't connect to the server...: Connection refused \
                   (os error 111)\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        let old = "thread 'main' panicked at 'Couldn't connect to the server...: Connection refused (os error 111)', src/main.rs:9:5\n";
        let words = Some("Couldn't connect to the server...: Connection refused (os error 111)".to_string());
        assert_eq!(own_words(new), words);
        assert_eq!(own_words(old), words);
    }

    #[test]
    fn clap_keeps_the_arguments_that_it_names() {
        let stderr = "error: The following required arguments were not provided:\n    --log-file <LOG_FILE>\n\nUSAGE:\n    dyno\n";
        let words = "error: The following required arguments were not provided: --log-file <LOG_FILE>";
        assert_eq!(own_words(stderr), Some(words.to_string()));
    }

    #[test]
    fn anything_else_is_its_first_line() {
        assert_eq!(
            own_words("\n  bash: dyno: command not found\nmore\n"),
            Some("bash: dyno: command not found".into())
        );
        assert_eq!(
            own_words("warning: x\nError: no answer\n"),
            Some("Error: no answer".into())
        );
        assert_eq!(own_words(" \n\n"), None);
    }
}
