//! The collection of public damage: facts/traces.md section A, fixtures/damage.

use super::*;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

pub(super) fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Files whose only fault is their name, which this room does not look at.
const MISNAMED: &[&str] = &["A67-gzip-named-json.json", "A67-json-named-gz.json.gz"];

#[test]
fn every_case_has_its_verdict_and_its_bytes() {
    let folder = fixtures().join("damage");
    let cases: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("cases.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["file"].as_str().unwrap();
        let data = fs::read(folder.join(name)).unwrap();
        let findings = scanned(&data);
        let expected = match case["verdict"].as_str().unwrap() {
            "mended" if MISNAMED.contains(&name) => Verdict::Clean,
            "mended" => Verdict::Damaged,
            "refused" => Verdict::Refused,
            _ => Verdict::Clean,
        };
        if findings.verdict != expected {
            wrong.push(format!(
                "{name}: {:?} {:?} {:?}",
                findings.verdict, findings.reason, findings.flaws
            ));
            continue;
        }
        assert_eq!(findings.reason.is_some(), expected == Verdict::Refused, "{name}");
        let Some(want) = case["mended"].as_str() else {
            continue;
        };
        let want = fs::read(folder.join(want)).unwrap();
        let (copy, _) = mended(&data, &findings);
        if copy != want {
            wrong.push(format!(
                "{name}:\n  {}\n  {}",
                String::from_utf8_lossy(&copy),
                String::from_utf8_lossy(&want)
            ));
        }
        assert_eq!(found_again(&data, &findings), copy, "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() >= 44);
}
