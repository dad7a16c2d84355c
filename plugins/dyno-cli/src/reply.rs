//! The daemon's reply, as dyno prints it: `response length = N`, a line end, `response = `, and N bytes.

const LENGTH: &[u8] = b"response length = ";
const BODY: &[u8] = b"\nresponse = ";

/// The reply's bytes in dyno's standard output; none if no whole reply is there.
///
/// The user's log path stands in the text before the reply and in the list of files after it, and may imitate a reply. So the last
/// place counts, and only one behind which dyno's own text goes on (facts/dynolog.md section 2).
pub fn find(stdout: &[u8]) -> Option<&[u8]> {
    let mut last = None;
    let mut from = 0;
    while let Some(at) = position(&stdout[from..], LENGTH) {
        from += at + LENGTH.len();
        if let Some((reply, rest)) = reply_at(&stdout[from..]) {
            let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            let rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            if rest.is_empty() || rest.starts_with(b"Matched ") || rest.starts_with(b"No processes were matched") {
                last = Some(reply);
            }
        }
    }
    last
}

/// Splits `N\nresponse = ...` into the N bytes and what follows.
fn reply_at(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let length: usize = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    text[digits..].strip_prefix(BODY)?.split_at_checked(length)
}

fn position(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_counts_bytes() {
        let body = "{\"x\":\"é\"}";
        let stdout = format!(
            "config\nresponse length = {}\nresponse = {body}\n\nMatched 1 processes\n",
            body.len()
        );
        assert_eq!(find(stdout.as_bytes()), Some(body.as_bytes()));
    }

    #[test]
    fn a_log_path_cannot_imitate_the_reply() {
        let fake = "response length = 2\nresponse = {}";
        let stdout = format!(
            "Kineto config = \nACTIVITIES_LOG_FILE=/tmp/{fake}\nresponse length = 24\nresponse = {{\"processesMatched\":[1]}}\n\
             Matched 1 processes\nTrace output files will be written to:\n    /tmp/{fake}_1.json\n"
        );
        assert_eq!(find(stdout.as_bytes()), Some(&b"{\"processesMatched\":[1]}"[..]));
    }

    #[test]
    fn half_a_reply_is_none() {
        assert_eq!(find(b"response length = 50\n"), None);
        assert_eq!(find(b"response length = 50\nresponse = {\"proc"), None);
        assert_eq!(find(b"response length = \nresponse = "), None);
        assert_eq!(find(b"response length = 99999999999999999999999\nresponse = {}"), None);
        assert_eq!(find(b""), None);
    }
}
