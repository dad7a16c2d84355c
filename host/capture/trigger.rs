//! Asking until the answer is yes, or until asking again is of no use: verdicts decide, nothing else.

use std::time::{Duration, Instant};

use super::cancel::Cancel;
use super::manifest::{Manifest, now};
use super::muster::Stand;
use super::outcome::{AttemptRecord, Ending, HostOutcome, NotedAttempt, TriggerResult, ending, word};
use super::registration::{HostRanks, Registered};
use super::request::{Request, Window};
use super::target::Target;
use crate::plugins::{Answer, Call, Plugin, PluginHost, Verdict};

/// When to ask, and how often.
#[derive(Debug, Clone)]
pub struct Patience {
    /// Before the first request.
    pub warmup: Duration,
    /// How long nobody new may have registered before those that have are asked for without the rest.
    pub stable: Duration,
    /// How many ranks each host has, if the user says so.
    pub expect: Option<u32>,
    /// Between two.
    pub interval: Duration,
    /// Requests at most.
    pub attempts: u32,
    /// No request starts later than this after the first one.
    pub at_most: Option<Duration>,
    /// Requests without an answer in a row after which a daemon is given up.
    pub unreachable: u32,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// From a request to the common start on several hosts: a process fetches it within 5 s and wants 5 s of warm-up after that
    /// (facts/dynolog.md section 6).
    pub start_delay: Option<Duration>,
}

/// Who is told.
pub trait TriggerSink {
    /// A line for people. It may hold anything.
    fn line(&self, text: &str);
    /// What came of one attempt.
    fn record(&self, record: &AttemptRecord);
    /// At once when a daemon accepted, with those that it triggered. More than once for a host whose ranks registered one after the other.
    fn accepted(&self, manifest: Manifest);
}

/// All that asking needs.
#[allow(missing_docs)]
pub struct Trigger<'a> {
    pub host: &'a PluginHost,
    pub interpreter: &'a Plugin,
    /// Judges the raw reply of a daemon that is asked who has registered.
    pub census: &'a Plugin,
    pub targets: &'a [Target],
    pub request: &'a Request,
    pub patience: &'a Patience,
    pub cancel: &'a Cancel,
    pub sink: &'a dyn TriggerSink,
}

/// Where one daemon stands.
pub(super) struct Asked {
    pub(super) outcome: HostOutcome,
    /// Nothing more is to be asked of it.
    pub(super) settled: bool,
    pub(super) silent_in_a_row: u32,
    pub(super) attempts: Vec<NotedAttempt>,
    /// Those that were triggered.
    pub(super) traced: Vec<Registered>,
    /// The host's ranks among them.
    pub(super) ranks: HostRanks,
}

impl Trigger<'_> {
    /// Asks all daemons, each until it is settled: accepted for all ranks that it can be known to have, or beyond hope.
    pub fn run(&self) -> TriggerResult {
        let capture = format!("{:.0}-{}", now() * 1000.0, std::process::id());
        let mut asked: Vec<Asked> = self.targets.iter().map(Asked::not_asked).collect();
        let patience = self.patience;
        let mut awake = self.cancel.sleep(patience.warmup);
        let first = Instant::now();
        let mut attempt = 0;
        while awake && attempt < patience.attempts {
            attempt += 1;
            self.attempt(&capture, attempt, &mut asked, first);
            let late = patience
                .at_most
                .is_some_and(|limit| first.elapsed() + patience.interval > limit);
            if asked.iter().all(|asked| asked.settled) || late {
                break;
            }
            if attempt < patience.attempts {
                awake = self.cancel.sleep(patience.interval);
            }
        }
        let cancelled = !awake || self.cancel.is_cancelled();
        for (target, asked) in self.targets.iter().zip(&mut asked) {
            self.conclude(target, asked, cancelled);
        }
        let hosts: Vec<HostOutcome> = asked.into_iter().map(|asked| asked.outcome).collect();
        let result = hosts.iter().map(|host| host.result).min().unwrap_or(Ending::Stopped);
        TriggerResult { result, hosts }
    }

    fn attempt(&self, capture: &str, attempt: u32, asked: &mut [Asked], first: Instant) {
        let open: Vec<usize> = (0..asked.len()).filter(|&which| !asked[which].settled).collect();
        let until = self.patience.at_most.map(|limit| first + limit);
        let stands = self.muster(attempt, asked, &open, until);
        if self.cancel.is_cancelled() {
            return;
        }
        let start_time_ms = match (self.patience.start_delay, self.request.window) {
            (Some(delay), Window::Duration(_)) => ((now() + delay.as_secs_f64()) * 1000.0) as u64,
            _ => self.request.start_time_ms,
        };
        let mut requests = Vec::new();
        let mut answers = Vec::new();
        for (&which, stand) in open.iter().zip(stands) {
            let mut request = Request {
                start_time_ms,
                ..self.request.clone()
            };
            match stand {
                Stand::Answered(call, answer) => {
                    answers.push((which, call, answer));
                    continue;
                }
                Stand::Unknown => {}
                Stand::Ready(ready) => {
                    request.process_limit = ready.limit;
                    if !ready.pids.is_empty() {
                        request.pids = ready.pids;
                    }
                }
            }
            requests.push((which, request));
        }
        let (timeout, unwanted) = (self.patience.request_timeout, || self.cancel.is_cancelled());
        let calls = in_parallel(&requests, |(which, request)| {
            self.targets[*which].ask(request, timeout, attempt, &unwanted)
        });
        for ((which, _), call) in requests.into_iter().zip(calls) {
            let answer = self.interpret(self.interpreter, &call);
            answers.push((which, call, answer));
        }
        answers.sort_by_key(|(which, ..)| *which);
        for (which, call, answer) in answers {
            let target = &self.targets[which];
            self.sink.record(&AttemptRecord {
                capture,
                time: now(),
                attempt,
                host: &target.address.host,
                verdict: word(answer.verdict),
                matched: &answer.matched,
                triggered: &answer.triggered,
                busy: answer.busy,
                reason: &answer.reason,
                exit_code: call.exit_code,
                signal: call.signal,
                timed_out: call.timed_out,
                start_time_ms,
            });
            self.settle(capture, attempt, target, &mut asked[which], &call, answer);
        }
    }

    pub(super) fn interpret(&self, interpreter: &Plugin, call: &Call) -> Answer {
        self.host
            .interpret(interpreter, call, &[])
            .unwrap_or_else(|error| Answer {
                verdict: Verdict::Rejected,
                matched: Vec::new(),
                triggered: Vec::new(),
                busy: 0,
                reason: format!("the answer cannot be interpreted: {error}"),
            })
    }
}

impl Asked {
    fn not_asked(target: &Target) -> Asked {
        Asked {
            outcome: HostOutcome {
                host: target.address.host.clone(),
                result: Ending::Stopped,
                attempts: 0,
                matched: Vec::new(),
                triggered: Vec::new(),
                busy: 0,
                reason: "it was not asked".into(),
                ranks_expected: None,
                ranks_missing: 0,
                missing_ranks: Vec::new(),
            },
            settled: false,
            silent_in_a_row: 0,
            attempts: Vec::new(),
            traced: Vec::new(),
            ranks: HostRanks::default(),
        }
    }

    /// Whether it accepted once: nothing that comes later takes that back.
    pub(super) fn is_accepted(&self) -> bool {
        self.outcome.result == Ending::Accepted
    }

    /// What is missing, said of a host that accepted.
    pub(super) fn not_yet(&self) -> String {
        format!("{}: not registered yet", self.ranks.missing_in_words())
    }

    /// Notes an answer in what will be the outcome.
    pub(super) fn note(&mut self, attempt: u32, answer: &Answer) {
        self.attempts.push(NotedAttempt {
            time: now(),
            attempt,
            verdict: word(answer.verdict).to_owned(),
            reason: answer.reason.clone(),
        });
        let was_accepted = self.is_accepted();
        let outcome = &mut self.outcome;
        outcome.attempts = attempt;
        if was_accepted && answer.verdict != Verdict::Accepted {
            return;
        }
        if was_accepted {
            let new = |pids: &[i64], known: &[i64]| -> Vec<i64> {
                pids.iter().copied().filter(|pid| !known.contains(pid)).collect()
            };
            outcome.matched.extend(new(&answer.matched, &outcome.matched));
            outcome.triggered.extend(new(&answer.triggered, &outcome.triggered));
        } else {
            outcome.matched.clone_from(&answer.matched);
            outcome.triggered.clone_from(&answer.triggered);
        }
        outcome.result = ending(answer.verdict);
        outcome.busy = answer.busy;
        outcome.reason.clone_from(&answer.reason);
    }
}

/// One thread each; results in the order of `items`.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let running: Vec<_> = items.iter().map(|item| scope.spawn(|| work(item))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
