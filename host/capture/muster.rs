//! Before a request: waiting until those who will have registered have. Asked too early, the daemon accepts for one rank of eight, and
//! the trigger would be done (facts/seed.md D7).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::process::ancestors;
use super::registration::{HostRanks, Registered, workers};
use super::target::Target;
use super::trigger::{Asked, Trigger, in_parallel};
use crate::plugins::{Answer, Call, Verdict};

/// A set of processes that never comes to rest is not waited for longer than this many times the rest that is wanted.
const MOST_RESTS: u32 = 12;
/// Libkinetos poll every 5 s; more often than this nobody is asked who is there.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(500);

/// What is known of one daemon before it is asked.
pub enum Stand {
    /// There is nothing to ask: this counts as its answer.
    Answered(Call, Answer),
    /// Who has registered cannot be told.
    Unknown,
    /// Processes to ask for.
    Ready(Ready),
}

/// Processes to ask for.
pub struct Ready {
    /// Their ids; empty: all that match the request as it is.
    pub pids: Vec<i32>,
    /// How many of them may be triggered.
    pub limit: i32,
    seen: Vec<i64>,
    complete: bool,
}

impl Stand {
    fn is_waiting(&self) -> bool {
        matches!(self, Stand::Answered(call, answer) if answer.verdict == Verdict::Waiting && !call.timed_out)
    }

    fn is_ready(&self) -> bool {
        matches!(self, Stand::Ready(_))
    }

    fn is_complete(&self) -> bool {
        match self {
            Stand::Ready(ready) => ready.complete,
            other => !other.is_waiting(),
        }
    }
}

impl Trigger<'_> {
    /// Who has registered with each of the daemons `open`: at once if nobody has, or all have; else once nobody new has come for the
    /// rest that is wanted.
    pub(super) fn muster(&self, attempt: u32, asked: &[Asked], open: &[usize], until: Option<Instant>) -> Vec<Stand> {
        let mut stands = self.look(attempt, asked, open);
        let rest = self.patience.stable;
        let started = Instant::now();
        let mut last_change = started;
        let mut seen = who(&stands);
        let is_late = |now: Instant| until.is_some_and(|until| now >= until);
        while stands.iter().any(Stand::is_ready) && !stands.iter().all(Stand::is_complete) {
            let now = Instant::now();
            let rested = now >= last_change + rest || now >= started + rest * MOST_RESTS;
            if rested || is_late(now) {
                break;
            }
            let left = (last_change + rest).saturating_duration_since(now);
            if !self
                .cancel
                .sleep(left.min(rest / 10).clamp(Duration::from_millis(20), LOOK_AT_MOST_EVERY))
            {
                break;
            }
            // One that cannot say is not asked again: a daemon that hangs would hang once more.
            let again: Vec<usize> = (0..open.len())
                .filter(|&place| stands[place].is_ready() || stands[place].is_waiting())
                .collect();
            let looked = self.look(
                attempt,
                asked,
                &again.iter().map(|&place| open[place]).collect::<Vec<_>>(),
            );
            for (place, stand) in again.into_iter().zip(looked) {
                stands[place] = stand;
            }
            let now_seen = who(&stands);
            if now_seen != seen {
                seen = now_seen;
                last_change = Instant::now();
            }
        }
        stands
    }

    fn look(&self, attempt: u32, asked: &[Asked], which: &[usize]) -> Vec<Stand> {
        let timeout = self.patience.request_timeout;
        let unwanted = || self.cancel.is_cancelled();
        let calls = in_parallel(which, |&which| {
            self.targets[which].census(self.request, timeout, attempt, &unwanted)
        });
        which
            .iter()
            .zip(calls)
            .map(|(&which, call)| self.stand(&self.targets[which], &asked[which], call))
            .collect()
    }

    fn stand(&self, target: &Target, asked: &Asked, call: Call) -> Stand {
        let interpreter = if target.is_rpc() { self.interpreter } else { self.census };
        let answer = self.interpret(interpreter, &call);
        let is_roster = !answer.matched.is_empty() && answer.triggered.is_empty();
        match answer.verdict {
            Verdict::Waiting if asked.is_accepted() => waiting(call, answer, asked.not_yet()),
            Verdict::Waiting => Stand::Answered(call, answer),
            Verdict::Accepted | Verdict::Busy | Verdict::Rejected if is_roster => {
                let registered = Registered::all(&answer.matched, target.address.is_local());
                match self.ready(asked, &registered) {
                    Ok(ready) => Stand::Ready(ready),
                    Err(reason) => waiting(call, answer, reason),
                }
            }
            // Of a daemon that accepted, only those that are known to be missing may be asked for.
            _ if target.is_rpc() || call.timed_out || asked.is_accepted() => Stand::Answered(call, answer),
            _ => Stand::Unknown,
        }
    }

    /// Whom to ask for of those that have registered; an error says why nobody.
    fn ready(&self, asked: &Asked, registered: &[Registered]) -> Result<Ready, String> {
        let workers = workers(registered);
        let limit = self.request.process_limit;
        let seen = registered.iter().map(|process| process.pid).collect();
        if asked.is_accepted() {
            let late = late(&workers, asked);
            if late.is_empty() {
                return Err(asked.not_yet());
            }
            let together = asked.traced.iter().chain(late.iter().copied());
            let traced = i32::try_from(asked.traced.len()).unwrap_or(i32::MAX);
            return Ok(Ready {
                pids: ids(&late),
                limit: limit.saturating_sub(traced),
                seen,
                complete: self.ranks(together).is_complete(),
            });
        }
        if workers.is_empty() {
            return Err("only a launcher has registered yet".into());
        }
        // Launchers come first and would take places that ranks need; those that ended would be asked for in vain.
        let places = usize::try_from(limit).unwrap_or(usize::MAX);
        let choose = registered.len() > places || registered.iter().any(|process| process.at.identity.is_none());
        let all_named = choose && workers.len() < registered.len();
        Ok(Ready {
            pids: if all_named { ids(&workers) } else { Vec::new() },
            limit,
            seen,
            complete: self.ranks(workers.iter().copied()).is_complete(),
        })
    }

    /// The ranks of one host among its `processes`.
    pub(super) fn ranks<'a>(&self, processes: impl IntoIterator<Item = &'a Registered>) -> HostRanks {
        HostRanks::of(processes, self.patience.expect, self.targets.len() == 1)
    }
}

fn waiting(call: Call, answer: Answer, reason: String) -> Stand {
    let verdict = Verdict::Waiting;
    Stand::Answered(
        call,
        Answer {
            verdict,
            reason,
            ..answer
        },
    )
}

/// Those of `workers` that are not traced and may be ranks that are missing. The daemon matches a process's descendants with it: asked
/// for an ancestor of one that is traced, it would have that one traced twice.
fn late<'a>(workers: &[&'a Registered], asked: &Asked) -> Vec<&'a Registered> {
    let traced: BTreeSet<i64> = asked.traced.iter().map(|process| process.pid).collect();
    let above: BTreeSet<i64> = traced.iter().flat_map(|&pid| ancestors(pid)).collect();
    let missing = &asked.ranks.missing;
    let is_missing =
        |process: &Registered| missing.is_empty() || process.rank().is_some_and(|rank| missing.contains(&rank));
    workers
        .iter()
        .copied()
        .filter(|process| !traced.contains(&process.pid) && !above.contains(&process.pid) && is_missing(process))
        .collect()
}

fn ids(processes: &[&Registered]) -> Vec<i32> {
    processes
        .iter()
        .filter_map(|process| i32::try_from(process.pid).ok())
        .collect()
}

fn who(stands: &[Stand]) -> Vec<BTreeSet<i64>> {
    stands
        .iter()
        .map(|stand| match stand {
            Stand::Ready(ready) => ready.seen.iter().copied().collect(),
            _ => BTreeSet::new(),
        })
        .collect()
}
