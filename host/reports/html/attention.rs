//! What needs attention, and the command that mends it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Source;
use super::capture;
use super::damage::damaged;
use super::ranks::{group_name, ranked};
use super::text::{Shown, name, shell_word, thousands};
use super::time;
use crate::bytes::{FlawKind, Verdict};
use crate::ranks::Conflict;
use crate::reports::{Status, folded_ranks};
use crate::traces::Kind;

/// Traces of one complaint that are named; the tables have the others.
const NAMED: usize = 3;

/// How bad it is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Bad,
    Warn,
    Note,
}

impl Weight {
    pub(super) fn class(self) -> &'static str {
        match self {
            Weight::Bad => "bad",
            Weight::Warn => "warn",
            Weight::Note => "note",
        }
    }

    /// The word that says the same as the colour.
    pub(super) fn word(self) -> &'static str {
        match self {
            Weight::Bad => "wrong",
            Weight::Warn => "look",
            Weight::Note => "note",
        }
    }
}

/// One thing.
pub(super) struct Item {
    pub(super) weight: Weight,
    /// What it is.
    pub(super) what: Shown,
    /// Details, a line each.
    pub(super) details: Vec<Shown>,
    /// What to do about it.
    pub(super) mend: String,
    /// The command that does it.
    pub(super) command: Option<Shown>,
    /// The anchor of the section that shows it.
    pub(super) section: &'static str,
}

/// All there is, the worst first.
pub(super) fn items(source: &Source) -> Vec<Item> {
    let mut items = Vec::new();
    refused(source, &mut items);
    failed(source, &mut items);
    ranks(source, &mut items);
    absent(source, &mut items);
    mended(source, &mut items);
    slow(source, &mut items);
    left_out(source, &mut items);
    items.sort_by_key(|item| item.weight);
    items
}

/// `tracemend WORDS PATH`; paths as the user would write them where he stood.
pub(super) fn command(words: &[&str], path: &Path, after: &[&str]) -> String {
    let mut parts = vec!["tracemend".to_owned()];
    parts.extend(words.iter().map(|word| (*word).to_owned()));
    parts.push(shell_word(path.as_os_str().as_bytes()));
    parts.extend(after.iter().map(|word| (*word).to_owned()));
    parts.join(" ")
}

impl Source<'_> {
    /// The path of trace `index` as the user would write it.
    fn path(&self, index: usize) -> std::path::PathBuf {
        match self.run.root.join(&self.run.traces[index].path) == self.named || self.named.is_file() {
            true => self.named.to_owned(),
            false => self.named.join(&self.run.traces[index].path),
        }
    }
}

fn first_names(source: &Source, traces: &[usize], why: impl Fn(usize) -> String) -> Vec<Shown> {
    let mut lines: Vec<Shown> = traces
        .iter()
        .take(NAMED)
        .map(|&index| {
            let why = why(index);
            let path = name(&source.run.traces[index].display_path()).0;
            Shown(if why.is_empty() { path } else { format!("{path}: {why}") })
        })
        .collect();
    if traces.len() > NAMED {
        lines.push(format!("and {} more", traces.len() - NAMED).into());
    }
    lines
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{} {noun}s", thousands(number as u64))
    }
}

fn refused(source: &Source, items: &mut Vec<Item>) {
    let traces = &source.run.traces;
    let refused: Vec<usize> = damaged(source.run)
        .into_iter()
        .filter(|&index| traces[index].findings.verdict == Verdict::Refused)
        .collect();
    if refused.is_empty() {
        return;
    }
    items.push(Item {
        weight: Weight::Bad,
        what: format!("{} cannot be mended", count(refused.len(), "trace")).into(),
        details: first_names(source, &refused, |index| {
            traces[index].findings.reason.clone().unwrap_or_default()
        }),
        mend: "Fetch it again from where it was written, or capture it again; this looks at it once more:".to_owned(),
        command: Some(command(&["scan"], &source.path(refused[0]), &[]).into()),
        section: "damage",
    });
}

fn failed(source: &Source, items: &mut Vec<Item>) {
    // A refused trace is told above.
    let failed: Vec<_> = source
        .rows
        .iter()
        .filter(|row| row.status == Status::Failure && !row.detail.starts_with("refused: "))
        .collect();
    if failed.is_empty() {
        return;
    }
    let mut details: Vec<Shown> = failed
        .iter()
        .take(NAMED)
        .map(|row| name(&format!("{}: {}", row.trace_file, row.detail)))
        .collect();
    if failed.len() > NAMED {
        details.push(format!("and {} more", failed.len() - NAMED).into());
    }
    items.push(Item {
        weight: Weight::Bad,
        what: format!("{} failed", count(failed.len(), "report")).into(),
        details,
        mend: "The log of each says all that TraceLens said. Once the cause is mended, this makes what is missing:"
            .to_owned(),
        command: Some(analyze(source, &["--resume"]).into()),
        section: "reports",
    });
}

fn analyze(source: &Source, more: &[&str]) -> String {
    let output = shell_word(source.output.as_os_str().as_bytes());
    command(&["analyze"], source.named, &[&["-o", output.as_str()], more].concat())
}

fn ranks(source: &Source, items: &mut Vec<Item>) {
    let paths = |traces: &[usize]| -> Vec<String> {
        traces
            .iter()
            .map(|&index| name(&source.run.traces[index].display_path()).0)
            .collect()
    };
    for group in ranked(source.assignment) {
        if !group.missing.is_empty() {
            let verb = if group.missing.len() == 1 { "is" } else { "are" };
            // Only ranks that run from 0 are a smaller world.
            let there = group.ranks.len();
            let is_world = there >= 2 && group.ranks.keys().copied().eq(0..there as u32);
            let (mend, command) = match is_world {
                true => (
                    "Bring their traces into the run. If these ranks are all there ever were, say so, and the others are compared:",
                    analyze(source, &["--world-size", &there.to_string()]),
                ),
                false => (
                    "Bring their traces into the run; this shows which trace is whose:",
                    command(&["ranks"], source.named, &[]),
                ),
            };
            items.push(Item {
                weight: Weight::Bad,
                what: format!(
                    "{} of {} {verb} missing in {}",
                    folded_ranks(&group.missing),
                    group.world_size,
                    group_name(&group.name).0
                )
                .into(),
                details: Vec::new(),
                mend: mend.to_owned(),
                command: Some(command.into()),
                section: "ranks",
            });
        }
        for conflict in &group.conflicts {
            let (what, details, trace) = match conflict {
                Conflict::Duplicate { rank, traces } => (
                    format!("rank {rank} of {} is claimed twice", group_name(&group.name).0),
                    paths(traces),
                    traces.first(),
                ),
                Conflict::Disagreement { trace, claims } => {
                    let claims = claims
                        .iter()
                        .map(|(by, rank, evidence)| format!("rank {rank} by {by}: {evidence}"));
                    (
                        format!(
                            "sources disagree on the rank of {}",
                            name(&source.run.traces[*trace].display_path()).0
                        ),
                        claims.collect(),
                        Some(trace),
                    )
                }
                Conflict::WorldSizes(sizes) => {
                    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
                    (
                        format!(
                            "the traces of {} name different world sizes: {}",
                            group_name(&group.name).0,
                            sizes.join(", ")
                        ),
                        Vec::new(),
                        None,
                    )
                }
                Conflict::OutsideWorld { rank, world_size } => (
                    format!(
                        "rank {rank} of {} lies outside its world of {world_size}",
                        group_name(&group.name).0
                    ),
                    Vec::new(),
                    None,
                ),
            };
            let explain = trace.map(|&index| {
                let path = shell_word(source.run.traces[index].path.as_os_str().as_bytes());
                command(&["ranks"], source.named, &["--explain", &path])
            });
            items.push(Item {
                weight: Weight::Warn,
                what: what.into(),
                details: details.iter().take(8).map(|line| name(line)).collect(),
                mend: "See who says what; a line in a file for --map settles it:".to_owned(),
                command: Some(explain.unwrap_or_else(|| command(&["ranks"], source.named, &[])).into()),
                section: "ranks",
            });
        }
    }
    let unranked: Vec<usize> = source
        .assignment
        .groups
        .iter()
        .flat_map(|group| group.unranked.iter().copied())
        .collect();
    let of_kineto = |&index: &usize| {
        let trace = &source.run.traces[index];
        trace.kind == Kind::Kineto && trace.findings.verdict != Verdict::Refused
    };
    let unranked: Vec<usize> = unranked.into_iter().filter(of_kineto).collect();
    if let Some(first) = unranked.first() {
        let path = shell_word(source.run.traces[*first].path.as_os_str().as_bytes());
        items.push(Item {
            weight: Weight::Warn,
            what: format!("{}: nobody knows whose", count(unranked.len(), "trace")).into(),
            details: first_names(source, &unranked, |_| String::new()),
            mend: "See what was looked at; --map FILE.csv is your last word, --by-elimination takes the one number that differs:".to_owned(),
            command: Some(command(&["ranks"], source.named, &["--explain", &path]).into()),
            section: "ranks",
        });
    }
}

fn absent(source: &Source, items: &mut Vec<Item>) {
    for (host, who) in capture::absent(source) {
        items.push(Item {
            weight: Weight::Warn,
            what: format!(
                "{} triggered on {host} left no file in the run",
                count(who.len(), "process").replace("processs", "processes")
            )
            .into(),
            details: who.iter().take(8).map(|who| who.clone().into()).collect(),
            mend: "If they are still written, or Kineto put them elsewhere, this brings them:".to_owned(),
            command: Some(command(&["capture", "wait"], source.named, &[]).into()),
            section: "capture",
        });
    }
}

fn mended(source: &Source, items: &mut Vec<Item>) {
    let traces = &source.run.traces;
    let mended: Vec<usize> = damaged(source.run)
        .into_iter()
        .filter(|&index| traces[index].findings.verdict == Verdict::Damaged)
        .collect();
    if mended.is_empty() {
        return;
    }
    let is_cut = |&&index: &&usize| {
        let kinds = &traces[index].findings.flaws.by_kind;
        kinds.contains_key(&FlawKind::Cut) || kinds.contains_key(&FlawKind::GzipCut)
    };
    let cut = mended.iter().filter(is_cut).count();
    let verb = if mended.len() == 1 { "was" } else { "were" };
    let mut what = format!(
        "{} {verb} damaged, and read through mended copies",
        count(mended.len(), "trace")
    );
    if cut > 0 {
        what.push_str(&format!("; {cut} of them cut short: counts from there are a floor"));
    }
    let why = |index: usize| {
        let kinds = traces[index].findings.flaws.by_kind.iter();
        kinds
            .map(|(kind, count)| format!("{} {}", thousands(*count), kind.name()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let path = source.path(mended[0]);
    let mut copy = path.clone();
    copy.set_extension("mended.json");
    let copy = shell_word(copy.as_os_str().as_bytes());
    items.push(Item {
        weight: Weight::Note,
        what: what.into(),
        details: first_names(source, &mended, why),
        mend: "The originals are as they were. To keep a mended copy for other readers:".to_owned(),
        command: Some(command(&["repair"], &path, &["-o", &copy]).into()),
        section: "damage",
    });
}

fn slow(source: &Source, items: &mut Vec<Item>) {
    for slow in time::slow(source) {
        items.push(Item {
            weight: Weight::Note,
            what: format!("rank {} of {} {}", slow.rank, group_name(slow.group).0, slow.does()).into(),
            details: Vec::new(),
            mend: "Compare its kernels with another rank's, and look at its node's clocks and neighbours.".to_owned(),
            command: None,
            section: "time",
        });
    }
}

fn left_out(source: &Source, items: &mut Vec<Item>) {
    let skipped = &source.run.skipped;
    if skipped.is_empty() {
        return;
    }
    let details = skipped
        .iter()
        .take(NAMED)
        .map(|skipped| name(&format!("{}: {}", skipped.path.display(), skipped.reason)));
    items.push(Item {
        weight: Weight::Warn,
        what: format!("{} left out of the run", count(skipped.len(), "path")).into(),
        details: details.collect(),
        mend: "Make them readable, or give tracemend the folder they lead to.".to_owned(),
        command: None,
        section: "reports",
    });
}
