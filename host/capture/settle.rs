//! What an answer means for one daemon, and what people are told of it.

use super::manifest::Manifest;
use super::outcome::Ending;
use super::registration::Registered;
use super::target::Target;
use super::trigger::{Asked, Trigger};
use crate::plugins::{Answer, Call, Verdict};

impl Trigger<'_> {
    /// Takes one answer for what it means: more to ask of `target`, or nothing.
    pub(super) fn settle(
        &self,
        capture: &str,
        attempt: u32,
        target: &Target,
        asked: &mut Asked,
        call: &Call,
        answer: Answer,
    ) {
        let say = |text: String| self.sink.line(&self.of_host(target, &text));
        let again = format!("asking again in {} s", self.patience.interval.as_secs_f64());
        let last = attempt == self.patience.attempts;
        let outlook = |text: &str| match last {
            true => format!("attempt {attempt}: {text}"),
            false => format!("attempt {attempt}: {text}; {again}"),
        };
        asked.silent_in_a_row = match answer.verdict {
            Verdict::Unreachable => asked.silent_in_a_row + 1,
            _ => 0,
        };
        asked.note(attempt, &answer);
        let reason = &answer.reason;
        asked.settled = match answer.verdict {
            Verdict::Accepted => {
                say(format!("trace request accepted on attempt {attempt}: {reason}"));
                let traced = Registered::all(&answer.triggered, target.address.is_local());
                if target.address.is_local() && traced.iter().all(|process| process.at.identity.is_none()) {
                    say("none of them is seen to run here: they ended, or run in a container".to_owned());
                }
                self.sink
                    .accepted(Manifest::of(target, capture, &asked.attempts, &traced));
                asked.traced.extend(traced);
                asked.ranks = self.ranks(&asked.traced);
                let full = self.is_full(asked);
                let missing = asked.ranks.missing_count() > 0;
                if missing && !full && !last {
                    let words = asked.ranks.missing_in_words();
                    say(format!("without {words} so far; {again}"));
                }
                !missing || full
            }
            Verdict::Rejected => {
                say(format!("dyno rejected the request; not retrying: {reason}"));
                for line in own_words(call) {
                    say(format!("    {line}"));
                }
                true
            }
            Verdict::Waiting if answer.matched.is_empty() && !asked.is_accepted() => {
                say(outlook("no PyTorch process matched yet"));
                false
            }
            Verdict::Waiting | Verdict::Busy => {
                say(outlook(reason));
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
                        "attempt {attempt}: {reason}; {} times in a row, giving up",
                        asked.silent_in_a_row
                    )),
                    false => say(outlook(reason)),
                }
                too_often
            }
        };
    }

    /// The last word on one daemon.
    pub(super) fn conclude(&self, target: &Target, asked: &mut Asked, cancelled: bool) {
        let say = |text: String| self.sink.line(&self.of_host(target, &text));
        if asked.is_accepted() {
            let ranks = &asked.ranks;
            if ranks.missing_count() > 0 {
                let words = ranks.missing_in_words();
                say(match (self.is_full(asked), cancelled) {
                    (true, _) => format!("no capture of {words}: --process-limit is reached"),
                    (_, true) => format!("no capture of {words}: not registered when the capture ended"),
                    _ => format!(
                        "no capture of {words}: not registered by the last attempt; TORCH_PROFILE_MAX_ATTEMPTS makes more"
                    ),
                });
            }
            asked.outcome.ranks_expected = ranks.expected;
            asked.outcome.ranks_missing = ranks.missing_count();
            asked.outcome.missing_ranks = ranks.missing.clone();
            return;
        }
        if asked.settled || cancelled {
            return;
        }
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
        say(text);
    }

    /// Whether as many are traced as may be.
    fn is_full(&self, asked: &Asked) -> bool {
        i32::try_from(asked.traced.len()).is_ok_and(|traced| traced >= self.request.process_limit)
    }

    fn of_host(&self, target: &Target, text: &str) -> String {
        match self.targets.len() {
            1 => text.to_owned(),
            _ => format!("{}: {text}", target.address.host),
        }
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
