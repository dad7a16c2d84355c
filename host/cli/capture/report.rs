//! What people and the state folder are told of a capture.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use super::super::site::Site;
use super::super::text::printable;
use super::options::{CaptureOptions, Plan, Via};
use crate::capture::{
    AttemptRecord, Cancel, Ending, Fate, Gathered, Manifest, State, Trigger, TriggerResult, TriggerSink,
    append_json_line, attempts_file_name,
};
use crate::scratch::Scratch;

/// One JSON line an attempt.
pub const ATTEMPTS: &str = "attempts.jsonl";
/// How the trigger ended.
pub const RESULT: &str = "result.json";
/// What the background trigger printed.
pub const TRIGGER_LOG: &str = "trigger.log";
/// What `start` left.
pub const DAEMON: &str = "daemon.json";

struct Sink<'a> {
    state: &'a State,
    output: &'a Path,
    say: &'a (dyn Fn(&str) + Sync),
    kineto_scratch: Mutex<Option<Scratch>>,
    manifests: Mutex<Vec<Manifest>>,
}

impl TriggerSink for Sink<'_> {
    fn line(&self, text: &str) {
        (self.say)(text);
    }

    fn record(&self, record: &AttemptRecord) {
        let beside_traces = self.output.join(attempts_file_name());
        for recorded in [
            self.state.append(ATTEMPTS, record),
            append_json_line(&beside_traces, record, 0o666),
        ] {
            if let Err(error) = recorded {
                (self.say)(&format!("the attempt is not recorded: {error:#}"));
            }
        }
    }

    fn accepted(&self, manifest: Manifest) {
        if let Some(scratch) = self
            .kineto_scratch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            scratch.keep();
        }
        match manifest.write(self.output) {
            Ok(paths) => paths
                .iter()
                .for_each(|path| (self.say)(&format!("who is who is noted in {}", path.display()))),
            Err(error) => (self.say)(&format!("{error:#}: the traces' ranks will not be known")),
        }
        self.manifests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(manifest);
    }
}

/// Asks, and notes everything; the manifests are those of the hosts that accepted.
pub fn trigger(
    site: &Site,
    options: &CaptureOptions,
    plan: &mut Plan,
    state: &State,
    cancel: &Cancel,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(TriggerResult, Vec<Manifest>)> {
    let interpreter = match (&options.interpreter, options.via) {
        (None, Via::Rpc) => site.rpc_interpreter()?,
        (file, _) => site.interpreter(file.as_deref())?,
    };
    let census = site.rpc_interpreter()?;
    for note in &plan.notes {
        say(note);
    }
    state.forget(RESULT);
    let sink = Sink {
        state,
        output: &plan.output,
        say,
        kineto_scratch: Mutex::new(plan.kineto_scratch.take()),
        manifests: Mutex::default(),
    };
    let trigger = Trigger {
        host: &site.host,
        interpreter: &interpreter,
        census: &census,
        targets: &plan.targets,
        request: &plan.request,
        patience: &plan.patience,
        cancel,
        sink: &sink,
    };
    let result = trigger.run();
    state.write(RESULT, &result)?;
    Ok((
        result,
        sink.manifests.into_inner().unwrap_or_else(PoisonError::into_inner),
    ))
}

/// One process's trace, for people.
pub fn fate(gathered: &Gathered) -> String {
    let who = match gathered.rank {
        Some(rank) => format!("{}, pid {} (rank {rank})", gathered.host, gathered.pid),
        None => format!("{}, pid {}", gathered.host, gathered.pid),
    };
    let at = |path: Option<&Path>| path.unwrap_or(&gathered.expected).display().to_string();
    let what = match gathered.fate {
        Fate::Written => format!("written: {}", at(gathered.path.as_deref())),
        Fate::Redirected => format!("redirected by Kineto, now at {}", at(gathered.path.as_deref())),
        Fate::ProcessDied => "the process ended before its trace was written".to_owned(),
        Fate::TooLate => format!("too late: {}.tmp is still being written", at(None)),
        Fate::Nothing => format!("nothing came at {}", at(None)),
    };
    match &gathered.problem {
        Some(problem) => printable(&format!("{who}: {what}; {problem}")),
        None => printable(&format!("{who}: {what}")),
    }
}

/// What was captured, in one sentence, and where nothing was, why.
pub fn conclusion(result: Option<Ending>, attempts: u32, files: &[Gathered], output: &Path) -> Vec<String> {
    let there = files.iter().filter(|file| file.is_there()).count();
    let output = output.display();
    if there > 0 {
        return vec![format!("Captured {there} torch.profiler trace(s) in {output}")];
    }
    let why = match result {
        Some(Ending::Accepted) if files.iter().any(|file| file.fate == Fate::ProcessDied) => {
            "the request was accepted, but the processes ended before they had written: trace less, or earlier"
        }
        Some(Ending::Accepted) if files.iter().any(|file| file.fate == Fate::TooLate) => {
            "the request was accepted, and the traces were still being written: wait longer"
        }
        Some(Ending::Accepted) => {
            "the request was accepted, but no file came: the job may have no optimizer steps to count, a profiler of its own, or be short of \
             warm-up time; KINETO_LOG_LEVEL=0 in the job tells more"
        }
        Some(Ending::RequestRejected) => {
            "dyno rejected the trace request itself: its own words are above, and in the state folder"
        }
        Some(Ending::Unreachable) => "the daemon could not be reached, or did not answer",
        Some(Ending::Busy) => "an earlier request was still pending at every attempt",
        Some(Ending::NoProcess) => {
            "the trigger never matched a PyTorch process: the job did not run with KINETO_USE_DAEMON=1 and a PyTorch that has Kineto, or \
             under another SLURM_JOB_ID"
        }
        Some(Ending::Stopped) | None if attempts > 0 => {
            "the trigger never matched a PyTorch process, and was still asking when the capture ended"
        }
        Some(Ending::Stopped) | None => {
            "the trigger never matched a PyTorch process: the capture ended before the first request, during the warm-up; lower \
             TORCH_PROFILE_WARMUP_S"
        }
    };
    vec![
        format!("No torch.profiler traces were captured in {output}"),
        why.to_owned(),
    ]
}
