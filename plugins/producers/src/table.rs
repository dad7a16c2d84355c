//! The table of naming schemes: `schemes.txt`, and lines of the same form that a site adds.

use crate::pattern::{self, Capture, Pattern};
use names::{Meaning, tokens};

use crate::field::Field;

/// The schemes known from the producers' sources.
pub const BUILT_IN: &str = include_str!("../schemes.txt");

/// How one producer names one kind of file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheme {
    /// Who writes such names.
    pub producer: String,
    /// What a file of that name is.
    pub what: What,
    patterns: Vec<Pattern>,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A trace of one rank, and why its name cannot tell the global one, if that is so.
    Trace(Option<String>),
    /// Something else.
    Role(String),
}

impl What {
    /// Whether a trace that holds GPU events cannot be this, since it is another format than a profiler's trace.
    fn is_no_profilers(&self) -> bool {
        matches!(self, What::Role(role) if role == "execution-trace" || role == "events")
    }
}

/// Reads a table.
///
/// # Errors
/// The first line that makes no sense, and why.
pub fn read(text: &str) -> Result<Vec<Scheme>, String> {
    let mut schemes = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        schemes.push(read_line(line).map_err(|reason| format!("line {number} of the schemes: {reason}"))?);
    }
    Ok(schemes)
}

fn read_line(line: &str) -> Result<Scheme, String> {
    let columns: Vec<&str> = line.split(" | ").map(str::trim).collect();
    let [producer, what, pattern, _source] = columns[..] else {
        return Err(format!(
            "`producer | what | pattern | source` are four columns, it has {}",
            columns.len()
        ));
    };
    if producer.is_empty() {
        return Err("it names no producer".into());
    }
    Ok(Scheme {
        producer: producer.to_owned(),
        what: read_what(what)?,
        patterns: pattern::parse(pattern).map_err(|reason| format!("pattern `{pattern}`: {reason}"))?,
    })
}

fn read_what(what: &str) -> Result<What, String> {
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !word.is_empty();
    match what.split_once(':') {
        None if what == "trace" => Ok(What::Trace(None)),
        None if is_word(what) => Ok(What::Role(what.to_owned())),
        Some(("trace", reason)) => Ok(What::Trace(Some(reason.trim().to_owned()))),
        _ => Err(format!("`{what}` is neither `trace`, nor `trace: REASON`, nor a role")),
    }
}

/// A path cut up for matching.
#[derive(Debug)]
pub struct Path<'p> {
    /// File and folders, from the file up, the file without `.gz`.
    pub upwards: Vec<&'p str>,
}

impl<'p> Path<'p> {
    /// Cuts `path` ('/' between folders).
    pub fn new(path: &'p str) -> Self {
        let mut upwards: Vec<&str> = path.rsplit('/').collect();
        let file = upwards[0];
        let stem = file.len().saturating_sub(3);
        if file.get(stem..).is_some_and(|end| end.eq_ignore_ascii_case(".gz")) {
            upwards[0] = &file[..stem];
        }
        Path { upwards }
    }
}

/// The first scheme that fits, by its position, and the fields. `holds_gpu_events` rules out what no such trace can be.
pub fn find<'p>(schemes: &[Scheme], path: &Path<'p>, holds_gpu_events: bool) -> Option<(usize, Vec<Capture<'p>>)> {
    schemes.iter().enumerate().find_map(|(at, scheme)| {
        if holds_gpu_events && scheme.what.is_no_profilers() {
            return None;
        }
        let captures = scheme
            .patterns
            .iter()
            .find_map(|pattern| pattern.captures(&path.upwards))?;
        (matches!(scheme.what, What::Role(_)) || is_sound(path, &captures)).then_some((at, captures))
    })
}

/// Whether the words around the numbers allow what the scheme makes of them: `{text}-rank-{rank}` must take no rank from
/// `local-rank-3` or `from-rank-0-to-rank-1`, `{text}_{number}` none for a bare number, and `{capture}-TP-{tp}` must not swallow
/// the DP of `x-DP-1-TP-3`.
fn is_sound(path: &Path, captures: &[Capture]) -> bool {
    let has_axis = |text: &str| {
        let axis = text
            .split(|c: char| !c.is_ascii_alphabetic())
            .next()
            .unwrap_or_default();
        captures
            .iter()
            .any(|capture| matches!(capture.field, Field::Axis(known) if known.eq_ignore_ascii_case(axis)))
    };
    captures.iter().all(|capture| match capture.field {
        Field::Rank => tokens(path.upwards[capture.height])
            .iter()
            .all(|token| match token.meaning {
                Meaning::Rank { rank, .. } => capture.value.parse() == Ok(rank),
                Meaning::Coordinate => token.digits != capture.range,
                Meaning::Step(_) => true,
            }),
        Field::Axis(_) => tokens(path.upwards[capture.height]).iter().all(|token| {
            token.meaning != Meaning::Coordinate
                || captures
                    .iter()
                    .any(|other| other.range == token.digits && other.height == capture.height)
                || has_axis(token.text)
        }),
        Field::Pid | Field::Number => tokens(path.upwards[capture.height])
            .iter()
            .all(|token| !matches!(token.meaning, Meaning::Rank { .. }) || token.digits != capture.range),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn producer(path: &str, holds_gpu_events: bool) -> Option<String> {
        let schemes = read(BUILT_IN).unwrap();
        find(&schemes, &Path::new(path), holds_gpu_events).map(|(at, _)| schemes[at].producer.clone())
    }

    #[test]
    fn the_built_in_table_is_sound() {
        let schemes = read(BUILT_IN).unwrap();
        assert!(schemes.len() > 70, "{}", schemes.len());
        let patterns: usize = schemes.iter().map(|scheme| scheme.patterns.len()).sum();
        assert!(patterns < 400, "{patterns}");
    }

    #[test]
    fn a_table_with_a_mistake_is_refused_with_the_line() {
        for (text, reason) in [
            (
                "x",
                "line 1 of the schemes: `producer | what | pattern | source` are four columns, it has 1",
            ),
            (
                "# fine\n\nx | trace | a{rnak} | me",
                "line 3 of the schemes: pattern `a{rnak}`: there is no field {rnak}",
            ),
            (
                "x | Trace | a | me",
                "line 1 of the schemes: `Trace` is neither `trace`, nor `trace: REASON`, nor a role",
            ),
            (
                " | trace | a | me",
                "line 1 of the schemes: `producer | what | pattern | source` are four columns, it has 3",
            ),
        ] {
            assert_eq!(read(text), Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn gz_and_case_make_no_difference() {
        for path in ["x/DEVICE.3.json", "device.3.JSON.GZ", "device.3.json.gz"] {
            assert_eq!(producer(path, false).as_deref(), Some("chakra"), "{path}");
        }
        assert_eq!(producer("ö.gz", false), None);
        assert_eq!(producer("", false), None);
        assert_eq!(producer(".gz", false), None);
    }

    #[test]
    fn gpu_events_rule_out_other_formats_but_no_other_role() {
        assert_eq!(
            producer("chakra/rank-3.json", false).as_deref(),
            Some("Megatron-LM, NeMo")
        );
        assert_eq!(producer("chakra/rank-3.json", true), None);
        assert_eq!(producer("ep1-ba42-rank3.json", true), None);
        assert_eq!(producer("capture_traces/a/x.json", true).as_deref(), Some("vLLM"));
    }
}
