//! The run in a sentence, and its ranks in a line of characters: the top of the page, and the end of what the terminal shows.

use super::attention::{Item, Weight};
use super::ranks::{State, folded, group_name, of_world, ranked, worst};
use super::text::duration;
use super::{Source, attention, time};
use crate::bytes::Verdict;
use crate::reports::{Generator, Status, Work};

/// What a run comes to.
#[derive(Debug, Clone)]
pub struct Glance {
    /// `4 of 4 ranks, 2 traces mended, collective report built; rank 2 is slowest by 31 %`, without a final stop.
    pub sentence: String,
    /// `bad`, `warn` or `good`.
    pub tone: &'static str,
    /// The ranks of each group.
    pub ranks: Vec<RankLine>,
    /// What needs attention, the worst first: what it is, and the command that mends it. It may hold anything that names can.
    pub attention: Vec<(String, Option<String>)>,
}

/// The ranks of a group as characters.
#[derive(Debug, Clone)]
pub struct RankLine {
    /// The group.
    pub group: String,
    /// A character for each rank or, where there are more than 64, each so many: `=` present, `m` mended, `2` claimed twice,
    /// `.` missing, `X` refused; the worst of those that share one.
    pub line: String,
    /// How many ranks share a character.
    pub share: u64,
    /// `4 of 4 ranks`.
    pub summary: String,
}

/// One figure at the top of the page.
pub(super) struct Fact {
    pub(super) value: String,
    pub(super) label: &'static str,
    pub(super) detail: String,
    pub(super) tone: &'static str,
}

impl Glance {
    /// Of a finished run.
    pub fn of(source: &Source) -> Glance {
        let items = attention::items(source);
        Glance {
            sentence: sentence(source),
            tone: tone(&items),
            ranks: ranked(source.assignment)
                .map(|group| {
                    let (cells, share) = folded(group, 64);
                    let state = |cell| worst(source.run, group, cell * share, share).character();
                    RankLine {
                        group: group_name(&group.name).0,
                        line: (0..cells).map(state).collect(),
                        share,
                        summary: of_world(group),
                    }
                })
                .collect(),
            attention: items
                .into_iter()
                .map(|item| (item.what.0, item.command.map(|command| command.0)))
                .collect(),
        }
    }
}

/// What each character of a [`RankLine`] means.
pub fn meaning(character: char) -> Option<&'static str> {
    State::ALL
        .into_iter()
        .find(|state| state.character() == character)
        .map(State::word)
}

pub(super) fn tone(items: &[Item]) -> &'static str {
    match items.first().map(|item| item.weight) {
        Some(Weight::Bad) => "bad",
        Some(Weight::Warn) => "warn",
        Some(Weight::Note) | None => "good",
    }
}

fn plural(number: usize, noun: &str) -> String {
    if number == 1 {
        format!("1 {noun}")
    } else {
        format!("{number} {noun}s")
    }
}

fn of_verdict(source: &Source, verdict: Verdict) -> usize {
    source
        .run
        .traces
        .iter()
        .filter(|trace| trace.findings.verdict == verdict)
        .count()
}

fn of_status(source: &Source, status: Status) -> usize {
    source.rows.iter().filter(|row| row.status == status).count()
}

/// How many ranks there are, of how many, in how many groups.
fn rank_counts(source: &Source) -> (u64, u64, usize) {
    ranked(source.assignment).fold((0, 0, 0), |(there, all, groups), group| {
        (
            there + group.ranks.len() as u64,
            all + u64::from(group.world_size).max(group.ranks.len() as u64),
            groups + 1,
        )
    })
}

pub(super) fn sentence(source: &Source) -> String {
    if source.run.traces.is_empty() {
        return "No traces were found".to_owned();
    }
    let mut parts = Vec::new();
    match rank_counts(source) {
        (_, _, 0) => parts.push(plural(source.run.traces.len(), "trace")),
        (there, all, 1) => parts.push(format!("{there} of {}", plural(all as usize, "rank"))),
        (there, all, groups) => parts.push(format!("{there} of {all} ranks in {groups} groups")),
    }
    match (
        of_verdict(source, Verdict::Damaged),
        of_verdict(source, Verdict::Refused),
    ) {
        (0, 0) => parts.push("all traces clean".to_owned()),
        (mended, refused) => {
            if mended > 0 {
                parts.push(format!("{} mended", plural(mended, "trace")));
            }
            if refused > 0 {
                parts.push(format!("{} beyond mending", plural(refused, "trace")));
            }
        }
    }
    let collective = source
        .jobs
        .iter()
        .zip(source.rows)
        .filter(|(job, row)| {
            matches!(job.work, Work::TraceLens(Generator::Collective)) && row.status == Status::Success
        })
        .count();
    match (of_status(source, Status::Success), collective) {
        (0, _) => parts.push("no report made".to_owned()),
        (made, 0) => parts.push(format!("{} made", plural(made, "report"))),
        (_, 1) => parts.push("collective report built".to_owned()),
        (_, several) => parts.push(format!("{several} collective reports built")),
    }
    let failed = of_status(source, Status::Failure);
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    let mut sentence = parts.join(", ");
    let slow = time::slow(source)
        .into_iter()
        .max_by(|a, b| a.percent.total_cmp(&b.percent));
    if let Some(slow) = slow {
        let of = if rank_counts(source).2 > 1 {
            format!(" of {}", group_name(slow.group).0)
        } else {
            String::new()
        };
        sentence.push_str(&format!("; rank {}{of} is slowest by {:.0} %", slow.rank, slow.percent));
    }
    sentence
}

/// The figures at the top.
pub(super) fn facts(source: &Source) -> Vec<Fact> {
    let mut facts = Vec::new();
    let (there, all, groups) = rank_counts(source);
    if groups > 0 {
        facts.push(Fact {
            value: format!("{there}/{all}"),
            label: "ranks present",
            detail: if groups == 1 {
                String::new()
            } else {
                format!("in {groups} groups")
            },
            tone: if there == all { "good" } else { "bad" },
        });
    }
    let (mended, refused) = (
        of_verdict(source, Verdict::Damaged),
        of_verdict(source, Verdict::Refused),
    );
    let clean = source.run.traces.len() - mended - refused;
    facts.push(Fact {
        value: source.run.traces.len().to_string(),
        label: "traces",
        detail: [(clean, "clean"), (mended, "mended"), (refused, "refused")]
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| format!("{number} {word}"))
            .collect::<Vec<_>>()
            .join(", "),
        tone: if refused > 0 {
            "bad"
        } else if mended > 0 {
            "warn"
        } else {
            "good"
        },
    });
    let (made, failed, skipped) = (
        of_status(source, Status::Success),
        of_status(source, Status::Failure),
        of_status(source, Status::Skipped),
    );
    facts.push(Fact {
        value: made.to_string(),
        label: if made == 1 { "report made" } else { "reports made" },
        detail: [(failed, "failed"), (skipped, "skipped")]
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| format!("{number} {word}"))
            .collect::<Vec<_>>()
            .join(", "),
        tone: if failed > 0 { "bad" } else { "good" },
    });
    let times: Vec<_> = source
        .figures
        .iter()
        .flat_map(|figures| &figures.ranks)
        .filter_map(|row| row.timeline)
        .collect();
    let whole: u64 = times.iter().map(|time| time.total_ns).sum();
    if whole > 0 {
        let share = |part: u64| format!("{:.0} %", part as f64 / whole as f64 * 100.0);
        facts.push(Fact {
            value: share(times.iter().map(|time| time.busy_ns).sum()),
            label: "GPU busy",
            detail: format!("of {} in all traces", duration(whole as f64)),
            tone: "",
        });
        facts.push(Fact {
            value: share(times.iter().map(|time| time.exposed_communication_ns).sum()),
            label: "exposed communication",
            detail: "no computation runs beside it".to_owned(),
            tone: "",
        });
    }
    facts
}
