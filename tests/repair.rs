use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::util::{Answer, copy_of, fixture, tracemend};

#[test]
fn twelve_stray_bytes_are_mended_and_the_original_stays() {
    let run = copy_of("run/rocprof");
    let original = run.path().join("node01/4711_results.json");
    let before = (
        fs::read(&original).unwrap(),
        fs::metadata(&original).unwrap().modified().unwrap(),
    );
    let copy = run.path().join("mended.json");
    let output = tracemend()
        .args(["repair", "--json"])
        .arg(&original)
        .arg("-o")
        .arg(&copy)
        .output()
        .unwrap();
    assert_eq!(output.code(), 0);
    let told = output.json();
    assert_eq!(
        (&told["verdict"], &told["flaws"]["count"], &told["output"]),
        (&json!("damaged"), &json!(12), &json!(copy))
    );

    assert_eq!(fs::read_to_string(&copy).unwrap(), String::from_utf8_lossy(&before.0));
    assert_eq!(
        (
            fs::read(&original).unwrap(),
            fs::metadata(&original).unwrap().modified().unwrap()
        ),
        before
    );
    serde_json::from_slice::<serde::de::IgnoredAny>(&fs::read(&copy).unwrap()).unwrap();
    assert_eq!(tracemend().arg("scan").arg(&copy).output().unwrap().code(), 0);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let plain = run.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(
        mode(&copy),
        mode(&plain),
        "the copy has the permissions of any new file"
    );
}

#[test]
fn a_clean_trace_is_copied_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (
        fixture("damage/A42-gzip-two-members.json.gz"),
        folder.path().join("copy.json.gz"),
    );
    let output = tracemend()
        .arg("repair")
        .arg(&from)
        .arg("-o")
        .arg(&to)
        .output()
        .unwrap();
    assert_eq!(output.code(), 0);
    assert_eq!(fs::read(from).unwrap(), fs::read(to).unwrap());
}

#[test]
fn what_is_refused_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there.json");
    fs::write(&there, "kept").unwrap();
    for case in ["A41-zero-bytes.json", "A43-git-lfs-pointer.json"] {
        let output = tracemend()
            .arg("repair")
            .arg(fixture("damage").join(case))
            .arg("-o")
            .arg(&there)
            .output()
            .unwrap();
        assert_eq!(output.code(), 1, "{case}");
        assert!(output.text().contains("refused"), "{case}: {}", output.text());
    }
    assert_eq!(fs::read_to_string(&there).unwrap(), "kept");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn the_original_is_never_the_output() {
    let folder = copy_of("damage");
    let original = folder.path().join("A13-latin1-path.json");
    let link = folder.path().join("link.json");
    fs::hard_link(&original, &link).unwrap();
    for output in [&original, &link] {
        let refused = tracemend()
            .arg("repair")
            .arg(&original)
            .arg("-o")
            .arg(output)
            .output()
            .unwrap();
        assert_eq!(refused.code(), 2);
        assert!(refused.one_error().contains("originals are never changed"));
    }
    assert_eq!(
        fs::read(original).unwrap(),
        fs::read(fixture("damage/A13-latin1-path.json")).unwrap()
    );
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let input = fixture("damage/A13-latin1-path.json");
    let output = tracemend()
        .arg("repair")
        .arg(&input)
        .args(["-o", "/nowhere/at/all.json"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("cannot write /nowhere/at/all.json"));
    let output = tracemend()
        .arg("repair")
        .arg(fixture("damage"))
        .args(["-o", "/tmp/x"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("is no regular file"));
}
