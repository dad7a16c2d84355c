//! `tracemend ranks RUN --explain TRACE`: every policy's answer for one trace, and why the winner won.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;

use super::gather::Gathered;
use super::text::printable;
use crate::plugins::Label;
use crate::ranks::MAP;

#[derive(Serialize)]
struct Explanation {
    path: String,
    kind: &'static str,
    gpu_events: Option<bool>,
    answers: Vec<Answer>,
    role: Option<String>,
    rank: Option<u32>,
    group: String,
    by: Option<String>,
    because: &'static str,
}

#[derive(Serialize)]
struct Answer {
    policy: String,
    answer: &'static str,
    rank: Option<u32>,
    world_size: Option<u32>,
    certain: Option<bool>,
    evidence: String,
}

impl Answer {
    fn of(policy: &str, label: &Label) -> Self {
        let (answer, claim, evidence) = match label {
            Label::Rank(claim) => ("rank", Some(claim), claim.evidence.clone()),
            Label::Role(role) => ("role", None, role.clone()),
            Label::Unknown(reason) => ("unknown", None, reason.clone()),
        };
        Answer {
            policy: policy.to_owned(),
            answer,
            rank: claim.map(|claim| claim.rank),
            world_size: claim.and_then(|claim| claim.world_size),
            certain: claim.map(|claim| claim.certain),
            evidence,
        }
    }

    fn text(&self) -> String {
        let evidence = printable(&self.evidence);
        match (self.rank, self.certain) {
            (Some(rank), Some(true)) => format!("rank {rank}, certain: {evidence}"),
            (Some(rank), _) => format!("rank {rank}, a guess: {evidence}"),
            (None, _) if self.answer == "role" => format!("of no rank: {evidence}"),
            (None, _) if evidence.is_empty() => "cannot tell".to_owned(),
            (None, _) => format!("cannot tell: {evidence}"),
        }
    }
}

/// Explains the trace at `path`, relative to the run or to the current folder.
pub(super) fn explain(out: &mut dyn Write, gathered: &Gathered, path: &Path, json: bool) -> Result<()> {
    let run = &gathered.run;
    let inside = path
        .canonicalize()
        .ok()
        .and_then(|path| path.strip_prefix(&run.root).ok().map(Path::to_owned));
    let found = run
        .traces
        .iter()
        .position(|trace| trace.path == path || Some(&trace.path) == inside.as_ref());
    let Some(index) = found else {
        bail!(
            "no trace {} in {}; give its path relative to the run",
            path.display(),
            run.root.display()
        );
    };
    let (trace, assigned) = (&run.traces[index], &gathered.assignment.traces[index]);
    let answers: Vec<Answer> = gathered
        .answers
        .iter()
        .map(|answer| Answer::of(&answer.policy, &answer.labels[index]))
        .collect();
    let winner = answers
        .iter()
        .find(|answer| Some(&answer.policy) == assigned.by.as_ref());
    let because = match winner {
        None => "no policy can tell",
        Some(winner) if winner.policy == MAP => "the map is your last word",
        Some(winner) if winner.answer == "role" => "a trace that any policy knows to be of no rank is in no rank set",
        Some(winner) if winner.certain == Some(true) => "the first certain claim wins",
        Some(_) => "no claim is certain, so the first one wins",
    };
    let explanation = Explanation {
        path: trace.display_path(),
        kind: trace.kind.as_str(),
        gpu_events: trace.gpu_events,
        answers,
        role: assigned.role.clone(),
        rank: assigned.rank,
        group: assigned.group.clone(),
        by: assigned.by.clone(),
        because,
    };
    if json {
        serde_json::to_writer_pretty(&mut *out, &explanation)?;
        writeln!(out)?;
        return Ok(());
    }
    let gpu = match trace.gpu_events {
        Some(true) => ", GPU events",
        Some(false) => ", no GPU events",
        None => "",
    };
    writeln!(out, "{} ({}{gpu})", printable(&explanation.path), explanation.kind)?;
    let width = explanation
        .answers
        .iter()
        .map(|answer| answer.policy.len())
        .max()
        .unwrap_or(0);
    for answer in &explanation.answers {
        let mark = if Some(&answer.policy) == explanation.by.as_ref() {
            '>'
        } else {
            ' '
        };
        writeln!(out, "{mark} {:width$}  {}", answer.policy, answer.text())?;
    }
    let verdict = match (assigned.rank, &assigned.role) {
        (Some(rank), _) => format!("rank {rank} of group {}", printable(&assigned.group)),
        (None, Some(role)) => format!("{}, of no rank", printable(role)),
        (None, None) => "rank unknown".to_owned(),
    };
    writeln!(out, "{verdict}: {because}")?;
    Ok(())
}
