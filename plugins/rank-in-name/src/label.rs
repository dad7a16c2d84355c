//! From a path to its label: what the file name says, then the folders, nearest first.

use names::{Folder, Meaning, Token, group, tokens};

/// What a path says about its trace.
#[derive(Debug, PartialEq)]
pub enum Label {
    Rank {
        rank: u32,
        world_size: Option<u32>,
        group: Option<String>,
        evidence: String,
    },
    Unknown(String),
}

/// The label of the trace at `path` ('/' between folders).
pub fn of(path: &str) -> Label {
    let mut folders: Vec<&str> = path.split('/').collect();
    let file = folders.pop().unwrap_or(path);
    let in_file = tokens(file);
    let places = std::iter::once(("name", file)).chain(folders.iter().rev().map(|folder| ("folder", *folder)));
    for (place, name) in places {
        let ranks: Vec<Token> = tokens(name)
            .into_iter()
            .filter(|token| rank_of(token).is_some())
            .collect();
        let Some((rank, world_size)) = ranks.first().and_then(rank_of) else {
            continue;
        };
        if ranks.iter().filter_map(rank_of).any(|(other, _)| other != rank) {
            let texts: Vec<&str> = ranks.iter().map(|token| token.text).collect();
            return Label::Unknown(format!("the {place} holds several ranks: {}", texts.join(", ")));
        }
        let folders: Vec<Folder> = folders.iter().map(|folder| Folder::named(folder)).collect();
        return Label::Rank {
            rank,
            world_size,
            group: group(&folders, &step(&in_file)),
            evidence: format!("{place}: {}", ranks[0].text),
        };
    }
    let all = in_file
        .into_iter()
        .chain(folders.iter().rev().flat_map(|folder| tokens(folder)));
    Label::Unknown(coordinates(all.filter(|token| token.meaning == Meaning::Coordinate)))
}

/// Rank and world size.
fn rank_of(token: &Token) -> Option<(u32, Option<u32>)> {
    match token.meaning {
        Meaning::Rank { rank, world_size } => Some((rank, world_size)),
        _ => None,
    }
}

/// The step in a file name, as a label of its group.
fn step(in_file: &[Token]) -> Vec<String> {
    let step = in_file.iter().find_map(|token| match token.meaning {
        Meaning::Step(step) => Some(format!("step {step}")),
        _ => None,
    });
    Vec::from_iter(step)
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
