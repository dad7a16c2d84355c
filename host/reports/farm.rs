//! A folder of links under the names that a reader takes ranks from, for use without tracemend.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::staging::write_mended;
use super::stem::Stems;
use crate::bytes::{Container, Verdict};
use crate::ranks::{Assignment, Group};
use crate::traces::{Kind, Run, only_the_suffix_misleads};

/// Whose names the links get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// `rank<i>_trace.json`, as `--trace_dir` wants it (facts/tracelens.md section 4).
    TraceLens,
    /// `rank-<i>.pt.trace.json`, as HolisticTraceAnalysis names its own (it takes ranks from the content, though).
    Hta,
    /// `device.<i>.json` (mlcommons/chakra).
    Chakra,
}

impl Reader {
    fn name(self, rank: u32, ending: &str) -> String {
        match self {
            Reader::TraceLens => format!("rank{rank}_trace{ending}"),
            Reader::Hta => format!("rank-{rank}.pt.trace{ending}"),
            Reader::Chakra => format!("device.{rank}{ending}"),
        }
    }
}

/// What a link farm holds, and what it does not.
#[derive(Debug, Default)]
pub struct Farm {
    /// Links to traces as they are.
    pub links: usize,
    /// Mended copies of damaged traces.
    pub copies: usize,
    /// What was left out, and why, for people.
    pub left_out: Vec<String>,
}

/// Makes the folder `target` with one link for each rank of a Kineto trace, in a folder for each group where there are several.
/// A damaged trace is there as a mended copy.
///
/// # Errors
/// When `target` is there and not empty, or cannot be written.
pub fn link_farm(run: &Run, assignment: &Assignment, reader: Reader, target: &Path) -> Result<Farm> {
    let shown = target.display();
    fs::create_dir_all(target).with_context(|| format!("cannot make {shown}"))?;
    if fs::read_dir(target)
        .with_context(|| format!("cannot list {shown}"))?
        .next()
        .is_some()
    {
        bail!("{shown} is not empty; give the links a folder of their own");
    }
    let is_kineto = |group: &&Group| {
        group
            .ranks
            .values()
            .flatten()
            .any(|&index| run.traces[index].kind == Kind::Kineto)
    };
    let groups: Vec<&Group> = assignment.groups.iter().filter(is_kineto).collect();
    let (mut farm, mut stems) = (Farm::default(), Stems::default());
    for group in &groups {
        let folder = match groups.len() {
            1 => target.to_owned(),
            _ => target.join(stems.unique(&group.name)),
        };
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for (&rank, traces) in &group.ranks {
            let [index] = traces[..] else {
                let paths: Vec<String> = traces.iter().map(|&index| run.traces[index].display_path()).collect();
                farm.left_out.push(format!(
                    "rank {rank} of {}: claimed by {}",
                    group.name,
                    paths.join(" and ")
                ));
                continue;
            };
            plant(run, index, rank, reader, &folder, &mut farm)?;
        }
    }
    Ok(farm)
}

fn plant(run: &Run, index: usize, rank: u32, reader: Reader, folder: &Path, farm: &mut Farm) -> Result<()> {
    let trace = &run.traces[index];
    let path = trace.display_path();
    let verdict = match trace.findings.verdict {
        Verdict::Damaged if only_the_suffix_misleads(&trace.findings) => Verdict::Clean,
        verdict => verdict,
    };
    match (trace.kind, verdict) {
        (Kind::Kineto, Verdict::Clean) => {
            let ending = if trace.findings.container == Container::Gzip {
                ".json.gz"
            } else {
                ".json"
            };
            let link = folder.join(reader.name(rank, ending));
            symlink(run.root.join(&trace.path), &link).with_context(|| format!("cannot make {}", link.display()))?;
            farm.links += 1;
        }
        (Kind::Kineto, Verdict::Damaged) => {
            let copy = folder.join(reader.name(rank, ".json"));
            write_mended(run, index, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
            farm.copies += 1;
        }
        (Kind::Kineto, Verdict::Refused) => {
            let reason = trace.findings.reason.as_deref().unwrap_or("it cannot be mended");
            farm.left_out.push(format!("rank {rank}: {path}: {reason}"));
        }
        (kind, _) => farm
            .left_out
            .push(format!("rank {rank}: {path} is {kind}, no Kineto trace")),
    }
    Ok(())
}
