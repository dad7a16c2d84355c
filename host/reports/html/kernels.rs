//! Which kernels take the time, and how that differs between traces.

use std::collections::HashMap;

use super::Source;
use super::svg::{Drawing, Part};
use super::table::{Cell, Table};
use super::text::{duration, name, thousands};

/// Kernels that are drawn.
const DRAWN: usize = 12;
/// Kernels in the table.
const LISTED: usize = 200;

/// One kernel over all traces. Nanoseconds.
struct Spread<'a> {
    name: &'a str,
    count: u64,
    total: f64,
    /// Traces that ran it.
    traces: u32,
    /// The smallest and the largest total of a trace that ran it.
    least: f64,
    most: f64,
}

impl Spread<'_> {
    fn mean(&self) -> f64 {
        self.total / f64::from(self.traces.max(1))
    }
}

/// All kernels, largest total first, and the total of all.
fn spreads<'a>(source: &'a Source) -> (Vec<Spread<'a>>, f64) {
    let mut by_name: HashMap<&str, Spread<'a>> = HashMap::new();
    for kernel in source.figures.iter().flat_map(|figures| &figures.kernels) {
        let spread = by_name.entry(&kernel.name).or_insert(Spread {
            name: &kernel.name,
            count: 0,
            total: 0.0,
            traces: 0,
            least: f64::INFINITY,
            most: 0.0,
        });
        spread.count += kernel.count;
        spread.total += kernel.total_ns;
        spread.traces += 1;
        spread.least = spread.least.min(kernel.total_ns);
        spread.most = spread.most.max(kernel.total_ns);
    }
    let all = by_name.values().map(|spread| spread.total).sum();
    let mut spreads: Vec<Spread> = by_name.into_values().collect();
    spreads.sort_by(|a, b| b.total.total_cmp(&a.total).then_with(|| a.name.cmp(b.name)));
    (spreads, all)
}

fn share(total: f64, all: f64) -> f64 {
    if all > 0.0 { total / all } else { 0.0 }
}

/// Bars of the kernels that take most: the mean over the traces that ran each, and from the least to the most of one trace.
pub(super) fn picture(source: &Source) -> Option<String> {
    const HEIGHT: f64 = 46.0;
    let (spreads, all) = spreads(source);
    let drawn = &spreads[..spreads.len().min(DRAWN)];
    let first = drawn.first()?;
    let widest = drawn.iter().map(|spread| spread.most).fold(0.0, f64::max);
    let mut drawing = Drawing::new();
    for (number, spread) in drawn.iter().enumerate() {
        let y = number as f64 * HEIGHT;
        let figures = format!("{:.1} % · {}", share(spread.total, all) * 100.0, duration(spread.total));
        drawing.clipped_text(y, 18.0, "68%", "label code", 13.0, spread.name);
        drawing.text("value end", "100%", y + 13.0, &figures);
        let tip = format!(
            "{}: {} a trace on average, {} to {}, in {}",
            name(spread.name).0,
            duration(spread.mean()),
            duration(spread.least),
            duration(spread.most),
            traces(spread.traces)
        );
        let bar = Part(share(spread.mean(), widest));
        drawing.rect("track", "0", y + 20.0, "100%", 14.0, None);
        drawing.rect("kernel", "0", y + 20.0, bar, 14.0, Some(&tip));
        if spread.traces > 1 {
            let (least, most) = (Part(share(spread.least, widest)), Part(share(spread.most, widest)));
            drawing.line("whisker", (least, y + 27.0), (most, y + 27.0));
            drawing.line("whisker", (least, y + 22.0), (least, y + 32.0));
            drawing.line("whisker", (most, y + 22.0), (most, y + 32.0));
        }
    }
    let says = format!(
        "{} takes {:.1} % of all kernel time; {} kernels in all",
        name(first.name).0,
        share(first.total, all) * 100.0,
        spreads.len()
    );
    Some(drawing.finish(
        "kernels",
        None,
        drawn.len() as f64 * HEIGHT,
        "Kernels that take the most time",
        &says,
    ))
}

fn traces(count: u32) -> String {
    if count == 1 {
        "1 trace".to_owned()
    } else {
        format!("{count} traces")
    }
}

/// The figures behind the picture.
pub(super) fn table(source: &Source) -> Table {
    let columns = [
        "kernel",
        "#share",
        "#total",
        "#runs",
        "#mean of a run",
        "#traces",
        "#mean of a trace",
        "#least",
        "#most",
    ];
    let mut table = Table::new("kernel-table", "Kernels", &columns);
    let (spreads, all) = spreads(source);
    let figure = |nanoseconds: f64| Cell::figure(duration(nanoseconds), nanoseconds);
    for spread in spreads.iter().take(LISTED) {
        table.rows.push(vec![
            name(spread.name).into(),
            Cell::figure(
                format!("{:.1} %", share(spread.total, all) * 100.0),
                share(spread.total, all),
            ),
            figure(spread.total),
            Cell::figure(thousands(spread.count), spread.count as f64),
            figure(spread.total / spread.count.max(1) as f64),
            Cell::figure(spread.traces.to_string(), f64::from(spread.traces)),
            figure(spread.mean()),
            figure(spread.least),
            figure(spread.most),
        ]);
    }
    if spreads.len() > LISTED {
        table.left_out = Some(format!(
            "{} more kernels are not shown: the CSVs have them.",
            spreads.len() - LISTED
        ));
    }
    table
}
