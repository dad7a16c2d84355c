//! Cases: what a plugin should answer, in a file. For a trace-naming plugin a table of names (tab-separated, as
//! `fixtures/names/names.tsv`), for a dyno-interpreter plugin recorded calls (JSON lines, as `fixtures/dyno/calls.jsonl`).

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::contents::SameContents;
use crate::plugins::{CallError, Claim, ExpectedAnswer, Kind, Label, Plugin, PluginHost, RecordedCall, Trace, World};

/// The role of a file that has a rank, if only its name told it.
const TRACE: &str = "trace";

/// One case whose answer is not the expected one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Line of the case in its file, from 1.
    pub line: usize,
    /// The trace's name, or the recorded call's.
    pub name: String,
    /// What the case wants.
    pub expected: String,
    /// What the plugin answered.
    pub got: String,
}

/// How a plugin did on a file of cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How many cases the file has.
    pub total: usize,
    /// Those that were not answered as expected, in the file's order.
    pub differences: Vec<Difference>,
}

/// Asks `plugin` every case of `file`. `settings` are its settings, as a site would set them. The traces of a table are given in one
/// call, as those of a run are; they have a name only, so the plugin finds nothing in their contents.
///
/// # Errors
/// When the file cannot be read or is not of the form that the plugin's world takes; the error names the line.
pub fn run(host: &PluginHost, plugin: &Plugin, settings: &[(String, String)], file: &Path) -> Result<Outcome> {
    let shown = || file.display().to_string();
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    match plugin.world {
        World::TraceNaming => {
            let names = read_names(opened).with_context(shown)?;
            Ok(names_outcome(host, plugin, settings, &names))
        }
        World::DynoInterpreter => {
            let calls = RecordedCall::read(BufReader::new(opened));
            let calls = calls.collect::<Result<Vec<_>>>().with_context(shown)?;
            calls_outcome(host, plugin, settings, calls).with_context(shown)
        }
    }
}

/// What a row of the table says of its name.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// This rank, and what else the table's columns say.
    Rank {
        rank: u32,
        world_size: Option<u32>,
        node: Option<String>,
        group: Option<String>,
    },
    /// A rank's trace whose name does not tell the rank.
    Unknown,
    /// A file of no rank: what it is.
    Role(String),
}

#[derive(Debug)]
struct NameCase {
    line: usize,
    name: String,
    expected: Expected,
}

/// Rows of a table with the columns `name`, `role`, `rank`, and optionally `world_size`, `node`, `group`; others are notes.
fn read_names(input: impl io::Read) -> Result<Vec<NameCase>> {
    let mut table = csv::ReaderBuilder::new()
        .delimiter(b'\t')
        .quoting(false)
        .flexible(true)
        .from_reader(input);
    let headers = table.headers()?.clone();
    let column = |name: &str| headers.iter().position(|header| header.trim() == name);
    let wanted = |name: &str| {
        column(name).with_context(|| {
            format!("line 1: no column {name:?}: the first line names the columns, name<TAB>role<TAB>rank at least")
        })
    };
    let (name, role, rank) = (wanted("name")?, wanted("role")?, wanted("rank")?);
    let (world_size, node, group) = (column("world_size"), column("node"), column("group"));
    let mut cases = Vec::new();
    for row in table.records() {
        let row = row?;
        let line = row.position().map_or(0, |position| position.line() as usize);
        let text = |column: Option<usize>| {
            column
                .and_then(|column| row.get(column))
                .map(str::trim)
                .filter(|text| !text.is_empty())
        };
        let number = |column: Option<usize>, what: &str| {
            text(column)
                .map(|text| {
                    text.parse::<u32>()
                        .with_context(|| format!("line {line}: {what} {text:?} is no whole number"))
                })
                .transpose()
        };
        let name = row.get(name).unwrap_or_default().to_owned();
        let expected = match (text(Some(role)), number(Some(rank), "rank")?) {
            (None, _) => bail!("line {line}: no role: {TRACE:?} for a rank's trace, or what else the file is"),
            (Some(TRACE), Some(rank)) => Expected::Rank {
                rank,
                world_size: number(world_size, "world_size")?,
                node: text(node).map(str::to_owned),
                group: text(group).map(str::to_owned),
            },
            (Some(TRACE), None) => Expected::Unknown,
            (Some(role), _) => Expected::Role(role.to_owned()),
        };
        cases.push(NameCase { line, name, expected });
    }
    if cases.is_empty() {
        bail!("it has no cases");
    }
    Ok(cases)
}

impl Expected {
    /// Whether `label` is as good as expected. A file of no rank may be told by any role, or not at all; it must not get a rank.
    fn fits(&self, label: &Label) -> bool {
        fn fits<T: PartialEq>(expected: &Option<T>, got: &Option<T>) -> bool {
            expected.is_none() || expected == got
        }
        match (self, label) {
            (
                Expected::Rank {
                    rank,
                    world_size,
                    node,
                    group,
                },
                Label::Rank(claim),
            ) => {
                *rank == claim.rank
                    && fits(world_size, &claim.world_size)
                    && fits(node, &claim.node)
                    && fits(group, &claim.group)
            }
            (Expected::Unknown, Label::Unknown(_)) | (Expected::Role(_), Label::Role(_) | Label::Unknown(_)) => true,
            _ => false,
        }
    }

    fn text(&self) -> String {
        match self {
            Expected::Rank {
                rank,
                world_size,
                node,
                group,
            } => rank_text(*rank, *world_size, node.as_deref(), group.as_deref()),
            Expected::Unknown => "no rank, for the name does not tell it".to_owned(),
            Expected::Role(role) => format!("no rank ({role})"),
        }
    }
}

fn rank_text(rank: u32, world_size: Option<u32>, node: Option<&str>, group: Option<&str>) -> String {
    let mut text = format!("rank {rank}");
    if let Some(world_size) = world_size {
        text += &format!(" of {world_size}");
    }
    if let Some(node) = node {
        text += &format!(" on {node}");
    }
    if let Some(group) = group {
        text += &format!(" in group {group}");
    }
    text
}

fn label_text(label: &Label) -> String {
    let with = |what: String, why: &str| match why.is_empty() {
        true => what,
        false => format!("{what} ({why})"),
    };
    match label {
        Label::Rank(Claim {
            rank,
            world_size,
            group,
            node,
            evidence,
            ..
        }) => with(
            rank_text(*rank, *world_size, node.as_deref(), group.as_deref()),
            evidence,
        ),
        Label::Role(role) => format!("no rank ({role})"),
        Label::Unknown(reason) => with("unknown".to_owned(), reason),
    }
}

fn names_outcome(host: &PluginHost, plugin: &Plugin, settings: &[(String, String)], cases: &[NameCase]) -> Outcome {
    let traces: Vec<Trace> = cases
        .iter()
        .map(|case| Trace {
            path: case.name.clone(),
            kind: Kind::Kineto,
            size: 1 << 20,
            gpu_events: Some(true),
        })
        .collect();
    let answered = host.label(plugin, &traces, settings, Arc::new(SameContents::empty(traces.len())));
    let difference = |case: &NameCase, got: String| Difference {
        line: case.line,
        name: case.name.clone(),
        expected: case.expected.text(),
        got,
    };
    let differences = match answered {
        Ok(labels) => cases
            .iter()
            .zip(&labels)
            .filter(|(case, label)| !case.expected.fits(label))
            .map(|(case, label)| difference(case, label_text(label)))
            .collect(),
        Err(CallError { reason, .. }) => {
            // The whole list was lost, and the reason is the same for each.
            cases.iter().map(|case| difference(case, reason.to_string())).collect()
        }
    };
    Outcome {
        total: cases.len(),
        differences,
    }
}

fn answer_text(verdict: &ExpectedAnswer) -> String {
    format!(
        "{}, matched {:?}, triggered {:?}, busy {}",
        verdict.verdict.as_str(),
        verdict.matched,
        verdict.triggered,
        verdict.busy
    )
}

fn calls_outcome(
    host: &PluginHost,
    plugin: &Plugin,
    settings: &[(String, String)],
    calls: Vec<(usize, RecordedCall)>,
) -> Result<Outcome> {
    let total = calls.len();
    if total == 0 {
        bail!("it has no cases");
    }
    let mut differences = Vec::new();
    for (line, RecordedCall { name, call, expected }) in calls {
        let expected = expected.with_context(|| {
            format!("line {line}: no \"expected\": what the answer should be, {{\"verdict\": \"accepted\", \"triggered\": [4101]}} say")
        })?;
        let got = match host.interpret(plugin, &call, settings) {
            Ok(answer) if ExpectedAnswer::from(&answer) == expected => continue,
            Ok(answer) => format!("{} ({})", answer_text(&ExpectedAnswer::from(&answer)), answer.reason),
            Err(error) => error.reason.to_string(),
        };
        differences.push(Difference {
            line,
            name,
            expected: answer_text(&expected),
            got,
        });
    }
    Ok(Outcome { total, differences })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(rank: u32, node: Option<&str>) -> Label {
        Label::Rank(Claim {
            rank,
            world_size: None,
            group: None,
            node: node.map(str::to_owned),
            certain: false,
            evidence: "a test".into(),
        })
    }

    #[test]
    fn rows_are_read_by_their_columns_names() {
        let table = "rank\tnode\tname\trole\tnote\n3\tn01\ta \"b\".json\ttrace\tx\n\t\tb\ttrace\n7\t\tc\tmerged\n";
        let cases = read_names(table.as_bytes()).unwrap();
        let told: Vec<_> = cases
            .iter()
            .map(|case| (case.line, case.name.as_str(), case.expected.text()))
            .collect();
        assert_eq!(
            told,
            [
                (2, "a \"b\".json", "rank 3 on n01".to_owned()),
                (3, "b", "no rank, for the name does not tell it".to_owned()),
                (4, "c", "no rank (merged)".to_owned()),
            ]
        );
        assert!(cases[0].expected.fits(&label(3, Some("n01"))));
        assert!(!cases[0].expected.fits(&label(3, None)));
        assert!(!cases[1].expected.fits(&label(0, None)));
        assert!(!cases[1].expected.fits(&Label::Role("merged".into())));
        assert!(
            !cases[2].expected.fits(&label(7, None)),
            "a role is no rank, whatever its digits say"
        );
        assert!(cases[2].expected.fits(&Label::Unknown(String::new())));
    }

    #[test]
    fn tables_that_are_none_are_refused_by_line() {
        for (table, why) in [
            ("", "no column \"name\""),
            ("name\trank\n", "no column \"role\""),
            ("name\trole\trank\n", "it has no cases"),
            ("name\trole\trank\na\ttrace\tthree\n", "line 2: rank \"three\""),
            ("name\trole\trank\na\ttrace\t1\nb\t\t1\n", "line 3: no role"),
        ] {
            let error = read_names(table.as_bytes()).unwrap_err();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }
}
