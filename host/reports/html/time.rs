//! Where the GPU's time went, rank beside rank.

use std::fmt::Write;

use super::figures::GpuTime;
use super::svg::{Drawing, Part};
use super::table::{Cell, Table};
use super::text::{Shown, duration, name};
use super::{Source, TraceFigures};

/// Up to so many traces get a line each; more are columns.
const MOST_LINES: usize = 48;
/// A rank is called slow from this much more computation than the median on.
const SLOW: f64 = 0.03;

/// A trace with a rank or a name, and its time.
#[derive(Clone)]
pub(super) struct Lane {
    pub(super) trace: usize,
    pub(super) rank: Option<u32>,
    pub(super) time: GpuTime,
}

/// Traces that are compared.
pub(super) struct Lanes {
    /// The group, or none for traces of no rank.
    pub(super) group: Option<String>,
    pub(super) lanes: Vec<Lane>,
}

/// One picture.
pub(super) struct TimePanel {
    pub(super) name: Shown,
    /// What it comes to, in a sentence.
    pub(super) says: String,
    pub(super) picture: String,
}

/// The rank that holds the others up: where all wait for each other in collectives, the one that computes longest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slowest {
    pub(super) group: String,
    pub(super) rank: u32,
    /// How much longer it computes than the median of its group, as a part of that.
    pub(super) by: f64,
}

/// Traces with known times, by group, ranks in order; those of no rank last, each by itself.
pub(super) fn lanes(source: &Source) -> Vec<Lanes> {
    let lane = |figures: &TraceFigures| {
        let time = figures.time?;
        Some(Lane {
            trace: figures.trace,
            rank: source.assignment.traces[figures.trace].rank,
            time,
        })
    };
    let mut all: Vec<Lane> = source.figures.iter().filter_map(lane).collect();
    let group = |lane: &Lane| lane.rank.map(|_| source.assignment.traces[lane.trace].group.clone());
    all.sort_by_cached_key(|lane| (lane.rank.is_none(), group(lane), lane.rank, lane.trace));
    let mut lanes: Vec<Lanes> = Vec::new();
    for lane in all {
        let group = group(&lane);
        match lanes.last_mut() {
            Some(last) if last.group == group => last.lanes.push(lane),
            _ => lanes.push(Lanes {
                group,
                lanes: vec![lane],
            }),
        }
    }
    lanes
}

/// The slowest rank of a group of at least two, if it stands out.
pub(super) fn slowest(lanes: &Lanes) -> Option<Slowest> {
    let group = lanes.group.clone().filter(|_| lanes.lanes.len() > 1)?;
    let slowest = lanes.lanes.iter().max_by_key(|lane| lane.time.computation_ns)?;
    let mut others: Vec<u64> = lanes.lanes.iter().map(|lane| lane.time.computation_ns).collect();
    others.sort_unstable();
    let median = others[(others.len() - 1) / 2];
    let by = slowest.time.computation_ns as f64 / median as f64 - 1.0;
    (median > 0 && by >= SLOW).then_some(Slowest {
        group,
        rank: slowest.rank?,
        by,
    })
}

/// A picture for each group.
pub(super) fn panels(source: &Source) -> Vec<TimePanel> {
    lanes(source)
        .iter()
        .enumerate()
        .map(|(number, lanes)| panel(source, &format!("time{number}"), lanes))
        .collect()
}

fn panel(source: &Source, id: &str, lanes: &Lanes) -> TimePanel {
    let whole = lanes
        .lanes
        .iter()
        .map(|lane| lane.time.total_ns())
        .max()
        .unwrap_or(0)
        .max(1);
    let busy: f64 = lanes
        .lanes
        .iter()
        .map(|lane| share(lane.time.busy_ns(), lane.time.total_ns()))
        .sum();
    let busy = busy / lanes.lanes.len().max(1) as f64;
    let slowest = slowest(lanes);
    let mut says = format!("busy for {:.0} % of the time on average", busy * 100.0);
    if let Some(slowest) = &slowest {
        let _ = write!(
            says,
            "; rank {} computes {:.0} % longer than the median",
            slowest.rank,
            slowest.by * 100.0
        );
    }
    let slow_rank = slowest.map(|slowest| slowest.rank);
    let what = match &lanes.group {
        Some(group) => format!("GPU time of {} ranks of {group}", lanes.lanes.len()),
        None => "GPU time of traces of no known rank".to_owned(),
    };
    let picture = match lanes.lanes.len() <= MOST_LINES {
        true => lines(source, id, lanes, whole, slow_rank, &what, &says),
        false => columns(id, lanes, whole, slow_rank, &what, &says),
    };
    let name = match lanes.group.as_deref() {
        Some(".") => "the run's folder".into(),
        Some(group) => name(group),
        None => "traces of no rank".into(),
    };
    TimePanel { name, says, picture }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn parts(time: &GpuTime) -> [(&'static str, &'static str, u64); 3] {
    [
        ("computation", "computation", time.computation_ns),
        ("communication", "communication, exposed", time.exposed_communication_ns),
        ("copies", "memory copies", time.exposed_copies_ns),
    ]
}

fn lines(source: &Source, id: &str, lanes: &Lanes, whole: u64, slow: Option<u32>, title: &str, says: &str) -> String {
    const HEIGHT: f64 = 40.0;
    let mut drawing = Drawing::new();
    for (number, lane) in lanes.lanes.iter().enumerate() {
        let y = number as f64 * HEIGHT;
        let label = match lane.rank {
            Some(rank) => format!("rank {rank}"),
            None => name(&source.run.traces[lane.trace].display_path()).0,
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
                share(lane.time.busy_ns(), lane.time.total_ns()) * 100.0,
                duration(lane.time.total_ns() as f64)
            ),
        );
        drawing.rect(
            "idle",
            "0",
            y + 18.0,
            Part(share(lane.time.total_ns(), whole)),
            14.0,
            Some(&format!("{label}: idle {}", duration(lane.time.idle_ns as f64))),
        );
        let mut from = 0.0;
        for (class, word, nanoseconds) in parts(&lane.time) {
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
        .map(|lane| share(lane.time.total_ns(), whole) * ROWS)
        .collect();
    stack.path("idle", &outline(&vec![0.0; count], &totals, ROWS));
    for part in 0..3 {
        let class = parts(&lanes.lanes[0].time)[part].0;
        let top: Vec<f64> = base
            .iter()
            .zip(&lanes.lanes)
            .map(|(base, lane)| base + share(parts(&lane.time)[part].2, whole) * ROWS)
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
            "#hidden communication",
            "#copies alone",
        ],
    );
    for lanes in lanes(source) {
        for lane in lanes.lanes {
            let time = lane.time;
            let figure = |nanoseconds: u64| Cell::figure(duration(nanoseconds as f64), nanoseconds as f64);
            table.rows.push(vec![
                name(lanes.group.as_deref().unwrap_or("–")).into(),
                lane.rank
                    .map_or_else(|| "–".into(), |rank| Cell::figure(rank.to_string(), f64::from(rank))),
                name(&source.run.traces[lane.trace].display_path()).into(),
                figure(time.total_ns()),
                figure(time.busy_ns()),
                figure(time.idle_ns),
                figure(time.computation_ns),
                figure(time.exposed_communication_ns),
                figure(time.hidden_communication_ns),
                figure(time.exposed_copies_ns),
            ]);
        }
    }
    table.cut("the CSVs of each trace have them");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(computation: &[u64]) -> Lanes {
        let lane = |(rank, &computation_ns): (usize, &u64)| Lane {
            trace: rank,
            rank: Some(rank as u32),
            time: GpuTime {
                computation_ns,
                ..GpuTime::default()
            },
        };
        Lanes {
            group: Some("train".into()),
            lanes: computation.iter().enumerate().map(lane).collect(),
        }
    }

    #[test]
    fn a_rank_is_slow_against_the_median() {
        let slow = slowest(&lanes(&[100, 102, 131, 100])).unwrap();
        assert_eq!((slow.rank, (slow.by * 100.0).round()), (2, 31.0));
        assert_eq!(slowest(&lanes(&[100, 101, 102])), None);
        assert_eq!(slowest(&lanes(&[100])), None);
        assert_eq!(slowest(&lanes(&[0, 0, 5])), None);
    }

    #[test]
    fn outlines_close() {
        assert_eq!(outline(&[0.0, 1.0], &[2.0, 3.0], 10.0), "M0 10V8H1V7H2V9H1V10H0Z");
    }
}
