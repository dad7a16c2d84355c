//! What is damaged, where, and how it reads there.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::Source;
use super::outputs::Outputs;
use super::ranks::verdict;
use super::svg::{Drawing, Part};
use super::table::{Cell, Table};
use super::text::{self, Shown, name, size, thousands};
use crate::bytes::{Container, Findings, Flaw, Verdict, open};
use crate::traces::{Run, TraceFile};

/// Traces that get a card with a picture; the table has the others.
const MOST_CARDS: usize = 12;
/// Places shown with the text around them.
const PLACES: usize = 3;
/// Bytes shown before and behind a place.
const AROUND: u64 = 56;
/// A place of a compressed trace that lies further in than this is not shown with its text: the trace would be read once more for it.
const FAR: u64 = 256 << 20;

/// One damaged or refused trace.
pub(super) struct Card {
    pub(super) name: Shown,
    pub(super) word: &'static str,
    pub(super) tone: &'static str,
    /// `148 kB, 12 ill-formed-utf8`.
    pub(super) what: String,
    /// Why it is refused.
    pub(super) reason: Option<Shown>,
    pub(super) warnings: Vec<Shown>,
    pub(super) picture: Option<String>,
    pub(super) places: Vec<Place>,
    /// How many more places there are.
    pub(super) more: u64,
    /// The log of the edits: address and text.
    pub(super) edits: Option<(String, String)>,
}

/// One place of damage.
pub(super) struct Place {
    pub(super) kind: &'static str,
    /// `line 455, column 83, byte 20569`.
    pub(super) at: String,
    /// Its JSON path.
    pub(super) inside: Option<Shown>,
    /// The text there, as HTML.
    pub(super) around: Option<String>,
    pub(super) guess: bool,
}

/// The damaged traces' positions, refused ones first.
pub(super) fn damaged(run: &Run) -> Vec<usize> {
    let mut damaged: Vec<usize> = (0..run.traces.len())
        .filter(|&index| run.traces[index].findings.verdict != Verdict::Clean)
        .collect();
    damaged.sort_by_key(|&index| run.traces[index].findings.verdict != Verdict::Refused);
    damaged
}

/// Cards of the damaged traces, and how many have none.
pub(super) fn cards(source: &Source, outputs: &Outputs) -> (Vec<Card>, usize) {
    let damaged = damaged(source.run);
    let more = damaged.len().saturating_sub(MOST_CARDS);
    let shown = damaged.iter().take(MOST_CARDS).enumerate();
    (
        shown
            .map(|(number, &index)| card(source.run, outputs, number, index))
            .collect(),
        more,
    )
}

fn card(run: &Run, outputs: &Outputs, number: usize, index: usize) -> Card {
    let trace = &run.traces[index];
    let findings = &trace.findings;
    let flaws = &findings.flaws;
    let spots = spots(&flaws.listed);
    let around = texts(run, index, &spots);
    let shown: usize = spots.iter().map(|spot| spot.len()).sum();
    let places = spots.iter().zip(around).map(|(spot, around)| {
        let flaw = &spot[0];
        let more = if spot.len() > 1 {
            format!(" and {} more beside it", spot.len() - 1)
        } else {
            String::new()
        };
        Place {
            kind: flaw.kind.name(),
            at: format!("line {}, column {}, byte {}{more}", flaw.line, flaw.column, flaw.offset),
            inside: flaw.path.as_deref().map(name),
            around,
            guess: flaw.guess,
        }
    });
    let (word, tone) = verdict(findings.verdict);
    Card {
        name: name(&trace.display_path()),
        word,
        tone,
        what: what(trace),
        reason: findings.reason.as_deref().map(name),
        warnings: findings.warnings.iter().map(|warning| name(warning)).collect(),
        picture: picture(&format!("strip{number}"), findings),
        places: places.collect(),
        more: flaws.count - shown as u64,
        edits: outputs.edits_of_trace(index),
    }
}

fn what(trace: &TraceFile) -> String {
    let findings = &trace.findings;
    let mut parts = vec![format!("{} {}", size(trace.stored_size), trace.kind)];
    if findings.container != Container::Plain {
        parts.push(findings.container.as_str().to_owned());
    }
    parts.extend(kinds(findings));
    parts.join(" · ")
}

fn kinds(findings: &Findings) -> impl Iterator<Item = String> {
    findings
        .flaws
        .by_kind
        .iter()
        .map(|(kind, &count)| format!("{} × {}", thousands(count), kind.name()))
}

/// A strip of the file with the places of its flaws; none for one whose size or flaws are not known.
fn picture(id: &str, findings: &Findings) -> Option<String> {
    let flaws = &findings.flaws;
    let first = flaws.listed.first()?;
    let last = flaws.listed.last()?;
    let whole = findings.size.max(last.offset + last.length).max(1);
    let mut drawing = Drawing::new();
    drawing.rect("file", "0", 4.0, "100%", 22.0, None);
    let mut drawn = None;
    for flaw in &flaws.listed {
        let (from, width) = (flaw.offset as f64 / whole as f64, flaw.length as f64 / whole as f64);
        // Marks that would cover each other are one.
        let place = (from * 500.0) as u64;
        if drawn == Some(place) && width < 0.004 {
            continue;
        }
        drawn = Some(place);
        let tip = format!("{} at byte {}", flaw.kind.name(), thousands(flaw.offset));
        let from = from.min(0.995);
        match width > 0.004 {
            true => drawing.rect("flaw wide", Part(from), 4.0, Part(width), 22.0, Some(&tip)),
            false => drawing.rect("flaw", Part(from), 0.0, "3", 30.0, Some(&tip)),
        }
    }
    drawing.text("axis", "0", 44.0, "byte 0");
    drawing.text("axis end", "100%", 44.0, &size(whole));
    let title = format!(
        "Where the damage lies in the file: {} of {}",
        places(flaws.count),
        size(whole)
    );
    let description = format!(
        "from byte {} to byte {}{}",
        thousands(first.offset),
        thousands(last.offset + last.length),
        if flaws.count > flaws.listed.len() as u64 {
            "; only the first places are drawn"
        } else {
            ""
        }
    );
    Some(drawing.finish(id, None, 48.0, &title, &description))
}

fn places(count: u64) -> String {
    match count {
        1 => "1 place".to_owned(),
        count => format!("{} places", thousands(count)),
    }
}

/// The first flaws, those that lie close together as one.
fn spots(listed: &[Flaw]) -> Vec<&[Flaw]> {
    let mut spots = Vec::new();
    let mut rest = listed;
    while let (Some(first), true) = (rest.first(), spots.len() < PLACES) {
        let close = rest
            .iter()
            .take_while(|flaw| flaw.offset + flaw.length <= first.offset + AROUND)
            .count()
            .max(1);
        let (spot, after) = rest.split_at(close);
        spots.push(spot);
        rest = after;
    }
    spots
}

/// The text around each spot as HTML, in order; none where it is not to be had cheaply.
fn texts(run: &Run, index: usize, spots: &[&[Flaw]]) -> Vec<Option<String>> {
    let windows: Vec<(u64, u64)> = spots
        .iter()
        .map(|spot| {
            let last = &spot[spot.len() - 1];
            let end = last
                .offset
                .saturating_add(last.length.min(AROUND))
                .saturating_add(AROUND);
            (spot[0].offset.saturating_sub(AROUND), end)
        })
        .collect();
    let texts = match run.traces[index].findings.container {
        Container::Plain => run.open(index).map(|mut file| {
            let read = |&(from, to): &(u64, u64)| {
                file.seek(SeekFrom::Start(from)).ok()?;
                let mut bytes = Vec::new();
                file.by_ref().take(to - from).read_to_end(&mut bytes).ok()?;
                Some(bytes)
            };
            windows.iter().map(read).collect()
        }),
        _ => run.open(index).and_then(|file| Ok(slices(open(file)?.1, &windows))),
    };
    let texts: Vec<Option<Vec<u8>>> = texts.unwrap_or_else(|_| vec![None; spots.len()]);
    texts
        .into_iter()
        .zip(spots)
        .zip(windows)
        .map(|((text, spot), (from, _))| html(&text?, from, spot))
        .collect()
}

/// The bytes `text` that begin at `from`, with the flaws of `spot` marked.
fn html(text: &[u8], from: u64, spot: &[Flaw]) -> Option<String> {
    let start = (spot[0].offset - from) as usize;
    // A character that the window cuts at an edge is no damage.
    let cut = (0..start.min(3))
        .take_while(|&at| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80))
        .count();
    let lead = if from == 0 { 0 } else { cut };
    let marked: Vec<Range<usize>> = spot
        .iter()
        .map(|flaw| {
            let at = (flaw.offset - from) as usize - lead;
            at..at + flaw.length.min(AROUND) as usize
        })
        .collect();
    let end = marked.last()?.end;
    let text = text.get(lead..).filter(|text| !text.is_empty())?;
    Some(text::bytes(whole_at_end(text, end), &marked))
}

/// `text` without a character that is cut at its end, unless that lies before `keep`.
fn whole_at_end(text: &[u8], keep: usize) -> &[u8] {
    let tail = text.utf8_chunks().last();
    match tail.map(|chunk| chunk.invalid().len()) {
        Some(cut @ 1..) if text.len() - cut >= keep => &text[..text.len() - cut],
        _ => text,
    }
}

/// The stretches `windows` of what `input` gives, which may overlap; their starts ascend.
fn slices(mut input: impl Read, windows: &[(u64, u64)]) -> Vec<Option<Vec<u8>>> {
    let mut found: Vec<Option<Vec<u8>>> = vec![None; windows.len()];
    let end = windows
        .iter()
        .map(|window| window.1)
        .filter(|&to| to <= FAR)
        .max()
        .unwrap_or(0);
    let (mut at, mut buffer) = (0u64, vec![0; 128 << 10]);
    while at < end {
        let read = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A damaged stream still shows what comes before its damage.
            Err(_) => break,
        };
        let chunk_end = at + read as u64;
        for (slice, &(from, to)) in found.iter_mut().zip(windows).filter(|(_, window)| window.1 <= FAR) {
            let (from, to) = (from.max(at), to.min(chunk_end));
            if from < to {
                let bytes = &buffer[(from - at) as usize..(to - at) as usize];
                slice.get_or_insert_default().extend_from_slice(bytes);
            }
        }
        at = chunk_end;
    }
    found
}

/// A row for each damaged trace.
pub(super) fn by_trace(source: &Source) -> Table {
    let mut table = Table::new(
        "damaged",
        "Damaged traces",
        &["trace", "verdict", "#places", "kinds", "#size", "why"],
    );
    for index in damaged(source.run) {
        let trace = &source.run.traces[index];
        let findings = &trace.findings;
        let (word, tone) = verdict(findings.verdict);
        table.rows.push(vec![
            name(&trace.display_path()).into(),
            Cell::toned(word, tone),
            Cell::figure(thousands(findings.flaws.count), findings.flaws.count as f64),
            kinds(findings).collect::<Vec<_>>().join(", ").into(),
            Cell::figure(size(trace.stored_size), trace.stored_size as f64),
            name(findings.reason.as_deref().unwrap_or_default()).into(),
        ]);
    }
    table.cut("`tracemend scan RUN` lists them");
    table
}

/// A row for each listed place.
pub(super) fn by_place(source: &Source) -> Table {
    let mut table = Table::new(
        "places",
        "Places of damage",
        &[
            "trace", "kind", "#byte", "#line", "#column", "#length", "bytes", "inside",
        ],
    );
    let mut left_out = 0;
    for index in damaged(source.run) {
        let trace = &source.run.traces[index];
        let flaws = &trace.findings.flaws;
        for flaw in &flaws.listed {
            let digits: Vec<String> = flaw.bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            table.rows.push(vec![
                name(&trace.display_path()).into(),
                flaw.kind.name().into(),
                Cell::figure(flaw.offset.to_string(), flaw.offset as f64),
                Cell::figure(flaw.line.to_string(), flaw.line as f64),
                Cell::figure(flaw.column.to_string(), flaw.column as f64),
                Cell::figure(flaw.length.to_string(), flaw.length as f64),
                format!("{}{}", digits.join(" "), if flaw.length > 8 { " …" } else { "" }).into(),
                name(flaw.path.as_deref().unwrap_or_default()).into(),
            ]);
        }
        left_out += flaws.count - flaws.listed.len() as u64;
    }
    table.cut("`tracemend scan RUN --json` lists them");
    if left_out > 0 && table.left_out.is_none() {
        table.left_out = Some(format!("{} more places were counted, not listed.", thousands(left_out)));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_overlap_and_end_where_the_input_does() {
        let text: Vec<u8> = (0..=255).collect();
        let found = slices(&text[..], &[(0, 4), (2, 6), (250, 300), (400, 500), (0, FAR + 1)]);
        assert_eq!(
            found,
            [
                Some(vec![0, 1, 2, 3]),
                Some(vec![2, 3, 4, 5]),
                Some((250..=255).collect()),
                None,
                None
            ]
        );
    }

    #[test]
    fn characters_cut_by_the_window_are_not_shown_as_damage() {
        assert_eq!(whole_at_end("aé".as_bytes(), 0), "aé".as_bytes());
        assert_eq!(whole_at_end(b"a\xc3", 1), b"a");
        assert_eq!(whole_at_end(b"a\xc3", 2), b"a\xc3");
    }
}
