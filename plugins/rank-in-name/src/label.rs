//! From a path to its label: what the file name says, then the folders, nearest first.

use crate::role;
use crate::token::{Meaning, Token, leading_r, tokens};

/// What a path says about its trace.
#[derive(Debug, PartialEq)]
pub enum Label {
    Rank {
        rank: u32,
        world_size: Option<u32>,
        group: Option<String>,
        evidence: String,
    },
    Role(&'static str),
    Unknown(String),
}

/// The label of the trace at `path` ('/' between folders).
pub fn of(path: &str) -> Label {
    let mut folders: Vec<&str> = path.split('/').collect();
    let file = folders.pop().unwrap_or(path);
    if let Some(role) = role::of(&folders, file) {
        return Label::Role(role);
    }
    let in_file = tokens(file);
    let places = std::iter::once(("name", file)).chain(folders.iter().rev().map(|folder| ("folder", *folder)));
    for (place, name) in places {
        let mut ranks: Vec<Token> = tokens(name).into_iter().filter(is_rank).collect();
        if place == "name" {
            ranks.extend(leading_r(name));
        }
        match ranks.as_slice() {
            [] => continue,
            [first, rest @ ..] if rest.iter().all(|other| rank_of(other) == rank_of(first)) => {
                let Meaning::Rank { rank, world_size } = first.meaning else {
                    continue;
                };
                let evidence = format!("{place}: {}", first.text);
                return Label::Rank {
                    rank,
                    world_size,
                    group: group(&folders, &in_file),
                    evidence,
                };
            }
            several => {
                let texts: Vec<&str> = several.iter().map(|token| token.text).collect();
                return Label::Unknown(format!("the {place} holds several ranks: {}", texts.join(", ")));
            }
        }
    }
    let all = in_file
        .into_iter()
        .chain(folders.iter().rev().flat_map(|folder| tokens(folder)));
    Label::Unknown(coordinates(all.filter(|token| token.meaning == Meaning::Coordinate)))
}

fn is_rank(token: &Token) -> bool {
    matches!(token.meaning, Meaning::Rank { .. })
}

fn rank_of(token: &Token) -> Option<u32> {
    match token.meaning {
        Meaning::Rank { rank, .. } => Some(rank),
        _ => None,
    }
}

fn coordinates<'a>(tokens: impl Iterator<Item = Token<'a>>) -> String {
    match tokens
        .map(|token| word_and_number(token.text))
        .collect::<Vec<_>>()
        .as_slice()
    {
        [] => String::new(),
        [one] => format!("{one} is a coordinate, not a global rank"),
        several => format!("{} are coordinates, not a global rank", several.join(", ")),
    }
}

/// `TP-3` as `TP 3`.
fn word_and_number(text: &str) -> String {
    let text = text.trim_end_matches(']');
    let word = text.trim_end_matches(|c: char| c.is_ascii_digit());
    format!("{} {}", word.trim_end_matches(['-', '_', '[']), &text[word.len()..])
}

/// Which traces this one is compared with, where its folder alone does not tell: a folder name that holds a rank would part the ranks
/// of one run, so its numbers are blanked; steps in file names would mix, so they are added. None if the folder tells.
fn group(folders: &[&str], in_file: &[Token]) -> Option<String> {
    let blanked: Vec<String> = folders.iter().map(|folder| blank(folder)).collect();
    let folder = blanked.join("/");
    let step = in_file.iter().find_map(|token| match token.meaning {
        Meaning::Step(step) => Some(step),
        _ => None,
    });
    match step {
        Some(step) if folder.is_empty() => Some(format!("step {step}")),
        Some(step) => Some(format!("{folder} step {step}")),
        None => (folder != folders.join("/")).then_some(folder),
    }
}

/// A folder name with `*` for its rank and, beside a rank, for its coordinates (`pp1_rank_5` is of the run of `pp0_rank_0`).
fn blank(folder: &str) -> String {
    let tokens = tokens(folder);
    if !tokens.iter().any(is_rank) {
        return folder.to_string();
    }
    let mut blanked = String::new();
    let mut from = 0;
    for token in tokens.iter().filter(|token| !matches!(token.meaning, Meaning::Step(_))) {
        blanked.push_str(&folder[from..token.digits.0]);
        blanked.push('*');
        from = token.digits.1;
    }
    blanked + &folder[from..]
}

#[cfg(test)]
mod tests;
