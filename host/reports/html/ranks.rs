//! Whose traces are there: the state of every rank, and its picture.

use std::collections::BTreeMap;

use super::Source;
use super::svg::{Drawing, Px};
use super::table::{Cell, Table};
use super::text::{Shown, name, size};
use crate::bytes::Verdict;
use crate::ranks::{Assignment, Group};
use crate::reports::folded_ranks;
use crate::traces::Run;

/// Cells a picture has at most; more ranks than that share cells.
const MOST_CELLS: u64 = 1024;
/// Pictures of groups; the tables have the others.
const MOST_GROUPS: usize = 24;

/// How it stands with one rank, the worse the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Present,
    Mended,
    ClaimedTwice,
    Missing,
    Refused,
}

impl State {
    pub(super) const ALL: [State; 5] = [
        State::Present,
        State::Mended,
        State::ClaimedTwice,
        State::Missing,
        State::Refused,
    ];

    pub(super) fn of(run: &Run, group: &Group, rank: u32) -> State {
        let Some(traces) = group.ranks.get(&rank) else {
            return State::Missing;
        };
        let verdict = |verdict| {
            traces
                .iter()
                .any(|&index| run.traces[index].findings.verdict == verdict)
        };
        match traces.len() {
            _ if verdict(Verdict::Refused) => State::Refused,
            2.. => State::ClaimedTwice,
            _ if verdict(Verdict::Damaged) => State::Mended,
            _ => State::Present,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            State::Present => "present",
            State::Mended => "mended",
            State::ClaimedTwice => "claimed twice",
            State::Missing => "missing",
            State::Refused => "refused",
        }
    }

    fn class(self) -> &'static str {
        match self {
            State::Present => "present",
            State::Mended => "mended",
            State::ClaimedTwice => "twice",
            State::Missing => "missing",
            State::Refused => "refused",
        }
    }

    /// One character for a terminal.
    pub(super) fn character(self) -> char {
        match self {
            State::Present => '=',
            State::Mended => 'm',
            State::ClaimedTwice => '2',
            State::Missing => '.',
            State::Refused => 'X',
        }
    }
}

/// How many cells a line of ranks has, and how many ranks share one: no more than `most` cells.
pub(super) fn folded(group: &Group, most: u64) -> (u64, u64) {
    let last = group.ranks.last_key_value().map_or(0, |(&rank, _)| u64::from(rank) + 1);
    let ranks = last.max(u64::from(group.world_size));
    let share = ranks.div_ceil(most).max(1);
    (ranks.div_ceil(share), share)
}

/// The worst state among the ranks `from..from + share`.
pub(super) fn worst(run: &Run, group: &Group, from: u64, share: u64) -> State {
    let last = group.ranks.last_key_value().map_or(0, |(&rank, _)| u64::from(rank) + 1);
    let end = (from + share).min(last.max(u64::from(group.world_size)));
    let (from, end) = (
        from.min(u64::from(u32::MAX)) as u32,
        end.min(u64::from(u32::MAX)) as u32,
    );
    let claimed = group.ranks.range(from..end);
    let whole = claimed.clone().count() as u64 == u64::from(end.saturating_sub(from));
    let worst = claimed.map(|(&rank, _)| State::of(run, group, rank)).max();
    match (worst, whole) {
        (Some(worst), true) => worst,
        (Some(worst), false) => worst.max(State::Missing),
        (None, _) => State::Missing,
    }
}

/// One group of ranks.
pub(super) struct GroupPanel {
    pub(super) name: Shown,
    /// `4 of 4 ranks`.
    pub(super) summary: String,
    /// Blocks of cells, a node or a stretch of ranks each: label and picture.
    pub(super) blocks: Vec<(Shown, String)>,
    /// States that occur, with how many ranks each has.
    pub(super) legend: Vec<(&'static str, &'static str, u64)>,
    /// How many ranks share a cell, if more than one.
    pub(super) share: Option<u64>,
}

/// The groups that hold ranks, at most [`MOST_GROUPS`], those with something amiss first; and how many more there are.
pub(super) fn groups(source: &Source) -> (Vec<GroupPanel>, usize) {
    let mut groups: Vec<&Group> = ranked(source.assignment).collect();
    let more = groups.len().saturating_sub(MOST_GROUPS);
    if more > 0 {
        groups.sort_by_key(|group| group.complete_set().is_some());
        groups.truncate(MOST_GROUPS);
    }
    let panel = |(number, group): (usize, &&Group)| panel(source, number, group);
    (groups.iter().enumerate().map(panel).collect(), more)
}

/// The groups that hold ranks.
pub(super) fn ranked(assignment: &Assignment) -> impl Iterator<Item = &Group> {
    assignment.groups.iter().filter(|group| !group.ranks.is_empty())
}

fn panel(source: &Source, number: usize, group: &Group) -> GroupPanel {
    let (cells, share) = folded(group, MOST_CELLS);
    let states: Vec<State> = (0..cells)
        .map(|cell| worst(source.run, group, cell * share, share))
        .collect();
    let counted = |state: State| states.iter().filter(|&&other| other == state).count() as u64;
    let legend = State::ALL
        .into_iter()
        .map(|state| (state.class(), state.word(), counted(state)));
    let id = format!("group{number}");
    let blocks = match nodes(source, group, share) {
        Some(nodes) => nodes
            .into_iter()
            .enumerate()
            .map(|(place, (node, ranks))| {
                let cells: Vec<(u64, State)> = ranks.into_iter().map(|rank| (rank, states[rank as usize])).collect();
                (
                    name(&node),
                    block(source, group, &format!("{id}-{place}"), &node, &cells, 1, states.len()),
                )
            })
            .collect(),
        None => {
            let all: Vec<(u64, State)> = (0..).map(|cell| cell * share).zip(states.iter().copied()).collect();
            let a_block = if all.len() > 256 { 256 } else { 64 };
            let several = all.len() > a_block;
            all.chunks(a_block)
                .enumerate()
                .map(|(place, cells)| {
                    let (first, last) = (cells[0].0, cells[cells.len() - 1].0 + share - 1);
                    let label = if several {
                        format!("ranks {first}-{last}")
                    } else {
                        String::new()
                    };
                    let title = format!("ranks {first} to {last}");
                    (
                        label.into(),
                        block(
                            source,
                            group,
                            &format!("{id}-{place}"),
                            &title,
                            cells,
                            share,
                            states.len(),
                        ),
                    )
                })
                .collect()
        }
    };
    GroupPanel {
        name: group_name(&group.name),
        summary: of_world(group),
        blocks,
        legend: legend.filter(|(_, _, count)| *count > 0).collect(),
        share: (share > 1).then_some(share),
    }
}

/// What a group is called: `.` is the run's own folder.
pub(super) fn group_name(group: &str) -> Shown {
    if group == "." {
        "the run's folder".into()
    } else {
        name(group)
    }
}

/// `3 of 4 ranks`.
pub(super) fn of_world(group: &Group) -> String {
    match group.ranks.len() as u64 {
        ranks if group.world_size_is_known => format!("{ranks} of {} ranks", group.world_size),
        1 => "1 rank".to_owned(),
        ranks if group.missing.is_empty() => format!("{ranks} ranks"),
        ranks => format!("{ranks} of {} ranks", group.world_size),
    }
}

/// The ranks of each node, if every claimed rank's node is known; missing ranks come last, under no node. None where ranks share cells.
fn nodes(source: &Source, group: &Group, share: u64) -> Option<Vec<(String, Vec<u64>)>> {
    if share > 1 {
        return None;
    }
    let mut of_node: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (&rank, traces) in &group.ranks {
        let node = source.assignment.traces[*traces.first()?].node.as_deref()?;
        of_node.entry(node).or_default().push(u64::from(rank));
    }
    let mut nodes: Vec<(String, Vec<u64>)> = of_node
        .into_iter()
        .map(|(node, ranks)| (node.to_owned(), ranks))
        .collect();
    nodes.sort_by_key(|(_, ranks)| ranks[0]);
    let missing: Vec<u64> = group.missing.iter().map(|&rank| u64::from(rank)).collect();
    if !missing.is_empty() {
        nodes.push(("missing".to_owned(), missing));
    }
    Some(nodes)
}

/// A block of cells. `title` says whose they are; `all` cells of the group decide how large one is.
fn block(
    source: &Source,
    group: &Group,
    id: &str,
    title: &str,
    cells: &[(u64, State)],
    share: u64,
    all: usize,
) -> String {
    let (side, gap, a_row) = match all {
        0..=64 => (34.0, 4.0, 8),
        65..=256 => (17.0, 3.0, 16),
        _ => (9.0, 2.0, 32),
    };
    let mut drawing = Drawing::new();
    for (place, &(rank, state)) in cells.iter().enumerate() {
        let x = (place % a_row) as f64 * (side + gap);
        let y = (place / a_row) as f64 * (side + gap);
        let tip = if share > 1 {
            format!("ranks {rank}-{}: at worst {}", rank + share - 1, state.word())
        } else {
            tip(source, group, rank as u32, state)
        };
        let inset = if state == State::Missing { 0.75 } else { 0.0 };
        drawing.rect(
            state.class(),
            Px(x + inset),
            y + inset,
            Px(side - 2.0 * inset),
            side - 2.0 * inset,
            Some(&tip),
        );
        mark(&mut drawing, state, x, y, side);
        if side > 30.0 {
            drawing.text(
                &format!("middle on-{}", state.class()),
                Px(x + side / 2.0),
                y + side / 2.0 + 4.5,
                &rank.to_string(),
            );
        }
    }
    let columns = cells.len().min(a_row) as f64;
    let rows = cells.len().div_ceil(a_row) as f64;
    let described: Vec<String> = State::ALL
        .into_iter()
        .filter_map(|state| {
            let ranks: Vec<u32> = cells
                .iter()
                .filter(|cell| cell.1 == state)
                .map(|cell| cell.0 as u32)
                .collect();
            (!ranks.is_empty()).then(|| format!("{}: {}", state.word(), folded_ranks(&ranks)))
        })
        .collect();
    drawing.finish(
        id,
        Some(columns * (side + gap) - gap),
        rows * (side + gap) - gap,
        title,
        &described.join("; "),
    )
}

/// What tells a state from others without its colour.
fn mark(drawing: &mut Drawing, state: State, x: f64, y: f64, side: f64) {
    let at = |dx: f64, dy: f64| format!("{} {}", Px(x + dx), Px(y + dy));
    match state {
        State::Present | State::Missing => {}
        // A patched corner.
        State::Mended => drawing.path(
            "patch",
            &format!("M{}L{}L{}Z", at(side * 0.58, 0.0), at(side, 0.0), at(side, side * 0.42)),
        ),
        // A second card behind the first.
        State::ClaimedTwice => drawing.path(
            "seam",
            &format!(
                "M{}L{}L{}",
                at(side * 0.18, side),
                at(side * 0.18, side * 0.18),
                at(side, side * 0.18)
            ),
        ),
        State::Refused => drawing.path(
            "cross",
            &format!(
                "M{}L{}M{}L{}",
                at(1.5, 1.5),
                at(side - 1.5, side - 1.5),
                at(side - 1.5, 1.5),
                at(1.5, side - 1.5)
            ),
        ),
    }
}

fn tip(source: &Source, group: &Group, rank: u32, state: State) -> String {
    let paths = group.ranks.get(&rank).into_iter().flatten().take(3);
    let paths: Vec<String> = paths
        .map(|&index| name(&source.run.traces[index].display_path()).0)
        .collect();
    match paths.is_empty() {
        true => format!("rank {rank}: {}", state.word()),
        false => format!("rank {rank}: {}, {}", state.word(), paths.join(", ")),
    }
}

/// Whose every trace is, and on what evidence.
pub(super) fn evidence(source: &Source) -> Table {
    let mut table = Table::new(
        "evidence",
        "Whose every trace is",
        &[
            "group", "#rank", "state", "trace", "known by", "evidence", "node", "#size", "files",
        ],
    );
    let mut order: Vec<usize> = (0..source.run.traces.len()).collect();
    let assigned = &source.assignment.traces;
    order.sort_by_key(|&index| {
        (
            assigned[index].rank.is_none(),
            &assigned[index].group,
            assigned[index].rank,
        )
    });
    let groups: BTreeMap<&str, &Group> = source
        .assignment
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group))
        .collect();
    for index in order {
        let (trace, whose) = (&source.run.traces[index], &assigned[index]);
        let (rank, state) = match (whose.rank, groups.get(whose.group.as_str())) {
            (Some(rank), Some(group)) => {
                let state = State::of(source.run, group, rank);
                let tone = if state == State::Present {
                    "good"
                } else if state == State::Refused {
                    "bad"
                } else {
                    "warn"
                };
                (
                    Cell::figure(rank.to_string(), f64::from(rank)),
                    Cell::toned(state.word(), tone),
                )
            }
            _ => {
                let (word, tone) = verdict(trace.findings.verdict);
                let what = match &whose.role {
                    Some(role) => Cell::from(format!("{role}, of no rank")),
                    None => Cell::toned(format!("{word}, of no known rank"), tone),
                };
                (Cell::from("–"), what)
            }
        };
        table.rows.push(vec![
            name(&whose.group).into(),
            rank,
            state,
            name(&trace.display_path()).into(),
            whose.by.clone().unwrap_or_default().into(),
            name(&whose.evidence).into(),
            whose.node.clone().unwrap_or_default().into(),
            Cell::figure(size(trace.stored_size), trace.stored_size as f64),
        ]);
    }
    table.cut("`tracemend ranks RUN` lists every trace");
    table.open = table.rows.len() <= 12;
    table
}

/// A verdict's word and tone.
pub(super) fn verdict(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Clean => ("clean", "good"),
        Verdict::Damaged => ("mended", "warn"),
        Verdict::Refused => ("refused", "bad"),
    }
}
