//! Parts of a run, and the whole made of them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::util::{Answer, copy_of, fixture, one_trace, record, tracemend, with_tracelens};

#[test]
fn shards_do_all_once_keep_groups_together_and_are_merged() {
    let run = copy_of("run");
    let out = tempfile::tempdir().unwrap();
    let whole = with_tracelens(run.path(), &out.path().join("whole"))
        .output()
        .unwrap()
        .json();
    let labels = |summary: &Value| {
        let rows = summary["results"].as_array().unwrap().iter();
        let mut labels: Vec<String> = rows
            .map(|row| {
                format!(
                    "{} {} {} {}",
                    row["trace_file"], row["tracelens_tool"], row["group"], row["status"]
                )
            })
            .collect();
        labels.sort();
        labels
    };
    let shard = |index: u32, of: u32, extra: &[&str]| {
        let folder = out.path().join(format!("shard-{index}"));
        let output = with_tracelens(run.path(), &folder)
            .args(["--shard", &format!("{index}/{of}")])
            .args(extra)
            .output()
            .unwrap();
        (folder, output)
    };
    let merge = |folders: &[PathBuf]| {
        let mut command = tracemend();
        command
            .args(["merge", "--json"])
            .args(folders)
            .arg("-o")
            .arg(out.path().join("merged"));
        command.output().unwrap()
    };
    let mut folders = Vec::new();
    for index in 0..3 {
        let (folder, output) = shard(index, 3, &[]);
        assert_eq!(output.code(), 0, "{}", output.errors());
        let summary = output.json();
        let groups = |group: &str| {
            summary["results"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|row| row["group"] == group)
                .count()
        };
        assert!(
            [0, 5].contains(&groups("train")) && [0, 3].contains(&groups("serve")),
            "{summary:#}"
        );
        assert!(!summary["results"].as_array().unwrap().is_empty());
        folders.push(folder);
    }
    let output = merge(&folders);
    assert_eq!(output.code(), 0, "{}", output.errors());
    assert_eq!(labels(&output.json()), labels(&whole));
    let merged = record(&out.path().join("merged"));
    assert_eq!((&merged["finished"], &merged["shard"]), (&json!(true), &json!(null)));
    for job in merged["jobs"].as_array().unwrap() {
        for made in job["outputs"].as_array().unwrap() {
            let folder = Path::new(job["output_dir"].as_str().unwrap());
            assert!(folder.join(made.as_str().unwrap()).exists(), "{job}");
        }
    }
    for trace in merged["traces"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|trace| trace["mended"] == true)
    {
        assert!(Path::new(trace["edits"].as_str().unwrap()).exists(), "{trace}");
    }
    let csv = fs::read_to_string(out.path().join("merged/tracelens_summary.csv")).unwrap();
    assert_eq!(csv.lines().count(), labels(&whole).len() + 1);

    // A shard that is missing is named; what is there is merged.
    let output = merge(&folders[..2]);
    assert_eq!(output.code(), 1);
    assert!(output.one_error().contains("shard 2 is missing"), "{}", output.errors());
    assert_eq!(record(&out.path().join("merged"))["missing_shards"], json!([2]));

    // What does not belong together is refused.
    let refused = |folders: &[PathBuf], why: &str| {
        let output = merge(folders);
        assert_eq!(output.code(), 2);
        assert!(output.one_error().contains(why), "{}", output.errors());
    };
    refused(&[folders[0].clone(), folders[0].clone()], "both hold shard 0/3");
    refused(&[out.path().join("whole")], "holds a whole run");
    refused(&[run.path().to_owned()], "holds no reports of tracemend");
    let (_, output) = shard(1, 2, &[]);
    assert_eq!(output.code(), 2);
    assert!(output.one_error().contains("holds shard 1/3"), "{}", output.errors());
    let other = out.path().join("other");
    let other_shard = |extra: &[&str]| {
        let _ = fs::remove_dir_all(&other);
        let mut command = with_tracelens(run.path(), &other);
        assert_eq!(command.args(extra).output().unwrap().code(), 0);
    };
    other_shard(&["--shard", "1/2"]);
    refused(&[folders[0].clone(), other.clone()], "of 3 shards and of 2");
    other_shard(&["--shard", "1/3", "--mode", "pytorch"]);
    refused(&[folders[0].clone(), other.clone()], "--mode auto and --mode pytorch");
    other_shard(&["--shard", "1/3", "--keep-pythonpath"]);
    refused(&[folders[0].clone(), other.clone()], "with other options");
    fs::write(
        run.path().join("new.json"),
        fs::read(fixture("run/train/libkineto_trace_48209.json")).unwrap(),
    )
    .unwrap();
    other_shard(&["--shard", "1/3"]);
    refused(&[folders[0].clone(), other.clone()], "of other traces");
}

#[test]
fn a_shard_without_work_is_no_failure() {
    let (run, out) = (one_trace(), tempfile::tempdir().unwrap());
    let made: Vec<u64> = ["0/3", "1/3", "2/3"]
        .iter()
        .map(|shard| {
            let folder = out.path().join(shard.replace('/', "-of-"));
            let output = with_tracelens(run.path(), &folder)
                .args(["--shard", shard])
                .output()
                .unwrap();
            assert_eq!(output.code(), 0, "{}", output.errors());
            output.json()["succeeded"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(made.iter().sum::<u64>(), 1);
    let output = with_tracelens(run.path(), &out.path().join("x"))
        .args(["--shard", "3/3"])
        .output()
        .unwrap();
    assert_eq!(output.code(), 2);
    assert!(output.errors().contains("0/3 to 2/3"), "{}", output.errors());
}
