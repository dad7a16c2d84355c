//! What a scan found, as the JSON that scripts rely on and as text.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::text::printable;
use crate::bytes::{Findings, FlawKind, Verdict};
use crate::traces::Kind;

/// One file's findings. Field names are a promise (DESIGN.md, "Commands").
#[derive(Serialize)]
pub(super) struct FileFindings<'a> {
    path: String,
    container: &'static str,
    encoding: &'static str,
    kind: &'static str,
    size: u64,
    verdict: &'static str,
    reason: Option<&'a str>,
    refused_by: Vec<&'static str>,
    flaws: Flaws<'a>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Flaws<'a> {
    count: u64,
    by_kind: &'a BTreeMap<FlawKind, u64>,
    listed: Vec<Flaw>,
}

#[derive(Serialize)]
struct Flaw {
    kind: &'static str,
    offset: u64,
    length: u64,
    /// Hexadecimal digits of the first bytes.
    bytes: String,
    line: u64,
    column: u64,
    /// The JSON path, where it is cheap to know.
    path: Option<String>,
    /// Whether mending it rests on what the known writers do, not on the grammar alone.
    guess: bool,
}

impl<'a> FileFindings<'a> {
    /// `size` in bytes as stored.
    pub(super) fn new(path: &Path, kind: Kind, size: u64, findings: &'a Findings) -> Self {
        let listed = findings.flaws.listed.iter().map(|flaw| Flaw {
            kind: flaw.kind.name(),
            offset: flaw.offset,
            length: flaw.length,
            bytes: hex(&flaw.bytes, ""),
            line: flaw.line,
            column: flaw.column,
            path: flaw.path.clone(),
            guess: flaw.guess,
        });
        FileFindings {
            path: path.to_string_lossy().into_owned(),
            container: findings.container.as_str(),
            encoding: findings.encoding,
            kind: kind.as_str(),
            size,
            verdict: findings.verdict.name(),
            reason: findings.reason.as_deref(),
            refused_by: refused_by(findings),
            flaws: Flaws {
                count: findings.flaws.count,
                by_kind: &findings.flaws.by_kind,
                listed: listed.collect(),
            },
            warnings: &findings.warnings,
        }
    }
}

fn hex(bytes: &[u8], between: &str) -> String {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(between)
}

/// Writes one file's findings for people: a line, and the first `listed` places of damage.
pub(super) fn describe(
    out: &mut dyn Write,
    path: &Path,
    kind: Kind,
    findings: &Findings,
    listed: usize,
) -> io::Result<()> {
    let what = match findings.verdict {
        Verdict::Clean => "clean".to_owned(),
        Verdict::Damaged => {
            format!(
                "damaged, can be mended: {}; stops {}",
                by_kind(findings),
                refused_by(findings).join(" and ")
            )
        }
        Verdict::Refused => format!(
            "refused: {}",
            findings.reason.as_deref().unwrap_or("it cannot be mended")
        ),
    };
    let path = printable(&path.to_string_lossy());
    writeln!(
        out,
        "{path}: {} ({kind}, {})",
        printable(&what),
        findings.container.as_str()
    )?;
    let flaws = &findings.flaws;
    for flaw in flaws.listed.iter().take(listed) {
        let mut bytes = hex(&flaw.bytes[..flaw.bytes.len().min(8)], " ");
        if flaw.length > 8 {
            bytes.push_str(" ...");
        }
        let bytes = if bytes.is_empty() { bytes } else { format!(" {bytes}") };
        let inside = flaw
            .path
            .as_ref()
            .map(|path| format!(" in {}", printable(path)))
            .unwrap_or_default();
        let guess = if flaw.guess { ", mended by a guess" } else { "" };
        writeln!(
            out,
            "    line {}, column {}, byte {}:{bytes} ({}{guess}){inside}",
            flaw.line,
            flaw.column,
            flaw.offset,
            flaw.kind.name()
        )?;
    }
    let shown = flaws.listed.len().min(listed) as u64;
    if flaws.count > shown && shown > 0 {
        writeln!(out, "    and {} more", flaws.count - shown)?;
    }
    for warning in &findings.warnings {
        writeln!(out, "    warning: {}", printable(warning))?;
    }
    Ok(())
}

/// The readers that would not get through the file as it is (facts/tracelens.md section 3, facts/traces.md A49).
fn refused_by(findings: &Findings) -> Vec<&'static str> {
    let mut readers = Vec::new();
    let kinds = || findings.flaws.by_kind.keys();
    let loads = |kind: &FlawKind| matches!(kind, FlawKind::ControlEscape | FlawKind::SurrogatePair);
    if findings.verdict == Verdict::Refused || kinds().any(|kind| !loads(kind)) {
        readers.push("TraceLens");
    } else if kinds().any(|kind| *kind == FlawKind::ControlEscape) {
        readers.push("TraceLens's workbook");
    }
    if kinds().any(|kind| *kind == FlawKind::SurrogatePair) {
        readers.push("Perfetto");
    }
    readers
}

/// `12 ill-formed-utf8, 1 control-character`
pub(super) fn by_kind(findings: &Findings) -> String {
    let kinds = findings
        .flaws
        .by_kind
        .iter()
        .map(|(kind, count)| format!("{count} {}", kind.name()));
    kinds.collect::<Vec<_>>().join(", ")
}
