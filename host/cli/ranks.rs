//! `tracemend ranks`

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

use super::explain::explain;
use super::gather::{Gathered, found, gather};
use super::text::{count, printable};
use super::{Global, Outcome, Policies};
use crate::ranks::{Assigned, Conflict, Group};
use crate::reports::{Reader, folded_ranks, link_farm};
use crate::traces::Run;

#[derive(Debug, Args)]
pub struct Ranks {
    /// The run: a folder, or one trace
    #[arg(value_name = "RUN")]
    root: PathBuf,
    #[command(flatten)]
    policies: Policies,
    /// Show every policy's answer for one trace, and why the winner won
    #[arg(long, value_name = "TRACE", conflicts_with = "link_farm")]
    explain: Option<PathBuf>,
    /// Make a folder of links under the names that a reader takes ranks from
    #[arg(long, value_name = "DIR", requires = "reader")]
    link_farm: Option<PathBuf>,
    /// The reader that the links are for
    #[arg(long = "for", value_name = "READER", value_enum, requires = "link_farm")]
    reader: Option<WhichReader>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WhichReader {
    /// rank<i>_trace.json
    Tracelens,
    /// rank-<i>.pt.trace.json
    Hta,
    /// device.<i>.json
    Chakra,
}

/// The JSON that scripts rely on (DESIGN.md, "Commands").
#[derive(Serialize)]
struct Document {
    root: String,
    cluster: Option<String>,
    traces: Vec<TraceRank>,
    groups: Vec<RankGroup>,
}

#[derive(Serialize)]
struct TraceRank {
    path: String,
    kind: &'static str,
    role: String,
    rank: Option<u32>,
    world_size: Option<u32>,
    group: String,
    node: Option<String>,
    by: Option<String>,
    evidence: String,
}

#[derive(Serialize)]
struct RankGroup {
    group: String,
    world_size: u32,
    ranks: Vec<u32>,
    missing: Vec<u32>,
    conflicts: Vec<String>,
}

impl Ranks {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let gathered = gather(&self.root, None, &self.policies, global)?;
        let mut out = BufWriter::new(io::stdout().lock());
        let mut left_out = 0;
        if let Some(trace) = &self.explain {
            explain(&mut out, &gathered, trace, self.json)?;
        } else if self.json {
            serde_json::to_writer_pretty(&mut out, &document(&gathered))?;
            writeln!(out)?;
        } else {
            if !global.quiet {
                writeln!(out, "{}", found(&gathered.run))?;
                if let Some(cluster) = &gathered.cluster {
                    writeln!(out, "policies of cluster {}", printable(cluster))?;
                }
            }
            for group in &gathered.assignment.groups {
                show_group(&mut out, &gathered, group)?;
            }
            show_roles(&mut out, &gathered)?;
        }
        if let (Some(folder), Some(reader)) = (&self.link_farm, self.reader) {
            left_out = make_links(&gathered, folder, reader)?;
        }
        out.flush()?;
        Ok(Outcome::bad_news_if(gathered.failed_plugins + left_out > 0))
    }
}

/// Makes the links and returns how many ranks were left out; what was done goes to standard error, beside the table or JSON.
fn make_links(gathered: &Gathered, folder: &Path, reader: WhichReader) -> Result<usize> {
    let reader = match reader {
        WhichReader::Tracelens => Reader::TraceLens,
        WhichReader::Hta => Reader::Hta,
        WhichReader::Chakra => Reader::Chakra,
    };
    let farm = link_farm(&gathered.run, &gathered.assignment, reader, folder)?;
    for reason in &farm.left_out {
        eprintln!("tracemend: left out: {}", printable(reason));
    }
    let copies = if farm.copies > 0 {
        format!(" and {}", count_of(farm.copies, "mended copy", "mended copies"))
    } else {
        String::new()
    };
    let links = count_of(farm.links, "link", "links");
    eprintln!("tracemend: {links}{copies} in {}", printable(&folder.to_string_lossy()));
    Ok(farm.left_out.len())
}

fn count_of(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn document(gathered: &Gathered) -> Document {
    let run = &gathered.run;
    let traces = run
        .traces
        .iter()
        .zip(&gathered.assignment.traces)
        .map(|(trace, assigned)| TraceRank {
            path: trace.display_path(),
            kind: trace.kind.as_str(),
            role: assigned.role.clone().unwrap_or_else(|| "trace".to_owned()),
            rank: assigned.rank,
            world_size: assigned.world_size,
            group: assigned.group.clone(),
            node: assigned.node.clone(),
            by: assigned.by.clone(),
            evidence: assigned.evidence.clone(),
        });
    let groups = gathered.assignment.groups.iter().map(|group| RankGroup {
        group: group.name.clone(),
        world_size: group.world_size,
        ranks: group.ranks.keys().copied().collect(),
        missing: group.missing.clone(),
        conflicts: group.conflicts.iter().map(|conflict| describe(run, conflict)).collect(),
    });
    Document {
        root: run.root.to_string_lossy().into_owned(),
        cluster: gathered.cluster.clone(),
        traces: traces.collect(),
        groups: groups.collect(),
    }
}

/// One conflict, both sides shown.
pub(super) fn describe(run: &Run, conflict: &Conflict) -> String {
    match conflict {
        Conflict::Duplicate { rank, traces } => {
            let paths: Vec<String> = traces.iter().map(|&index| run.traces[index].display_path()).collect();
            format!("rank {rank} is claimed by {}", paths.join(" and "))
        }
        Conflict::Disagreement { trace, claims } => {
            let sides = claims
                .iter()
                .map(|(policy, rank, evidence)| format!("{policy} says {rank} ({evidence})"));
            format!(
                "{}: {}",
                run.traces[*trace].display_path(),
                sides.collect::<Vec<_>>().join(", ")
            )
        }
        Conflict::WorldSizes(sizes) => {
            let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
            format!("traces name different world sizes: {}", sizes.join(", "))
        }
        Conflict::OutsideWorld { rank, world_size } => format!("rank {rank} lies outside a world of {world_size}"),
    }
}

/// Ranks that are shown one by one in a group without surprises.
const SHOWN: usize = 16;

fn show_group(out: &mut dyn Write, gathered: &Gathered, group: &Group) -> Result<()> {
    let run = &gathered.run;
    let size = match (group.ranks.is_empty(), group.world_size_is_known) {
        (true, _) => "no rank known".to_owned(),
        (false, true) => format!("{} of {} ranks", group.ranks.len(), group.world_size),
        (false, false) => format!("{}, world size not known", count(group.ranks.len(), "rank")),
    };
    writeln!(out, "\n{}: {size}", printable(&group.name))?;
    if !group.missing.is_empty() {
        writeln!(out, "  missing: {}", folded_ranks(&group.missing))?;
    }
    for conflict in group.conflicts.iter().take(SHOWN) {
        writeln!(out, "  conflict: {}", printable(&describe(run, conflict)))?;
    }
    if group.conflicts.len() > SHOWN {
        writeln!(
            out,
            "  and {} more conflicts (--json lists all)",
            group.conflicts.len() - SHOWN
        )?;
    }
    let mut table = Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["rank", "trace", "by", "evidence"]);
    let members: Vec<usize> = group.ranks.values().flatten().chain(&group.unranked).copied().collect();
    for &index in members.iter().take(SHOWN) {
        table.add_row(row(run, index, &gathered.assignment.traces[index]));
    }
    writeln!(out, "{}", table.trim_fmt())?;
    if members.len() > SHOWN {
        writeln!(
            out,
            "  and {} more{} (--json lists all)",
            members.len() - SHOWN,
            folded(gathered, &members[SHOWN..])
        )?;
    }
    Ok(())
}

/// The ranks of `members` by the policy whose word they are.
fn folded(gathered: &Gathered, members: &[usize]) -> String {
    let mut by_policy: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for &index in members {
        let assigned = &gathered.assignment.traces[index];
        if let (Some(rank), Some(policy)) = (assigned.rank, &assigned.by) {
            by_policy.entry(policy).or_default().push(rank);
        }
    }
    by_policy
        .into_iter()
        .map(|(policy, ranks)| format!("; {} by {policy}", folded_ranks(&ranks)))
        .collect()
}

fn show_roles(out: &mut dyn Write, gathered: &Gathered) -> Result<()> {
    let of_no_rank = gathered
        .assignment
        .traces
        .iter()
        .enumerate()
        .filter(|(_, assigned)| assigned.role.is_some());
    let of_no_rank: Vec<(usize, &Assigned)> = of_no_rank.collect();
    if of_no_rank.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nof no rank:")?;
    for (index, assigned) in of_no_rank.iter().take(SHOWN) {
        let path = gathered.run.traces[*index].display_path();
        writeln!(
            out,
            "  {}: {}",
            printable(&path),
            printable(assigned.role.as_deref().unwrap_or_default())
        )?;
    }
    if of_no_rank.len() > SHOWN {
        writeln!(out, "  and {} more (--json lists all)", of_no_rank.len() - SHOWN)?;
    }
    Ok(())
}

fn row(run: &Run, index: usize, assigned: &Assigned) -> [String; 4] {
    let rank = assigned.rank.map_or("?".to_owned(), |rank| rank.to_string());
    let path = run.traces[index].display_path();
    let by = assigned.by.clone().unwrap_or_default();
    [rank, printable(&path), by, printable(&assigned.evidence)]
}
