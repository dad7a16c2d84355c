//! Asking until the answer is yes, or until asking again is of no use: verdicts decide, nothing else.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::manifest::now;
use super::request::{Request, Window};
use super::target::Target;
use crate::plugins::{Answer, Call, Plugin, PluginHost, Verdict};

/// Tells a capture that nobody needs it any more.
#[derive(Debug, Default)]
pub struct Cancel {
    cancelled: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    /// From now on it is cancelled.
    pub fn cancel(&self) {
        *self.cancelled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether it is.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps, and says whether it slept to the end.
    pub fn sleep(&self, time: Duration) -> bool {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(cancelled, time, |cancelled| !*cancelled);
        let (cancelled, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*cancelled
    }
}

/// When to ask, and how often.
#[derive(Debug, Clone)]
pub struct Patience {
    /// Before the first request.
    pub warmup: Duration,
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

/// How asking one daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Processes were triggered.
    Accepted,
    /// The request can never succeed.
    RequestRejected,
    /// No answer came.
    Unreachable,
    /// All matched processes had a request pending to the last.
    Busy,
    /// No process matched to the last.
    NoProcess,
    /// Cancelled before any of that.
    Stopped,
}

/// How it ended for one host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct HostOutcome {
    pub host: String,
    pub result: Ending,
    pub attempts: u32,
    pub matched: Vec<i64>,
    pub triggered: Vec<i64>,
    pub busy: u32,
    pub reason: String,
}

/// How it ended for all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TriggerResult {
    /// `accepted` if any host's was, else the first of the hosts' endings in the order of [`Ending`].
    pub result: Ending,
    /// One a host, in the order in which they were given.
    pub hosts: Vec<HostOutcome>,
}

/// One attempt, as the state folder keeps it.
#[derive(Debug, Serialize)]
#[allow(missing_docs)]
pub struct AttemptRecord<'a> {
    /// Seconds since 1970.
    pub time: f64,
    pub attempt: u32,
    pub host: &'a str,
    pub verdict: &'static str,
    pub matched: &'a [i64],
    pub triggered: &'a [i64],
    pub busy: u32,
    pub reason: &'a str,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub timed_out: bool,
    pub start_time_ms: u64,
}

/// Who is told.
pub trait TriggerSink {
    /// A line for people. It may hold anything.
    fn line(&self, text: &str);
    /// What came of one attempt.
    fn record(&self, record: &AttemptRecord);
    /// At once when `target` accepted.
    fn accepted(&self, target: &Target, triggered: &[i64]);
}

/// All that asking needs.
#[allow(missing_docs)]
pub struct Trigger<'a> {
    pub host: &'a PluginHost,
    pub interpreter: &'a Plugin,
    pub targets: &'a [Target],
    pub request: &'a Request,
    pub patience: &'a Patience,
    pub cancel: &'a Cancel,
    pub sink: &'a dyn TriggerSink,
}

struct Asked {
    outcome: HostOutcome,
    settled: bool,
    silent_in_a_row: u32,
}

impl Trigger<'_> {
    /// Asks all daemons, each until it is settled.
    pub fn run(&self) -> TriggerResult {
        let mut asked: Vec<Asked> = self.targets.iter().map(Asked::not_yet).collect();
        let patience = self.patience;
        let mut awake = self.cancel.sleep(patience.warmup);
        let first = Instant::now();
        let mut attempt = 0;
        while awake && attempt < patience.attempts {
            attempt += 1;
            self.attempt(attempt, &mut asked);
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
        self.give_up(&asked, !awake || self.cancel.is_cancelled());
        let hosts: Vec<HostOutcome> = asked.into_iter().map(|asked| asked.outcome).collect();
        let result = hosts.iter().map(|host| host.result).min().unwrap_or(Ending::Stopped);
        TriggerResult { result, hosts }
    }

    fn attempt(&self, attempt: u32, asked: &mut [Asked]) {
        let mut request = self.request.clone();
        if let (Some(delay), Window::Duration(_)) = (self.patience.start_delay, request.window) {
            request.start_time_ms = ((now() + delay.as_secs_f64()) * 1000.0) as u64;
        }
        let open: Vec<usize> = (0..asked.len()).filter(|&which| !asked[which].settled).collect();
        let unwanted = || self.cancel.is_cancelled();
        let calls: Vec<(usize, Call)> = std::thread::scope(|scope| {
            let ask = |&which: &usize| {
                let (target, request, unwanted) = (&self.targets[which], &request, &unwanted);
                let timeout = self.patience.request_timeout;
                (
                    which,
                    scope.spawn(move || target.ask(request, timeout, attempt, unwanted)),
                )
            };
            let running: Vec<_> = open.iter().map(ask).collect();
            running
                .into_iter()
                .filter_map(|(which, thread)| Some((which, thread.join().ok()?)))
                .collect()
        });
        for (which, call) in calls {
            let target = &self.targets[which];
            let answer = self.interpret(&call);
            self.sink.record(&AttemptRecord {
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
                start_time_ms: request.start_time_ms,
            });
            self.settle(attempt, target, &mut asked[which], &call, answer);
        }
    }

    fn interpret(&self, call: &Call) -> Answer {
        self.host
            .interpret(self.interpreter, call, &[])
            .unwrap_or_else(|error| Answer {
                verdict: Verdict::Rejected,
                matched: Vec::new(),
                triggered: Vec::new(),
                busy: 0,
                reason: format!("the answer cannot be interpreted: {error}"),
            })
    }

    fn settle(&self, attempt: u32, target: &Target, asked: &mut Asked, call: &Call, answer: Answer) {
        let say = |text: String| self.sink.line(&self.of_host(target, &text));
        let again = format!("asking again in {} s", self.patience.interval.as_secs_f64());
        let last = attempt == self.patience.attempts;
        let outlook = |text: &str| {
            if last {
                format!("attempt {attempt}: {text}")
            } else {
                format!("attempt {attempt}: {text}; {again}")
            }
        };
        asked.silent_in_a_row = if answer.verdict == Verdict::Unreachable {
            asked.silent_in_a_row + 1
        } else {
            0
        };
        let outcome = &mut asked.outcome;
        *outcome = HostOutcome {
            host: target.address.host.clone(),
            result: ending(answer.verdict),
            attempts: attempt,
            matched: answer.matched,
            triggered: answer.triggered,
            busy: answer.busy,
            reason: answer.reason,
        };
        asked.settled = match answer.verdict {
            Verdict::Accepted => {
                say(format!(
                    "trace request accepted on attempt {attempt}: {}",
                    outcome.reason
                ));
                self.sink.accepted(target, &outcome.triggered);
                true
            }
            Verdict::Rejected => {
                say(format!("dyno rejected the request; not retrying: {}", outcome.reason));
                for line in own_words(call) {
                    say(format!("    {line}"));
                }
                true
            }
            Verdict::Waiting => {
                say(outlook("no PyTorch process matched yet"));
                false
            }
            Verdict::Busy => {
                say(outlook(&outcome.reason));
                false
            }
            // A second request would queue up behind the first: every one of them is carried out in the end.
            Verdict::Unreachable if call.timed_out => {
                let waited = self.patience.request_timeout.as_secs_f64();
                say(format!(
                    "attempt {attempt}: no answer within {waited} s; not asking again: the daemon is blocked by another client, or gone"
                ));
                for line in own_words(call) {
                    say(format!("    {line}"));
                }
                true
            }
            Verdict::Unreachable => {
                let too_often = asked.silent_in_a_row >= self.patience.unreachable;
                match too_often {
                    true => say(format!(
                        "attempt {attempt}: {}; {} times in a row, giving up",
                        outcome.reason, asked.silent_in_a_row
                    )),
                    false => say(outlook(&outcome.reason)),
                }
                too_often
            }
        };
    }

    fn give_up(&self, asked: &[Asked], cancelled: bool) {
        for (target, asked) in self
            .targets
            .iter()
            .zip(asked)
            .filter(|(_, asked)| !asked.settled && !cancelled)
        {
            let attempts = asked.outcome.attempts;
            let text = match asked.outcome.result {
                Ending::NoProcess => format!(
                    "gave up after {attempts} attempts: no PyTorch process registered. Does the job run with KINETO_USE_DAEMON=1, on this \
                     host, with PyTorch 1.13 or newer, and is its SLURM_JOB_ID {}? If it only starts later, raise \
                     TORCH_PROFILE_WARMUP_S or TORCH_PROFILE_MAX_ATTEMPTS",
                    match self.request.job_id {
                        0 => "unset".to_owned(),
                        id => id.to_string(),
                    }
                ),
                Ending::Busy => format!(
                    "gave up after {attempts} attempts: an earlier request is still pending. A process that ended without fetching it \
                     counts as busy for up to two minutes"
                ),
                _ => format!("gave up after {attempts} attempts: {}", asked.outcome.reason),
            };
            self.sink.line(&self.of_host(target, &text));
        }
    }

    fn of_host(&self, target: &Target, text: &str) -> String {
        match self.targets.len() {
            1 => text.to_owned(),
            _ => format!("{}: {text}", target.address.host),
        }
    }
}

impl Asked {
    fn not_yet(target: &Target) -> Asked {
        let outcome = HostOutcome {
            host: target.address.host.clone(),
            result: Ending::Stopped,
            attempts: 0,
            matched: Vec::new(),
            triggered: Vec::new(),
            busy: 0,
            reason: "it was not asked".into(),
        };
        Asked {
            outcome,
            settled: false,
            silent_in_a_row: 0,
        }
    }
}

fn ending(verdict: Verdict) -> Ending {
    match verdict {
        Verdict::Accepted => Ending::Accepted,
        Verdict::Rejected => Ending::RequestRejected,
        Verdict::Unreachable => Ending::Unreachable,
        Verdict::Busy => Ending::Busy,
        Verdict::Waiting => Ending::NoProcess,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Waiting => "waiting",
        Verdict::Busy => "busy",
        Verdict::Unreachable => "unreachable",
        Verdict::Rejected => "rejected",
    }
}

/// What the program printed, as far as it is text. The daemon's own framed reply is not: the reason has its words.
fn own_words(call: &Call) -> Vec<String> {
    const MOST: usize = 40;
    let text = |bytes: &[u8]| {
        if bytes.contains(&0) {
            String::new()
        } else {
            String::from_utf8_lossy(bytes).into_owned()
        }
    };
    let (stdout, stderr) = (text(&call.stdout), text(&call.stderr));
    let lines = stdout
        .lines()
        .chain(stderr.lines())
        .filter(|line| !line.trim().is_empty());
    lines.take(MOST).map(str::to_owned).collect()
}
