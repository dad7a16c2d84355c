//! One summary and one record from those of a run's shards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::record::{Record, ShardUse};
use super::summary::{Csv, Header, SUMMARY_CSV, SUMMARY_JSON, write_document, write_json};

/// Puts the records of shards together; `folders` are their output folders, `output` that of the merged files, absolute.
///
/// # Errors
/// When a folder holds no record of a shard, or they are not shards of one run made in one way: which, and in what they differ.
pub fn merge(folders: &[PathBuf], output: &Path) -> Result<Record> {
    let mut shards: BTreeMap<u32, (PathBuf, Record)> = BTreeMap::new();
    for folder in folders {
        let shown = folder.display();
        let Some(record) = Record::read(folder)? else {
            bail!("{shown} holds no reports of tracemend: there is no tracemend_record.json");
        };
        let Some(shard) = record.shard else {
            bail!("{shown} holds a whole run, no shard of one (analyze --shard)");
        };
        if let Some((first, other)) = shards.values().next() {
            agree(first, other, folder, &record)?;
        }
        let folder = std::path::absolute(folder).with_context(|| format!("cannot find {shown}"))?;
        if let Some((other, _)) = shards.insert(shard.index, (folder, record)) {
            bail!(
                "{} and {shown} both hold shard {}/{}",
                other.display(),
                shard.index,
                shard.of
            );
        }
    }
    let Some((_, first)) = shards.values().next() else {
        bail!("no shards are given");
    };
    let of = first.shard.map_or(0, |shard: ShardUse| shard.of);
    let mut merged = Record {
        output_dir: output.to_string_lossy().into_owned(),
        shard: None,
        finished: true,
        jobs: Vec::new(),
        ..first.clone()
    };
    merged.missing_shards = (0..of)
        .filter(|index| shards.get(index).is_none_or(|(_, record)| !record.finished))
        .collect();
    merged.finished = merged.missing_shards.is_empty();
    for (folder, record) in shards.into_values() {
        merged.started = merged.started.min(record.started);
        merged.ended = merged.ended.max(record.ended);
        merged.peak_scratch_bytes = merged.peak_scratch_bytes.max(record.peak_scratch_bytes);
        let read: BTreeSet<&String> = record.jobs.iter().flat_map(|job| &job.traces).collect();
        for (ours, theirs) in merged.traces.iter_mut().zip(&record.traces) {
            if read.contains(&theirs.identity.path) {
                ours.edits = theirs.edits.as_ref().map(|edits| in_folder(&folder, edits));
            }
        }
        for mut job in record.jobs {
            job.output_dir = Some(folder.to_string_lossy().into_owned());
            merged.jobs.push(job);
        }
    }
    merged.jobs.sort_by(|a, b| {
        (&a.row.kind, a.traces.len() > 1, &a.row.trace_file).cmp(&(&b.row.kind, b.traces.len() > 1, &b.row.trace_file))
    });
    Ok(merged)
}

fn in_folder(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

/// Two records are of shards of one run, made in one way.
fn agree(first: &Path, one: &Record, second: &Path, other: &Record) -> Result<()> {
    let of = |record: &Record| record.shard.map_or(0, |shard| shard.of);
    let differ = if of(one) != of(other) {
        format!("of {} shards and of {}", of(one), of(other))
    } else if one.traces_sha256 != other.traces_sha256 {
        format!(
            "of other traces ({} and {}), or they changed in between",
            one.root, other.root
        )
    } else if one.mode != other.mode {
        format!("made with --mode {} and --mode {}", one.mode, other.mode)
    } else if one.reporter.options_sha256 != other.reporter.options_sha256 {
        "made by another TraceLens, another tracemend or with other options".to_owned()
    } else {
        return Ok(());
    };
    bail!(
        "{} and {} are no shards of one run: they are {differ}",
        first.display(),
        second.display()
    )
}

/// Writes the merged summary and record to the folder `output`.
///
/// # Errors
/// When they cannot be written.
pub fn write_merged(record: &Record, output: &Path) -> Result<()> {
    let write = || {
        std::fs::create_dir_all(output)?;
        let rows = || record.jobs.iter().map(|job| &job.row);
        Csv::write(&output.join(SUMMARY_CSV), rows())?;
        write_json(&output.join(SUMMARY_JSON), &Header::from(record), rows())?;
        write_document(&Record::path_in(output), record)
    };
    write().with_context(|| format!("cannot write to {}", output.display()))
}
