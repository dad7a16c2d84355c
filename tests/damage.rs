//! Every damaged trace of fixtures/damage: the right verdict, the right bytes, and back again.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::util::{Answer, fixture, python, tracemend};

struct Case {
    file: PathBuf,
    verdict: String,
    /// The bytes that the mended copy must have.
    mended: Option<Vec<u8>>,
}

fn cases() -> Vec<Case> {
    let table: Vec<Value> = serde_json::from_slice(&fs::read(fixture("damage/cases.json")).unwrap()).unwrap();
    let text = |case: &Value, key: &str| case[key].as_str().map(str::to_owned);
    table
        .iter()
        .map(|case| Case {
            file: fixture("damage").join(text(case, "file").unwrap()),
            verdict: text(case, "verdict").unwrap(),
            mended: text(case, "mended").map(|path| fs::read(fixture("damage").join(path)).unwrap()),
        })
        .collect()
}

fn decompressed(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut text = Vec::new();
    MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap();
    text
}

fn verdict(path: &Path) -> String {
    let output = tracemend().args(["scan", "--json"]).arg(path).output().unwrap();
    let scanned = output.json();
    let verdict = scanned["verdict"].as_str().unwrap().to_owned();
    assert_eq!(output.code() == 0, verdict == "clean", "{scanned}");
    assert_eq!(verdict == "refused", scanned["reason"].is_string(), "{scanned}");
    verdict
}

#[test]
fn each_gets_its_verdict_and_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for Case {
        file,
        verdict: wanted,
        mended,
    } in cases()
    {
        let name = file.file_name().unwrap().to_str().unwrap();
        let wanted = if wanted == "mended" { "damaged" } else { &wanted };
        assert_eq!(verdict(&file), wanted, "{name}");

        let copy = folder.path().join(name);
        let output = tracemend()
            .args(["repair", "--json"])
            .arg(&file)
            .arg("-o")
            .arg(&copy)
            .output()
            .unwrap();
        assert_eq!(
            output.code(),
            i32::from(wanted == "refused"),
            "{name}: {}",
            output.errors()
        );
        assert_eq!(copy.exists(), wanted != "refused", "{name}");
        match (wanted, mended) {
            ("damaged", Some(mended)) => assert_eq!(decompressed(&copy), mended, "{name}"),
            ("clean", _) => assert_eq!(fs::read(&copy).unwrap(), fs::read(&file).unwrap(), "{name}"),
            _ => {}
        }
        if copy.exists() {
            assert_eq!(verdict(&copy), "clean", "{name}");
        }
    }
}

#[test]
fn the_log_gives_the_original_back() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, log, back) = (
        folder.path().join("copy.json"),
        folder.path().join("log.jsonl"),
        folder.path().join("back"),
    );
    for Case { file, .. } in cases().into_iter().filter(|case| case.verdict == "mended") {
        let output = tracemend()
            .args(["repair", "--json"])
            .arg(&file)
            .arg("-o")
            .arg(&copy)
            .arg("--log")
            .arg(&log)
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}", output.errors());
        assert_eq!(output.json()["log"].as_str(), log.to_str());
        let output = tracemend()
            .arg("restore")
            .arg(&copy)
            .arg(&log)
            .arg("-o")
            .arg(&back)
            .output()
            .unwrap();
        assert_eq!(output.code(), 0, "{}: {}", file.display(), output.errors());
        assert_eq!(fs::read(&back).unwrap(), fs::read(&file).unwrap(), "{}", file.display());
    }
}

#[test]
fn a_log_of_another_copy_restores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["A13-latin1-path", "A45-utf8-bom"] {
        let file = fixture("damage").join(format!("{name}.json"));
        let output = tracemend()
            .arg("repair")
            .arg(file)
            .arg("-o")
            .arg(path(name))
            .arg("--log")
            .arg(path(&format!("{name}.log")))
            .output()
            .unwrap();
        assert_eq!(output.code(), 0);
    }
    let restore = |copy: &Path, log: &Path| {
        tracemend()
            .arg("restore")
            .arg(copy)
            .arg(log)
            .arg("-o")
            .arg(path("back"))
            .output()
            .unwrap()
    };
    let output = restore(&path("A13-latin1-path"), &path("A45-utf8-bom.log"));
    assert_eq!(output.code(), 1);
    assert!(
        output.one_error().contains("nothing restored: the copy is not the one"),
        "{}",
        output.errors()
    );
    let log = fs::read_to_string(path("A13-latin1-path.log")).unwrap();
    fs::write(path("cut.log"), &log[..log.len() - 20]).unwrap();
    let output = restore(&path("A13-latin1-path"), &path("cut.log"));
    assert_eq!(output.code(), 1);
    assert!(output.one_error().contains("line 3 of the log"), "{}", output.errors());
    assert!(!path("back").exists());
    assert_eq!(restore(&path("missing"), &path("cut.log")).code(), 2);
}

#[test]
fn every_reader_loads_every_mended_copy() {
    let folder = tempfile::tempdir().unwrap();
    for (number, Case { file, .. }) in cases().into_iter().filter(|case| case.verdict == "mended").enumerate() {
        let copy = folder.path().join(format!("{number}.json"));
        assert_eq!(
            tracemend()
                .arg("repair")
                .arg(file)
                .arg("-o")
                .arg(copy)
                .output()
                .unwrap()
                .code(),
            0
        );
    }
    let script = "import sys, json, orjson, pathlib\nfor path in sorted(pathlib.Path(sys.argv[1]).glob('*.json')):\n    data = path.read_bytes()\n    orjson.loads(data)\n    json.loads(data.decode(), parse_constant=lambda text: sys.exit(text + ' in ' + str(path)))\n";
    let loaded = Command::new(python())
        .args(["-c", script])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    let script = "const fs = require('fs'); for (const f of fs.readdirSync(process.argv[1])) JSON.parse(new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(fs.readFileSync(process.argv[1] + '/' + f)));";
    match Command::new("node").args(["-e", script]).arg(folder.path()).output() {
        Ok(loaded) => assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr)),
        Err(error) => eprintln!("node is not here ({error}): not tried with it"),
    }
}

#[test]
fn a_reader_is_pleased_only_if_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    fs::write(
        &path,
        r#"{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a\u0001\ud83d\ude00", "dur": 1}]}"#,
    )
    .unwrap();
    let kinds = |readers: &[&str]| {
        let flags = readers.iter().flat_map(|reader| ["--reader", reader]);
        let output = tracemend()
            .args(["scan", "--json"])
            .args(flags)
            .arg(&path)
            .output()
            .unwrap();
        let by_kind = output.json()["flaws"]["by_kind"].as_object().unwrap().clone();
        (
            by_kind.into_iter().map(|(kind, _)| kind).collect::<Vec<_>>(),
            output.json()["refused_by"].clone(),
        )
    };
    assert_eq!(
        kinds(&[]),
        (
            vec!["control-escape".to_owned()],
            serde_json::json!(["TraceLens's workbook"])
        )
    );
    assert_eq!(kinds(&["json"]).0, Vec::<String>::new());
    assert_eq!(kinds(&["perfetto"]).0, ["surrogate-pair"]);
    assert_eq!(
        kinds(&["perfetto", "tracelens"]).0,
        ["control-escape", "surrogate-pair"]
    );
}

#[test]
fn a_compressed_copy_is_written_where_its_name_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("a.json"), folder.path().join("b.json.gz"));
    let file = fixture("damage/A1-rocprofv3-fname-garbage.json.gz");
    for copy in [&plain, &packed] {
        assert_eq!(
            tracemend()
                .arg("repair")
                .arg(&file)
                .arg("-o")
                .arg(copy)
                .output()
                .unwrap()
                .code(),
            0
        );
        assert_eq!(verdict(copy), "clean");
    }
    assert!(fs::read(&packed).unwrap().starts_with(&[0x1f, 0x8b]));
    assert_eq!(fs::read(&plain).unwrap(), decompressed(&packed));
}

#[test]
fn a_stream_that_grows_beyond_measure_is_refused_and_the_limit_can_be_raised() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.json.gz");
    let mut encoder = flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::best());
    encoder.write_all(b"{\"traceEvents\":[]").unwrap();
    for _ in 0..160 {
        encoder.write_all(&[b' '; 1 << 20]).unwrap();
    }
    encoder.write_all(b"}").unwrap();
    encoder.finish().unwrap();
    let scan = |flags: &[&str]| {
        tracemend()
            .args(["scan", "--json"])
            .args(flags)
            .arg(&path)
            .output()
            .unwrap()
            .json()
    };
    let refused = scan(&["--max-expansion", "10"]);
    assert_eq!(refused["verdict"], "refused");
    assert!(
        refused["reason"]
            .as_str()
            .unwrap()
            .contains("raise the limit with --max-expansion"),
        "{refused}"
    );
    // The document was not read to its end: nothing is said about what is missing there.
    assert_eq!(refused["flaws"]["by_kind"], serde_json::json!({"gzip-expansion": 1}));
    assert_eq!(scan(&["--max-expansion", "100000"])["verdict"], "clean");
}
