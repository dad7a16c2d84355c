//! Patterns over paths: literal text, fields, folders. Matching takes time linear in the name for each text field of the pattern.

use crate::field::Field;

/// A pattern without alternatives: those are several patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The file, then the folders above it.
    upwards: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// `**`
    AnyFolders,
    Name(Name),
}

/// One file or folder name: runs of pieces, divided by fields of text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Name {
    /// What the name begins with.
    head: Vec<Piece>,
    /// Each field of text, with what stands behind it.
    tail: Vec<(Field, Vec<Piece>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Run(Field),
}

/// A field's value in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capture<'p> {
    /// Which field.
    pub field: Field,
    /// Its text.
    pub value: &'p str,
    /// How far above the file: 0 in its name, 1 in the folder's that holds it.
    pub height: usize,
    /// Byte range in that name.
    pub range: (usize, usize),
}

/// A pattern with too many alternatives is a mistake.
const MAX_PATTERNS: usize = 256;

/// The patterns that `text` stands for: one for each choice of alternatives.
///
/// # Errors
/// What is wrong with it, for people.
pub fn parse(text: &str) -> Result<Vec<Pattern>, String> {
    let texts = expand(text)?;
    texts.iter().map(|text| Pattern::parse(text)).collect()
}

/// Writes the alternatives of `text` out.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        // The last opening bracket holds no other.
        let Some(start) = text.rfind('(') else {
            if text.contains([')', '|']) {
                return Err("`)` or `|` stands outside of (a|b)".into());
            }
            done.push(text);
            if done.len() > MAX_PATTERNS {
                return Err(format!("it has more than {MAX_PATTERNS} combinations of alternatives"));
            }
            continue;
        };
        let Some(length) = text[start..].find(')') else {
            return Err("a `(` is not closed".into());
        };
        let (head, tail) = (&text[..start], &text[start + length + 1..]);
        for choice in text[start + 1..start + length].rsplit('|') {
            open.push(format!("{head}{choice}{tail}"));
        }
    }
    Ok(done)
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let part = |name: &str| match name {
            "**" => Ok(Part::AnyFolders),
            name => Name::parse(name).map(Part::Name),
        };
        let upwards = text.rsplit('/').map(part).collect::<Result<Vec<_>, _>>()?;
        let any_folders = upwards.iter().filter(|part| **part == Part::AnyFolders).count();
        if upwards.first() == Some(&Part::AnyFolders) || upwards.last() == Some(&Part::AnyFolders) || any_folders > 1 {
            return Err("** may stand once, between two names".into());
        }
        Ok(Pattern { upwards })
    }

    /// The fields of a path, if the pattern fits it. `upwards` is the path from its file up, the file without `.gz`.
    pub fn captures<'p>(&self, upwards: &[&'p str]) -> Option<Vec<Capture<'p>>> {
        let mut captures = Vec::new();
        let gap = self.upwards.iter().position(|part| *part == Part::AnyFolders);
        let Some(gap) = gap else {
            let fits = fit(&self.upwards, upwards, 0, &mut captures) && is_one_value_each(&captures);
            return fits.then_some(captures);
        };
        let (below, above) = (&self.upwards[..gap], &self.upwards[gap + 1..]);
        if upwards.len() < below.len() + above.len() || !fit(below, upwards, 0, &mut captures) {
            return None;
        }
        let found = captures.len();
        (below.len()..=upwards.len() - above.len()).find_map(|height| {
            captures.truncate(found);
            (fit(above, upwards, height, &mut captures) && is_one_value_each(&captures)).then(|| captures.clone())
        })
    }
}

/// Whether `parts` fit the names from `height` on.
fn fit<'p>(parts: &[Part], upwards: &[&'p str], height: usize, captures: &mut Vec<Capture<'p>>) -> bool {
    parts
        .iter()
        .zip(height..)
        .all(|(part, height)| match (part, upwards.get(height)) {
            (Part::Name(name), Some(text)) => name.fit(text, height, captures),
            _ => false,
        })
}

fn is_one_value_each(captures: &[Capture]) -> bool {
    captures.iter().enumerate().all(|(at, capture)| {
        !capture.field.is_one_value()
            || captures[at + 1..]
                .iter()
                .all(|other| other.field != capture.field || other.value == capture.value)
    })
}

impl Name {
    fn parse(text: &str) -> Result<Self, String> {
        let mut name = Name::default();
        let mut rest = text;
        while !rest.is_empty() {
            let literal = &rest[..rest.find(['{', '}']).unwrap_or(rest.len())];
            if !literal.is_empty() {
                name.push(Piece::Literal(literal.to_owned()))?;
                rest = &rest[literal.len()..];
                continue;
            }
            let (field, behind) = rest
                .strip_prefix('{')
                .and_then(|rest| rest.split_once('}'))
                .ok_or("a `{` or `}` stands alone")?;
            let known = Field::named(field).ok_or_else(|| format!("there is no field {{{field}}}"))?;
            rest = behind;
            if known.is_text() {
                if name.tail.last().is_some_and(|(_, pieces)| pieces.is_empty()) {
                    return Err(format!("{{{field}}} follows on text: nothing says where one ends"));
                }
                name.tail.push((known, Vec::new()));
            } else {
                name.push(Piece::Run(known))?;
            }
        }
        match name == Name::default() {
            true => Err("it has an empty name".into()),
            false => Ok(name),
        }
    }

    fn push(&mut self, piece: Piece) -> Result<(), String> {
        let behind_text = self.tail.last().is_some_and(|(_, pieces)| pieces.is_empty());
        let pieces = match self.tail.last_mut() {
            Some((_, pieces)) => pieces,
            None => &mut self.head,
        };
        let is_digit = |c: char| c.is_ascii_digit();
        let clear = match (pieces.last(), &piece) {
            (None, Piece::Run(_)) => !behind_text,
            (Some(Piece::Literal(before)), Piece::Run(_)) => !before.ends_with(is_digit),
            (Some(Piece::Run(_)), Piece::Literal(behind)) => !behind.starts_with(is_digit),
            (Some(Piece::Run(_)), Piece::Run(_)) => false,
            _ => true,
        };
        if !clear {
            return Err(
                "a field of digits or letters stands beside text or digits: nothing says where one ends".into(),
            );
        }
        pieces.push(piece);
        Ok(())
    }

    /// Matches the whole of `text`. Fields of text are as long as they can be, the first one longest: what a name says in fixed
    /// places stands at its end, what users make up at its start.
    fn fit<'p>(&self, text: &'p str, height: usize, captures: &mut Vec<Capture<'p>>) -> bool {
        // Most names differ at their ends, which costs little to see.
        let end = self.tail.last().map_or(&self.head, |(_, pieces)| pieces);
        if !ends_with(text, end.last()) {
            return false;
        }
        let Some(head_end) = fit_at(&self.head, text, 0, height, captures) else {
            return false;
        };
        let Some((first, _)) = self.tail.first() else {
            return head_end == text.len();
        };
        if *first == Field::Words && !is_edge(text, head_end) {
            return false;
        }
        // From the end to the start: each run of pieces as far behind as it fits.
        let mut limit = text.len();
        let mut runs = Vec::new();
        for at in (0..self.tail.len()).rev() {
            let least = self.least_text(at);
            let Some((start, end)) = self.last_fit(at, text, (head_end + least, limit), height, captures) else {
                return false;
            };
            runs.push((start, end));
            limit = start - least;
        }
        let mut from = head_end;
        for ((field, _), (start, end)) in self.tail.iter().zip(runs.into_iter().rev()) {
            captures.push(Capture {
                field: *field,
                value: &text[from..start],
                height,
                range: (from, start),
            });
            from = end;
        }
        true
    }

    /// How many bytes the field of text before the run `at` has at least.
    fn least_text(&self, at: usize) -> usize {
        usize::from(self.tail[at].0 != Field::Words)
    }

    /// The last place within `bounds` where the run `at` fits: where it begins and ends.
    fn last_fit<'p>(
        &self,
        at: usize,
        text: &'p str,
        (least, limit): (usize, usize),
        height: usize,
        captures: &mut Vec<Capture<'p>>,
    ) -> Option<(usize, usize)> {
        let (field, pieces) = &self.tail[at];
        let next = self.tail.get(at + 1).map(|(next, _)| *next);
        let first_byte = match pieces.first() {
            Some(Piece::Literal(literal)) => literal.bytes().next(),
            _ => None,
        };
        (least..=limit).rev().find_map(|start| {
            if let Some(first) = first_byte
                && !text
                    .as_bytes()
                    .get(start)
                    .is_some_and(|byte| byte.eq_ignore_ascii_case(&first))
            {
                return None;
            }
            let mark = captures.len();
            let end = fit_at(pieces, text, start, height, captures)?;
            let fits = end <= limit
                && (next.is_some() || end == text.len())
                && (*field != Field::Words || is_edge(text, start))
                && (next != Some(Field::Words) || is_edge(text, end));
            if !fits {
                captures.truncate(mark);
            }
            fits.then_some((start, end))
        })
    }
}

/// Matches `pieces` at byte `start` and returns where they end. Captures of a failed match are taken back.
fn fit_at<'p>(
    pieces: &[Piece],
    text: &'p str,
    start: usize,
    height: usize,
    captures: &mut Vec<Capture<'p>>,
) -> Option<usize> {
    let mark = captures.len();
    let mut at = start;
    for piece in pieces {
        let fits = match piece {
            Piece::Literal(literal) => {
                let end = at + literal.len();
                let fits = text
                    .as_bytes()
                    .get(at..end)
                    .is_some_and(|there| there.eq_ignore_ascii_case(literal.as_bytes()));
                at = end;
                fits
            }
            Piece::Run(field) => {
                let rest = text.as_bytes().get(at..).unwrap_or_default();
                let end = at + rest.iter().take_while(|byte| field.takes(**byte)).count();
                let value = text.get(at..end).unwrap_or_default();
                captures.push(Capture {
                    field: *field,
                    value,
                    height,
                    range: (at, end),
                });
                at = end;
                field.fits(value)
            }
        };
        if !fits {
            captures.truncate(mark);
            return None;
        }
    }
    text.is_char_boundary(at).then_some(at)
}

/// Whether `text` ends as `piece` does, if that is literal text.
fn ends_with(text: &str, piece: Option<&Piece>) -> bool {
    let Some(Piece::Literal(end)) = piece else {
        return true;
    };
    let start = text.len().checked_sub(end.len());
    start.is_some_and(|start| text.as_bytes()[start..].eq_ignore_ascii_case(end.as_bytes()))
}

/// Whether a word can begin or end at byte `at`.
fn is_edge(text: &str, at: usize) -> bool {
    let (Some(before), Some(behind)) = (text[..at].chars().next_back(), text[at..].chars().next()) else {
        return true;
    };
    let kind = |c: char| (c.is_alphanumeric(), c.is_ascii_digit());
    kind(before) != kind(behind) || !before.is_alphanumeric()
}

#[cfg(test)]
mod tests;
