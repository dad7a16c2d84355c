//! What the capture manifests in the run tell: when it was asked, what was answered, which process left which file. Their format is
//! described in plugins/capture-manifest/README.md.

use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Source;
use super::svg::{Drawing, Part};
use super::table::{Cell, Table};
use super::text::{Shown, date, name};
use crate::bytes::Findings;
use crate::traces::Run;

/// Manifests that get a picture, and processes in one.
const MOST_PICTURES: usize = 16;
const MOST_LANES: usize = 32;
/// A file that is written later than this after its capture was touched by something else.
const LATEST: f64 = 86_400.0;
/// Clocks of a host and of its file server differ by less than this, usually.
const CLOCK_SLACK: f64 = 2.0;

/// One request to a daemon.
#[derive(Debug, Deserialize)]
struct Attempt {
    time: f64,
    attempt: u32,
    verdict: String,
    #[serde(default)]
    reason: String,
}

/// One process that was triggered.
#[derive(Debug, Deserialize)]
struct Process {
    pid: i64,
    #[serde(default)]
    rank: Option<u32>,
    #[serde(default)]
    trace: Option<String>,
}

/// One host's capture.
struct Capture {
    /// What manifests of one capture share.
    capture: Option<String>,
    host: String,
    captured_at: Option<f64>,
    attempts: Vec<Attempt>,
    files: Vec<Expected>,
}

/// A process and what it left.
struct Expected {
    pid: i64,
    rank: Option<u32>,
    file: String,
    /// The trace's position in the run; none if it is not there.
    trace: Option<usize>,
    /// When it was written, in seconds since 1970, where its time can be that.
    written: Option<f64>,
}

/// One picture.
pub(super) struct CapturePanel {
    pub(super) name: Shown,
    pub(super) says: String,
    pub(super) picture: Option<String>,
    /// How many processes are not drawn.
    pub(super) more: usize,
}

fn captures(source: &Source) -> Vec<Capture> {
    let manifests = source
        .run
        .traces
        .iter()
        .filter(|trace| trace.findings.keys.iter().any(|key| key == "tracemend_manifest"));
    let mut captures: Vec<Capture> = manifests
        .map(|trace| {
            let findings = &trace.findings;
            let captured_at: Option<f64> = member(findings, "captured_at").filter(|at: &f64| at.is_finite());
            let folder = trace.path.parent().unwrap_or(Path::new(""));
            let processes: Vec<serde_json::Value> = member(findings, "processes").unwrap_or_default();
            let processes = processes
                .into_iter()
                .filter_map(|process| serde_json::from_value::<Process>(process).ok());
            let attempts: Vec<serde_json::Value> = member(findings, "attempts").unwrap_or_default();
            let attempts = attempts
                .into_iter()
                .filter_map(|attempt| serde_json::from_value::<Attempt>(attempt).ok());
            Capture {
                capture: member(findings, "capture"),
                host: member(findings, "host").unwrap_or_else(|| "unknown host".to_owned()),
                captured_at,
                attempts: attempts.filter(|attempt| attempt.time.is_finite()).collect(),
                files: processes
                    .map(|process| expected(source.run, folder, captured_at, process))
                    .collect(),
            }
        })
        .collect();
    let time = |capture: &Capture| capture.captured_at.unwrap_or(f64::INFINITY);
    captures.sort_by(|a, b| time(a).total_cmp(&time(b)).then_with(|| a.host.cmp(&b.host)));
    // Ranks that register late are triggered later and noted in a manifest of their own, with all attempts so far.
    let mut joined: Vec<Capture> = Vec::new();
    for mut capture in captures {
        let same = |other: &&mut Capture| {
            other.capture.is_some() && other.capture == capture.capture && other.host == capture.host
        };
        match joined.iter_mut().find(same) {
            Some(first) => {
                first.files.append(&mut capture.files);
                if capture.attempts.len() > first.attempts.len() {
                    first.attempts = capture.attempts;
                }
            }
            None => joined.push(capture),
        }
    }
    joined
}

fn member<T: DeserializeOwned>(findings: &Findings, key: &str) -> Option<T> {
    let member = findings.members.iter().find(|member| member.key == key)?;
    serde_json::from_str(&member.text).ok()
}

fn expected(run: &Run, folder: &Path, captured_at: Option<f64>, process: Process) -> Expected {
    let file = process.trace.unwrap_or_default();
    let file = file.rsplit('/').next().unwrap_or_default().to_owned();
    let is_it = |path: &Path| {
        let there = path.file_name().is_some_and(|there| {
            let there = there.to_string_lossy();
            there == file.as_str() || there.strip_suffix(".gz") == Some(&file)
        });
        there && path.starts_with(folder)
    };
    let trace = run.traces.iter().position(|trace| is_it(&trace.path));
    let written = trace.and_then(|index| {
        let modified = run.open(index).ok()?.metadata().ok()?.modified().ok()?.into_std();
        let at = modified.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
        let captured_at = captured_at?;
        (captured_at - CLOCK_SLACK..captured_at + LATEST)
            .contains(&at)
            .then_some(at)
    });
    Expected {
        pid: process.pid,
        rank: process.rank,
        file,
        trace,
        written,
    }
}

impl Expected {
    fn who(&self) -> String {
        match self.rank {
            Some(rank) => format!("pid {}, rank {rank}", self.pid),
            None => format!("pid {}", self.pid),
        }
    }
}

/// Processes that were triggered and whose files are not in the run: their host and who they are.
pub(super) fn absent(source: &Source) -> Vec<(String, Vec<String>)> {
    let of_host = |capture: Capture| {
        let absent: Vec<String> = capture
            .files
            .iter()
            .filter(|file| file.trace.is_none())
            .map(Expected::who)
            .collect();
        (!absent.is_empty()).then_some((capture.host, absent))
    };
    captures(source).into_iter().filter_map(of_host).collect()
}

/// A picture for each manifest, and how many have none.
pub(super) fn panels(source: &Source) -> (Vec<CapturePanel>, usize) {
    let captures = captures(source);
    let more = captures.len().saturating_sub(MOST_PICTURES);
    let shown = captures.iter().take(MOST_PICTURES).enumerate();
    (
        shown
            .map(|(number, capture)| panel(&format!("capture{number}"), capture))
            .collect(),
        more,
    )
}

fn panel(id: &str, capture: &Capture) -> CapturePanel {
    let there = capture.files.iter().filter(|file| file.trace.is_some()).count();
    let mut says = format!("{there} of {} files are in the run", capture.files.len());
    if let Some(at) = capture.captured_at {
        says = format!("accepted {} UTC; {says}", date(at.max(0.0) as u64));
    }
    CapturePanel {
        name: name(&capture.host),
        picture: picture(id, capture, &says),
        says,
        more: capture.files.len().saturating_sub(MOST_LANES),
    }
}

/// A line for the requests and one for each process, over time; none where the manifest has no time.
fn picture(id: &str, capture: &Capture, says: &str) -> Option<String> {
    const HEIGHT: f64 = 36.0;
    let accepted = capture.captured_at?;
    let files = &capture.files[..capture.files.len().min(MOST_LANES)];
    let times = || {
        capture
            .attempts
            .iter()
            .map(|attempt| attempt.time)
            .chain(files.iter().filter_map(|file| file.written))
    };
    let first = times().fold(accepted, f64::min);
    let last = times().fold(accepted, f64::max);
    // Room at both ends, so that no mark is cut.
    let span = (last - first).max(0.1);
    let place = |at: f64| Part(0.02 + 0.96 * (at - first) / span);
    let since = |at: f64| format!("{:+.1} s", at - accepted);

    let mut drawing = Drawing::new();
    let lanes = files.len() as f64 + 1.0;
    drawing.line("now", (place(accepted), 14.0), (place(accepted), lanes * HEIGHT));
    drawing.text("label", "0", 12.0, "requests to dynolog");
    drawing.line("track-line", ("0", 24.0), ("100%", 24.0));
    for attempt in &capture.attempts {
        let class = match attempt.verdict.as_str() {
            "accepted" => "accepted",
            "waiting" | "busy" => "asked",
            _ => "failed",
        };
        let tip = format!(
            "attempt {}, {}: {}: {}",
            attempt.attempt,
            since(attempt.time),
            attempt.verdict,
            name(&attempt.reason).0
        );
        drawing.circle(class, place(attempt.time), 24.0, 6.0, Some(&tip));
    }
    if capture.attempts.is_empty() {
        drawing.circle("accepted", place(accepted), 24.0, 6.0, Some("accepted"));
    }
    for (number, file) in files.iter().enumerate() {
        let y = (number as f64 + 1.0) * HEIGHT;
        drawing.text("label", "0", y + 12.0, &file.who());
        drawing.line("track-line", ("0", y + 24.0), ("100%", y + 24.0));
        let (class, word) = match (file.trace, file.written) {
            (Some(_), Some(at)) => {
                let (from, to) = (
                    0.02 + 0.96 * (accepted - first) / span,
                    0.02 + 0.96 * (at - first) / span,
                );
                drawing.rect("writing", Part(from), y + 21.0, Part((to - from).max(0.0)), 6.0, None);
                drawing.circle(
                    "accepted",
                    place(at),
                    y + 24.0,
                    6.0,
                    Some(&format!("{} written {}", file.file, since(at))),
                );
                ("value end", format!("written {}", since(at)))
            }
            (Some(_), None) => ("value end", "there".to_owned()),
            (None, _) => ("value strong end bad", "no file".to_owned()),
        };
        drawing.text(class, "100%", y + 12.0, &word);
    }
    let title = format!("The capture on {}", capture.host);
    Some(drawing.finish(id, None, lanes * HEIGHT + 4.0, &title, says))
}

/// Requests and files behind the pictures.
pub(super) fn table(source: &Source) -> Table {
    let mut table = Table::new(
        "capture-table",
        "Requests and files",
        &["host", "what", "#after acceptance", "outcome", "detail"],
    );
    for capture in captures(source) {
        let after = |at: Option<f64>| match (at, capture.captured_at) {
            (Some(at), Some(accepted)) => Cell::figure(format!("{:+.1} s", at - accepted), at - accepted),
            _ => "–".into(),
        };
        for attempt in &capture.attempts {
            let tone = if attempt.verdict == "accepted" { "good" } else { "warn" };
            table.rows.push(vec![
                name(&capture.host).into(),
                format!("attempt {}", attempt.attempt).into(),
                after(Some(attempt.time)),
                Cell::toned(name(&attempt.verdict), tone),
                name(&attempt.reason).into(),
            ]);
        }
        for file in &capture.files {
            let (word, tone) = if file.trace.is_some() {
                ("file there", "good")
            } else {
                ("no file", "bad")
            };
            table.rows.push(vec![
                name(&capture.host).into(),
                file.who().into(),
                after(file.written),
                Cell::toned(word, tone),
                name(&file.file).into(),
            ]);
        }
    }
    table.cut("the manifests have them");
    table
}
