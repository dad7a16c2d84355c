//! Where the GPU's time went, rank beside rank.

use std::fmt::Write;

use super::Source;
use super::ranks::group_name;
use super::svg::{Drawing, Part};
use super::table::{Cell, Table};
use super::text::{Shown, duration, name, thousands};
use crate::reports::builtin::{self, Evidence, Timeline};

/// Up to so many traces get a line each; more are columns.
const MOST_LINES: usize = 48;
/// Traces that are compared.
pub(super) struct Lanes<'a> {
    /// The group; empty for traces of no rank.
    pub(super) group: &'a str,
    pub(super) lanes: Vec<Lane<'a>>,
    /// Who holds the others up, if anybody does.
    slowest: Option<Slow<'a>>,
}

/// One trace.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a> {
    trace: &'a str,
    rank: Option<u32>,
    time: &'a Timeline,
}

/// The rank of a group that holds the others up.
#[derive(Clone, Copy)]
pub(super) struct Slow<'a> {
    pub(super) group: &'a str,
    pub(super) rank: u32,
    pub(super) percent: f64,
    pub(super) by: Evidence,
}

/// One picture.
pub(super) struct TimePanel {
    pub(super) name: Shown,
    /// What it comes to, in a sentence.
    pub(super) says: String,
    pub(super) picture: String,
}

/// Traces with known times, by group, ranks in order; those of no rank last.
fn lanes<'a>(source: &Source<'a>) -> Vec<Lanes<'a>> {
    let Some(figures) = source.figures else {
        return Vec::new();
    };
    let mut all: Vec<(&str, Lane)> = figures
        .ranks
        .iter()
        .filter_map(|row| {
            let rank = row.source.rank;
            let group = if rank.is_some() { row.source.group.as_str() } else { "" };
            Some((
                group,
                Lane {
                    trace: &row.source.trace,
                    rank,
                    time: row.timeline.as_ref()?,
                },
            ))
        })
        .collect();
    all.sort_by_key(|(group, lane)| (lane.rank.is_none(), *group, lane.rank, lane.trace));
    let mut lanes: Vec<Lanes> = Vec::new();
    for (group, lane) in all {
        match lanes.last_mut() {
            Some(last) if last.group == group => last.lanes.push(lane),
            _ => lanes.push(Lanes {
                group,
                lanes: vec![lane],
                slowest: slow(source).into_iter().find(|slow| slow.group == group),
            }),
        }
    }
    lanes
}

/// The ranks that hold their groups up by at least 1 %.
pub(super) fn slow<'a>(source: &Source<'a>) -> Vec<Slow<'a>> {
    let Some(figures) = source.figures else {
        return Vec::new();
    };
    let slow = |slowest: &'a builtin::Slowest| {
        let percent = slowest.excess * 100.0;
        let rank = figures.ranks.get(slowest.position)?.source.rank?;
        (percent >= 1.0).then_some(Slow {
            group: &slowest.group,
            rank,
            percent,
            by: slowest.by,
        })
    };
    figures.slowest.iter().filter_map(slow).collect()
}

impl Slow<'_> {
    /// What it does, after its name.
    pub(super) fn does(&self) -> String {
        match self.by {
            Evidence::Collectives => format!(
                "is the slowest: the others wait for it {:.1} % of their time",
                self.percent
            ),
            Evidence::Busy => format!(
                "is the slowest: its GPU is busy {:.1} % longer than the median",
                self.percent
            ),
        }
    }
}

/// A picture for each group.
pub(super) fn panels(source: &Source) -> Vec<TimePanel> {
    lanes(source)
        .iter()
        .enumerate()
        .map(|(number, lanes)| panel(&format!("time{number}"), lanes))
        .collect()
}

fn panel(id: &str, lanes: &Lanes) -> TimePanel {
    let whole = lanes
        .lanes
        .iter()
        .map(|lane| lane.time.total_ns)
        .max()
        .unwrap_or(0)
        .max(1);
    let busy: f64 = lanes.lanes.iter().map(|lane| lane.time.share(lane.time.busy_ns)).sum();
    let mut says = format!(
        "busy {:.0} % of the time on average",
        busy / lanes.lanes.len().max(1) as f64 * 100.0
    );
    if let Some(slow) = &lanes.slowest {
        let _ = write!(says, "; rank {} {}", slow.rank, slow.does());
    }
    let slow = lanes.slowest.map(|slow| slow.rank);
    let what = match lanes.group {
        "" => "GPU time of traces of no known rank".to_owned(),
        group => {
            let ranks = if lanes.lanes.len() == 1 { "rank" } else { "ranks" };
            format!("GPU time of {} {ranks} of {}", lanes.lanes.len(), group_name(group).0)
        }
    };
    let picture = match lanes.lanes.len() <= MOST_LINES {
        true => lines(id, lanes, whole, slow, &what, &says),
        false => columns(id, lanes, whole, slow, &what, &says),
    };
    let name = match lanes.group {
        "" => "traces of no rank".into(),
        group => group_name(group),
    };
    TimePanel { name, says, picture }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn parts(time: &Timeline) -> [(&'static str, &'static str, u64); 3] {
    [
        ("computation", "computation", time.computation_ns),
        ("communication", "communication, exposed", time.exposed_communication_ns),
        ("copies", "memory copies", time.exposed_memcpy_ns),
    ]
}

fn lines(id: &str, lanes: &Lanes, whole: u64, slow: Option<u32>, title: &str, says: &str) -> String {
    const HEIGHT: f64 = 46.0;
    let mut drawing = Drawing::new();
    for (number, lane) in lanes.lanes.iter().enumerate() {
        let y = number as f64 * HEIGHT;
        let label = match lane.rank {
            Some(rank) => format!("rank {rank}"),
            None => name(lane.trace).0,
        };
        let is_slow = lane.rank.is_some() && lane.rank == slow;
        drawing.text(
            if is_slow { "label strong" } else { "label" },
            "0",
            y + 12.0,
            &format!("{label}{}", if is_slow { " · slowest" } else { "" }),
        );
        drawing.text(
            "value end",
            "100%",
            y + 12.0,
            &format!(
                "{:.0} % busy of {}",
                share(lane.time.busy_ns, lane.time.total_ns) * 100.0,
                duration(lane.time.total_ns as f64)
            ),
        );
        drawing.rect(
            "idle",
            "0",
            y + 18.0,
            Part(share(lane.time.total_ns, whole)),
            14.0,
            Some(&format!("{label}: idle {}", duration(lane.time.idle_ns() as f64))),
        );
        let mut from = 0.0;
        for (class, word, nanoseconds) in parts(lane.time) {
            let width = share(nanoseconds, whole);
            if nanoseconds > 0 {
                let tip = format!("{label}: {word} {}", duration(nanoseconds as f64));
                drawing.rect(class, Part(from), y + 18.0, Part(width), 14.0, Some(&tip));
            }
            from += width;
        }
    }
    drawing.finish(id, None, lanes.lanes.len() as f64 * HEIGHT, title, says)
}

/// A column a rank, stacked from the bottom: computation, exposed communication, copies; what is left above is idle.
fn columns(id: &str, lanes: &Lanes, whole: u64, slow: Option<u32>, title: &str, says: &str) -> String {
    const ROWS: f64 = 160.0;
    let count = lanes.lanes.len();
    let mut stack = Drawing::new();
    let mut base = vec![0.0; count];
    let totals: Vec<f64> = lanes
        .lanes
        .iter()
        .map(|lane| share(lane.time.total_ns, whole) * ROWS)
        .collect();
    stack.path("idle", &outline(&vec![0.0; count], &totals, ROWS));
    for part in 0..3 {
        let class = parts(lanes.lanes[0].time)[part].0;
        let top: Vec<f64> = base
            .iter()
            .zip(&lanes.lanes)
            .map(|(base, lane)| base + share(parts(lane.time)[part].2, whole) * ROWS)
            .collect();
        stack.path(class, &outline(&base, &top, ROWS));
        base = top;
    }
    let mut drawing = Drawing::new();
    drawing.stretched(18.0, ROWS, (count, ROWS), stack);
    let place = |number: usize| Part((number as f64 + 0.5) / count as f64);
    if let Some((number, lane)) = lanes
        .lanes
        .iter()
        .enumerate()
        .find(|(_, lane)| slow.is_some() && lane.rank == slow)
    {
        drawing.line("pointer", (place(number), 14.0), (place(number), ROWS + 18.0));
        let side = match number as f64 / count as f64 {
            at if at < 0.2 => "value strong",
            at if at > 0.8 => "value strong end",
            _ => "value strong middle",
        };
        drawing.text(
            side,
            place(number),
            11.0,
            &format!("rank {} · slowest", lane.rank.unwrap_or_default()),
        );
    }
    let rank = |number: usize| {
        lanes.lanes[number]
            .rank
            .map_or(String::new(), |rank| format!("rank {rank}"))
    };
    drawing.text("axis", "0", ROWS + 34.0, &rank(0));
    drawing.text("axis middle", "50%", ROWS + 34.0, &rank(count / 2));
    drawing.text("axis end", "100%", ROWS + 34.0, &rank(count - 1));
    drawing.finish(id, None, ROWS + 38.0, title, says)
}

/// The stretch between two lines of steps, a step a column; `rows` is the bottom.
fn outline(low: &[f64], high: &[f64], rows: f64) -> String {
    let y = |value: f64| ((rows - value) * 10.0).round() / 10.0;
    let mut path = format!("M0 {}", y(low[0]));
    for (column, &value) in high.iter().enumerate() {
        let _ = write!(path, "V{}H{}", y(value), column + 1);
    }
    for (column, &value) in low.iter().enumerate().rev() {
        let _ = write!(path, "V{}H{column}", y(value));
    }
    path + "Z"
}

/// The figures behind the pictures.
pub(super) fn table(source: &Source) -> Table {
    let mut table = Table::new(
        "times",
        "GPU time",
        &[
            "group",
            "#rank",
            "trace",
            "#total",
            "#busy",
            "#idle",
            "#computation",
            "#exposed communication",
            "#overlapped communication",
            "#copies",
        ],
    );
    for lanes in lanes(source) {
        for lane in &lanes.lanes {
            let time = lane.time;
            let figure = |nanoseconds: u64| Cell::figure(duration(nanoseconds as f64), nanoseconds as f64);
            table.rows.push(vec![
                name(lanes.group).into(),
                lane.rank
                    .map_or_else(|| "–".into(), |rank| Cell::figure(rank.to_string(), f64::from(rank))),
                name(lane.trace).into(),
                figure(time.total_ns),
                figure(time.busy_ns),
                figure(time.idle_ns()),
                figure(time.computation_ns),
                figure(time.exposed_communication_ns),
                figure(time.overlapped_communication_ns()),
                figure(time.memcpy_ns),
            ]);
        }
    }
    table.cut("ranks.csv has them");
    table
}

/// Collectives over the ranks of each group.
pub(super) fn collectives(source: &Source) -> Table {
    let mut table = Table::new(
        "collectives",
        "Collectives",
        &[
            "group",
            "kind",
            "type",
            "#elements in",
            "#ranks",
            "#runs",
            "#total",
            "#mean",
            "#least of a rank",
            "#most of a rank",
            "waits for",
        ],
    );
    let Some(figures) = source.figures else { return table };
    let number = |number: Option<u64>| {
        number.map_or_else(Cell::default, |number| Cell::figure(thousands(number), number as f64))
    };
    let figure = |nanoseconds: f64| Cell::figure(duration(nanoseconds), nanoseconds);
    for row in &figures.collectives {
        let slowest = row
            .slowest
            .and_then(|position| figures.ranks.get(position)?.source.rank);
        table.rows.push(vec![
            name(&row.group).into(),
            name(&row.key.kind).into(),
            name(row.key.dtype.as_deref().unwrap_or_default()).into(),
            number(row.key.in_elements),
            number(row.key.group_size),
            number(Some(row.runs.count)),
            figure(row.runs.total_ns as f64),
            figure(row.runs.mean_ns()),
            figure(row.spread.least_ns as f64),
            figure(row.spread.greatest_ns as f64),
            slowest.map_or_else(Cell::default, |rank| format!("rank {rank}").into()),
        ]);
    }
    table.cut("collectives.csv has them");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_close() {
        assert_eq!(outline(&[0.0, 1.0], &[2.0, 3.0], 10.0), "M0 10V8H1V7H2V9H1V10H0Z");
    }
}
