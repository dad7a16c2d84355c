//! The user's own word for whose trace is whose: a CSV of path patterns and ranks, asked before any policy.

use std::path::Path;

use anyhow::{Context, Result, bail};
use globset::{GlobBuilder, GlobMatcher};

use super::policies::PolicyLabels;
use crate::plugins::{Claim, Label};
use crate::traces::Run;

/// The name under which the map makes its claims.
pub const MAP: &str = "map";

/// One row: the traces that it means, and what they are.
#[derive(Debug, Clone)]
struct Entry {
    line: u64,
    pattern: GlobMatcher,
    label: Label,
}

/// A map from path patterns to ranks.
#[derive(Debug, Clone, Default)]
pub struct UserMap {
    entries: Vec<Entry>,
}

impl UserMap {
    /// Reads a CSV of two or three columns: a pattern over the path relative to the run (`*` and `?` within one name, `**` over
    /// folders), the rank or `-` for a trace of no rank, and the world size if it is to be stated. A header `pattern,rank` is
    /// passed over.
    ///
    /// # Errors
    /// When the file cannot be read or a row says none of this; the line is named.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_path(path)
            .with_context(|| format!("cannot read the map {shown}"))?;
        let mut entries = Vec::new();
        for record in reader.records() {
            let record = record.with_context(|| format!("the map {shown}"))?;
            let line = record.position().map_or(0, csv::Position::line);
            if entries.is_empty() && record.get(1) == Some("rank") {
                continue;
            }
            entries.push(entry(&record, line).with_context(|| format!("the map {shown}, line {line}"))?);
        }
        Ok(UserMap { entries })
    }

    /// The labels that the map gives to the traces of `run`: of several rows that match, the last one's. Also the lines of rows
    /// that match no trace.
    pub fn labels(&self, run: &Run) -> (PolicyLabels, Vec<u64>) {
        let mut used = vec![false; self.entries.len()];
        let mut label = |path: &Path| {
            let mut label = Label::Unknown(String::new());
            for (entry, used) in self.entries.iter().zip(&mut used) {
                if entry.pattern.is_match(path) {
                    *used = true;
                    label = entry.label.clone();
                }
            }
            label
        };
        let labels = run.traces.iter().map(|trace| label(&trace.path)).collect();
        let unused = self
            .entries
            .iter()
            .zip(used)
            .filter(|(_, used)| !used)
            .map(|(entry, _)| entry.line);
        (
            PolicyLabels {
                policy: MAP.to_owned(),
                labels,
            },
            unused.collect(),
        )
    }
}

fn entry(record: &csv::StringRecord, line: u64) -> Result<Entry> {
    let (Some(pattern), Some(rank)) = (record.get(0), record.get(1)) else {
        bail!("a row is a path pattern, a rank, and the world size if known");
    };
    let number = |text: &str, what| text.parse::<u32>().with_context(|| format!("{text:?} is no {what}"));
    let world_size = match record.get(2).filter(|text| !text.is_empty()) {
        Some(text) => Some(number(text, "world size")?),
        None => None,
    };
    let label = match rank {
        "-" => Label::Role("excluded".to_owned()),
        rank => Label::Rank(Claim {
            rank: number(rank, "rank (a number from 0, or - for a trace of no rank)")?,
            world_size,
            group: None,
            node: None,
            certain: true,
            evidence: format!("line {line} of the map: {pattern}"),
        }),
    };
    let pattern = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()?
        .compile_matcher();
    Ok(Entry { line, pattern, label })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<UserMap> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        UserMap::read(file.path())
    }

    #[test]
    fn rows_that_say_nothing_are_named_by_line() {
        assert_eq!(
            read("pattern,rank\n# ours\na*.json, 3\n\"b,c.json\",-,8\n")
                .unwrap()
                .entries
                .len(),
            2
        );
        for (text, why) in [
            ("a.json\n", "line 1"),
            ("a,0\nb,x\n", "line 2"),
            ("a,0,many\n", "world size"),
            ("a[,0\n", "line 1"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
