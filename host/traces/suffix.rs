//! Names that say another container than the content. TraceLens, HTA and others choose their reader by the end of the name alone
//! (facts/traces.md A67).

use std::path::Path;

use crate::bytes::{Container, Findings, Flaw, FlawKind, Verdict};

/// Adds to the findings that the name of the file misleads, if it does.
pub fn check_suffix(path: &Path, findings: &mut Findings) {
    let says_gzip = path.extension().is_some_and(|ending| ending == "gz");
    let says_json = path.extension().is_some_and(|ending| ending == "json");
    let misleads = match findings.container {
        Container::Gzip => says_json,
        Container::Plain => says_gzip,
        Container::Zstd | Container::Xz => false,
    };
    if !misleads || findings.verdict == Verdict::Refused {
        return;
    }
    findings.verdict = Verdict::Damaged;
    let flaws = &mut findings.flaws;
    flaws.count += 1;
    *flaws.by_kind.entry(FlawKind::MisleadingSuffix).or_default() += 1;
    let (kind, bytes) = (FlawKind::MisleadingSuffix, Vec::new());
    flaws.listed.insert(
        0,
        Flaw {
            kind,
            offset: 0,
            length: 0,
            bytes,
            line: 1,
            column: 1,
            path: None,
            guess: false,
        },
    );
}

/// Whether the name is all that is wrong: the content can be read as it is under another.
pub fn only_the_suffix_misleads(findings: &Findings) -> bool {
    findings.flaws.count == 1 && findings.flaws.by_kind.contains_key(&FlawKind::MisleadingSuffix)
}
