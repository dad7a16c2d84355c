//! Which kernels take the time, and how that differs between traces.

use super::Source;
use super::svg::{Drawing, Part};
use super::table::{Cell, Table};
use super::text::{duration, name, thousands};
use crate::reports::builtin::RunKernel;

/// Kernels that are drawn.
const DRAWN: usize = 12;
/// Kernels in the table.
const LISTED: usize = 200;

fn kernels<'a>(source: &Source<'a>) -> &'a [RunKernel] {
    source.figures.map_or(&[], |figures| &figures.kernels)
}

/// Nanoseconds of one trace that ran it, on average.
fn mean(kernel: &RunKernel) -> f64 {
    kernel.runs.total_ns as f64 / kernel.spread.traces.max(1) as f64
}

/// Bars of the kernels that take most: the mean over the traces that ran each, and from the least to the most of one trace.
pub(super) fn picture(source: &Source) -> Option<String> {
    const HEIGHT: f64 = 48.0;
    let kernels = kernels(source);
    let drawn = &kernels[..kernels.len().min(DRAWN)];
    let first = drawn.first()?;
    let labels = source.figures?.labels();
    let widest = drawn
        .iter()
        .map(|kernel| kernel.spread.greatest_ns)
        .max()
        .unwrap_or(0)
        .max(1) as f64;
    let mut drawing = Drawing::new();
    for (number, kernel) in drawn.iter().enumerate() {
        let (y, spread) = (number as f64 * HEIGHT, kernel.spread);
        let (least, greatest) = (spread.least_ns as f64, spread.greatest_ns as f64);
        let figures = format!(
            "{:.1} % · {}",
            kernel.share * 100.0,
            duration(kernel.runs.total_ns as f64)
        );
        drawing.clipped_text(y, 18.0, "68%", "label code", 13.0, &kernel.name);
        drawing.text("value end", "100%", y + 13.0, &figures);
        let tip = match spread.traces {
            1 => format!("{}: {}, in one trace", name(&kernel.name).0, duration(greatest)),
            traces => format!(
                "{}: {} a trace on average, from {} ({}) to {} ({}), in {traces} traces",
                name(&kernel.name).0,
                duration(mean(kernel)),
                duration(least),
                name(&labels[spread.least]).0,
                duration(greatest),
                name(&labels[spread.greatest]).0,
            ),
        };
        drawing.rect("track", "0", y + 20.0, "100%", 14.0, None);
        drawing.rect("kernel", "0", y + 20.0, Part(mean(kernel) / widest), 14.0, Some(&tip));
        if spread.traces > 1 {
            let (least, greatest) = (Part(least / widest), Part(greatest / widest));
            drawing.line("whisker", (least, y + 27.0), (greatest, y + 27.0));
            drawing.line("whisker", (least, y + 22.0), (least, y + 32.0));
            drawing.line("whisker", (greatest, y + 22.0), (greatest, y + 32.0));
        }
    }
    let says = format!(
        "{} takes {:.1} % of all kernel time; {} kernels in all",
        name(&first.name).0,
        first.share * 100.0,
        kernels.len()
    );
    Some(drawing.finish(
        "kernels",
        None,
        drawn.len() as f64 * HEIGHT,
        "Kernels that take the most time",
        &says,
    ))
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
        "#least of a trace",
        "in",
        "#most of a trace",
        "in",
    ];
    let mut table = Table::new("kernel-table", "Kernels", &columns);
    let kernels = kernels(source);
    let labels = source.figures.map(|figures| figures.labels()).unwrap_or_default();
    let figure = |nanoseconds: f64| Cell::figure(duration(nanoseconds), nanoseconds);
    for kernel in kernels.iter().take(LISTED) {
        let spread = kernel.spread;
        table.rows.push(vec![
            name(&kernel.name).into(),
            Cell::figure(format!("{:.1} %", kernel.share * 100.0), kernel.share),
            figure(kernel.runs.total_ns as f64),
            Cell::figure(thousands(kernel.runs.count), kernel.runs.count as f64),
            figure(kernel.runs.mean_ns()),
            Cell::figure(spread.traces.to_string(), spread.traces as f64),
            figure(mean(kernel)),
            figure(spread.least_ns as f64),
            name(&labels[spread.least]).into(),
            figure(spread.greatest_ns as f64),
            name(&labels[spread.greatest]).into(),
        ]);
    }
    if kernels.len() > LISTED {
        table.left_out = Some(format!(
            "{} more kernels are not shown: kernels.csv has them.",
            kernels.len() - LISTED
        ));
    }
    table
}
