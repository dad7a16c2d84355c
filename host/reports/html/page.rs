//! The page itself: the view that the template is filled with.

use std::path::Path;

use anyhow::Result;
use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::attention::{self, Item};
use super::capture::{self, CapturePanel};
use super::damage::{self, Card};
use super::glance::{self, Fact};
use super::outputs::Outputs;
use super::ranks::{self, GroupPanel};
use super::table::{Cell, Table};
use super::text::{Shown, date, name};
use super::time::{self, TimePanel};
use super::{Source, kernels};
use crate::reports::Status;

const STYLE: &str = include_str!("templates/style.css");
const SCRIPT: &str = include_str!("templates/page.js");

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    policy: String,
    style: &'a str,
    script: &'a str,
    run: Shown,
    date: String,
    sentence: Shown,
    tone: &'static str,
    facts: Vec<Fact>,
    attention: Vec<Item>,
    groups: Vec<GroupPanel>,
    more_groups: usize,
    evidence: Table,
    cards: Vec<Card>,
    more_cards: usize,
    damaged: Table,
    places: Table,
    times: Vec<TimePanel>,
    time_table: Table,
    collectives: Table,
    kernels: Option<String>,
    kernel_table: Table,
    captures: Vec<CapturePanel>,
    more_captures: usize,
    capture_table: Table,
    reports: Table,
    files: Vec<(String, String)>,
    reporter: Shown,
    command: Shown,
    version: &'static str,
}

/// The page as it stands in `folder`.
pub(super) fn render(source: &Source, folder: &Path) -> Result<String> {
    let outputs = Outputs::find(source, folder);
    let attention = attention::items(source);
    let (groups, more_groups) = ranks::groups(source);
    let (cards, more_cards) = damage::cards(source, &outputs);
    let (captures, more_captures) = capture::panels(source);
    let page = Page {
        policy: policy(),
        style: STYLE,
        script: SCRIPT,
        run: name(
            &source
                .run
                .root
                .file_name()
                .unwrap_or(source.run.root.as_os_str())
                .to_string_lossy(),
        ),
        date: date(source.made_at),
        sentence: name(&glance::sentence(source)),
        tone: glance::tone(&attention),
        facts: glance::facts(source),
        attention,
        groups,
        more_groups,
        evidence: ranks::evidence(source),
        cards,
        more_cards,
        damaged: damage::by_trace(source),
        places: damage::by_place(source),
        times: time::panels(source),
        time_table: with_file(time::table(source), &outputs, "ranks.csv"),
        collectives: with_file(time::collectives(source), &outputs, "collectives.csv"),
        kernels: kernels::picture(source),
        kernel_table: with_file(kernels::table(source), &outputs, "kernels.csv"),
        captures,
        more_captures,
        capture_table: capture::table(source),
        reports: reports(source, &outputs),
        files: outputs.of_run.clone(),
        reporter: source.reporter.into(),
        command: attention::command(&["analyze"], source.named, &[]).into(),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

/// Nothing but the file's own style and script, by their hashes (CSP Level 3, 2.3.1).
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

fn with_file(mut table: Table, outputs: &Outputs, name: &str) -> Table {
    table.file = outputs.file(name);
    table
}

fn reports(source: &Source, outputs: &Outputs) -> Table {
    let mut table = Table::new(
        "report-table",
        "Reports",
        &["status", "report", "group", "#rank", "files", "#seconds", "detail"],
    );
    for (number, row) in source.rows.iter().enumerate() {
        let tone = match row.status {
            Status::Success => "good",
            Status::Failure => "bad",
            Status::Skipped => "",
        };
        let detail = match row.detail.as_str() {
            "" if row.mended => "from a mended copy",
            detail => detail,
        };
        table.rows.push(vec![
            Cell::toned(row.status.as_str().to_lowercase(), tone),
            name(&row.trace_file).into(),
            name(&row.group).into(),
            row.rank
                .map_or_else(Cell::default, |rank| Cell::figure(rank.to_string(), f64::from(rank))),
            Cell {
                links: outputs.of_job(number),
                ..Cell::default()
            },
            Cell::figure(format!("{:.1}", row.seconds), row.seconds),
            name(detail).into(),
        ]);
    }
    table.file = outputs.file("tracelens_summary.csv");
    table.cut("the summary has them");
    table.open = table.rows.len() <= 24;
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_end_where_their_elements_do() {
        assert!(!STYLE.contains("</") && !SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
    }
}
