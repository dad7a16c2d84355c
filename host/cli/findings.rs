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
        });
        FileFindings {
            path: path.to_string_lossy().into_owned(),
            container: findings.container.as_str(),
            encoding: findings.encoding,
            kind: kind.as_str(),
            size,
            verdict: findings.verdict.name(),
            reason: findings.reason.as_deref(),
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
        Verdict::Damaged => format!("damaged, can be mended: {}", by_kind(findings)),
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
        let bytes = hex(&flaw.bytes[..flaw.bytes.len().min(8)], " ");
        let more = if flaw.length > 8 { " ..." } else { "" };
        writeln!(
            out,
            "    line {}, column {}, byte {}: {bytes}{more} ({})",
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

/// `12 ill-formed-utf8, 1 control-character`
pub(super) fn by_kind(findings: &Findings) -> String {
    let kinds = findings
        .flaws
        .by_kind
        .iter()
        .map(|(kind, count)| format!("{count} {}", kind.name()));
    kinds.collect::<Vec<_>>().join(", ")
}
