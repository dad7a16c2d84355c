//! Text for the page: whatever comes from traces, names, plugins and programs is escaped here, and nowhere else.

use std::fmt::{self, Write};
use std::ops::Range;
use std::path::{Component, Path};
use std::time::{Duration, UNIX_EPOCH};

use askama::filters::HtmlSafe;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::visible::is_steering;

/// Text that may hold anything, as HTML: markup escaped, and characters that nobody can see or that reorder what is read shown as
/// marked escapes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shown(pub(super) String);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                c if is_steering(c) => write!(f, "<i>{}</i>", c.escape_default())?,
                c => escape(f, c)?,
            }
        }
        Ok(())
    }
}

impl HtmlSafe for Shown {}

impl<T: Into<String>> From<T> for Shown {
    fn from(text: T) -> Self {
        Shown(text.into())
    }
}

/// The same for places where no markup can stand: attributes, and the titles of pictures.
pub(super) fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in crate::visible::printable(text).chars() {
        // Writing into a string cannot fail.
        let _ = escape(&mut escaped, c);
    }
    escaped
}

fn escape(out: &mut impl Write, c: char) -> fmt::Result {
    match c {
        '&' => out.write_str("&amp;"),
        '<' => out.write_str("&lt;"),
        '>' => out.write_str("&gt;"),
        '"' => out.write_str("&quot;"),
        '\'' => out.write_str("&#39;"),
        c => out.write_char(c),
    }
}

/// Names longer than this many characters are shown without their middle.
const LONGEST_NAME: usize = 220;

/// A name to be shown: a very long one without its middle, and how much that is.
pub(super) fn name(text: &str) -> Shown {
    let characters = text.chars().count();
    if characters <= LONGEST_NAME {
        return text.into();
    }
    let (head, tail) = (LONGEST_NAME * 2 / 3, LONGEST_NAME / 3);
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(characters - tail).collect();
    Shown(format!(
        "{first} … {} more characters … {last}",
        characters - head - tail
    ))
}

/// Bytes of a trace as HTML: text where they are text, two hexadecimal digits where they are not. The ranges `marked`, ascending,
/// are damage.
pub(super) fn bytes(bytes: &[u8], marked: &[Range<usize>]) -> String {
    let (mut html, mut at) = (String::new(), 0);
    for range in marked {
        let (start, end) = (range.start.clamp(at, bytes.len()), range.end.clamp(at, bytes.len()));
        append_bytes(&mut html, &bytes[at..start]);
        html.push_str("<mark>");
        append_bytes(&mut html, &bytes[start..end.max(start)]);
        html.push_str("</mark>");
        at = end.max(start);
    }
    append_bytes(&mut html, &bytes[at..]);
    html
}

fn append_bytes(html: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        let _ = write!(html, "{}", Shown(chunk.valid().to_owned()));
        for byte in chunk.invalid() {
            let _ = write!(html, "<b>{byte:02x}</b>");
        }
    }
}

/// What may stand unescaped in a relative address (RFC 3986, unreserved).
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of `file` seen from a page in `folder`, both absolute: relative, every byte but plain letters, digits and `-._~`
/// percent-encoded. None where one cannot be reached from the other.
pub(super) fn relative_address(folder: &Path, file: &Path) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    let (mut from, mut to) = (folder.components().peekable(), file.components().peekable());
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let mut parts = Vec::new();
    for part in from {
        match part {
            Component::Normal(_) => parts.push("..".to_owned()),
            _ => return None,
        }
    }
    for part in to {
        match part {
            Component::Normal(name) => parts.push(percent_encode(name.as_bytes(), KEPT).to_string()),
            _ => return None,
        }
    }
    // A first part such as `a:b` is no scheme, since the colon is encoded.
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// A size in bytes for people, in powers of 1,000.
pub(super) fn size(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ if value < 9.995 => format!("{value:.2} {}", units[unit]),
        _ if value < 99.95 => format!("{value:.1} {}", units[unit]),
        _ => format!("{value:.0} {}", units[unit]),
    }
}

/// A time in nanoseconds for people.
pub(super) fn duration(nanoseconds: f64) -> String {
    let (value, unit) = match nanoseconds {
        n if n < 999.5 => (n, "ns"),
        n if n < 999.5e3 => (n / 1e3, "µs"),
        n if n < 999.5e6 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    match value {
        v if v < 9.995 => format!("{v:.2} {unit}"),
        v if v < 99.95 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}

/// A count with commas between groups of three digits.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds since 1970 as a date and time, UTC: `2026-11-30 07:15`.
pub(super) fn date(seconds: u64) -> String {
    // Nothing after the year 9999 can be written so.
    let at = UNIX_EPOCH + Duration::from_secs(seconds.min(253_402_300_799));
    let text = humantime::format_rfc3339_seconds(at).to_string();
    text[..16].replace('T', " ")
}

/// A word of a command for a POSIX shell, quoted where that is needed; what cannot be seen, and bytes that are no UTF-8, as
/// `$'\xff'`, which bash, zsh, ksh and POSIX 2024 understand.
pub(super) fn shell_word(word: &[u8]) -> String {
    let text = std::str::from_utf8(word)
        .ok()
        .filter(|text| !text.chars().any(is_steering));
    let is_bare = |text: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte))
    };
    match text {
        Some(text) if is_bare(text) => text.to_owned(),
        // A path that begins with a dash would be an option.
        Some(text) => format!(
            "'{}{}'",
            if text.starts_with('-') { "./" } else { "" },
            text.replace('\'', "'\\''")
        ),
        None => {
            let mut quoted = "$'".to_owned();
            for &byte in word {
                match byte {
                    b'\'' | b'\\' => quoted.extend(['\\', byte as char]),
                    b' '..=b'~' => quoted.push(byte as char),
                    _ => {
                        let _ = write!(quoted, "\\x{byte:02x}");
                    }
                }
            }
            quoted + "'"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_no_markup_and_steers_nothing() {
        let hostile = "<script>\"'&\u{202e}\u{7}</script>";
        assert_eq!(
            Shown::from(hostile).to_string(),
            "&lt;script&gt;&quot;&#39;&amp;<i>\\u{202e}</i><i>\\u{7}</i>&lt;/script&gt;"
        );
        assert_eq!(
            plain(hostile),
            "&lt;script&gt;&quot;&#39;&amp;\\u{202e}\\u{7}&lt;/script&gt;"
        );
        assert_eq!(
            bytes(b"a<\xff\xfeb\x00", &[2..3, 3..4]),
            "a&lt;<mark><b>ff</b></mark><mark><b>fe</b></mark>b<i>\\u{0}</i>"
        );
        assert_eq!(bytes(b"cut", std::slice::from_ref(&(3..3))), "cut<mark></mark>");
    }

    #[test]
    fn long_names_lose_their_middle() {
        let shown = name(&"é".repeat(4096)).0;
        assert!(shown.contains("3877 more characters"), "{shown}");
        assert!(shown.chars().count() < 260);
        assert_eq!(name("kernel").0, "kernel");
    }

    #[test]
    fn addresses_are_relative_and_encoded() {
        let address = |folder, file| relative_address(Path::new(folder), Path::new(file));
        assert_eq!(
            address("/out", "/out/a b/c#?.csv").as_deref(),
            Some("a%20b/c%23%3F.csv")
        );
        assert_eq!(
            address("/out/x", "/out/javascript:y").as_deref(),
            Some("../javascript%3Ay")
        );
        assert_eq!(address("/out", "/out"), None);
    }

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(shell_word(b"runs/a.json"), "runs/a.json");
        assert_eq!(shell_word(b"it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_word(b"-o x"), "'./-o x'");
        assert_eq!(shell_word("a\u{202e}'b\n".as_bytes()), r"$'a\xe2\x80\xae\'b\x0a'");
        assert_eq!(shell_word(b"a\xff"), r"$'a\xff'");
    }

    #[test]
    fn figures_for_people() {
        assert_eq!(
            [size(999), size(1000), size(45_678), size(999_999), size(3 << 30)].join(" "),
            "999 B 1.00 kB 45.7 kB 1.00 MB 3.22 GB"
        );
        assert_eq!(
            [duration(5.0), duration(1234.0), duration(56.7e6), duration(3e9)].join(" "),
            "5.00 ns 1.23 µs 56.7 ms 3.00 s"
        );
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(
            [date(0), date(951_868_800), date(1_796_022_900)].join(" "),
            "1970-01-01 00:00 2000-03-01 00:00 2026-11-30 07:15"
        );
    }
}
