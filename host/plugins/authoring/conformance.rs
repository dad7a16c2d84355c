//! What every plugin owes its host, whatever its policy: an answer to any input, the same one every time, within the limits.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::contents::SameContents;
use super::samples::{call, hostile_texts, list, no_utf8_bytes, shown, trace};
use crate::plugins::{Answer, Call, CallError, Kind, Label, Plugin, PluginHost, Reason, Trace, Verdict, World};

/// How many traces, or lines of output, the long list has.
const MANY: usize = 10_000;
/// Characters above which a reason, a role or an evidence is no text for people any more.
const LONGEST_TEXT: usize = 2_000;

/// One thing that a plugin must do, and whether it does.
#[derive(Debug, Clone)]
pub struct Check {
    /// What was asked of it.
    pub name: &'static str,
    /// Nothing if it did; otherwise what it was given, what is wanted, and what it did instead.
    pub failure: Option<String>,
    /// How long the host waited for it.
    pub time: Duration,
}

/// Puts every conformance check to `plugin`, with `settings` as a site would set them. That it imports nothing forbidden was seen
/// when it was loaded: such a plugin does not load.
pub fn run(host: &PluginHost, plugin: &Plugin, settings: &[(String, String)]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut check = |name, work: &dyn Fn() -> Result<(), String>| {
        let start = Instant::now();
        let failure = work().err();
        checks.push(Check {
            name,
            failure,
            time: start.elapsed(),
        });
    };
    check("describes itself", &|| description(plugin));
    match plugin.world {
        World::TraceNaming => {
            let naming = Naming { host, plugin, settings };
            check("empty list", &|| naming.ask(&[], SameContents::empty(0)).map(drop));
            check("10,000 traces, within the limits", &|| naming.many());
            check("hostile names", &|| naming.hostile_names());
            check("contents that are no UTF-8", &|| naming.hostile_contents());
            check("same input, same answer", &|| naming.repeated());
            check("settings that make no sense", &|| naming.hostile_settings());
        }
        World::DynoInterpreter => {
            let interpreter = Interpreter { host, plugin, settings };
            check("no output at all", &|| interpreter.silence());
            check("10,000 lines of output, within the limits", &|| interpreter.many());
            check("hostile output", &|| interpreter.hostile_output());
            check("output that is no UTF-8", &|| interpreter.no_utf8());
            check("same input, same answer", &|| interpreter.repeated());
            check("settings that make no sense", &|| interpreter.hostile_settings());
        }
    }
    checks
}

fn description(plugin: &Plugin) -> Result<(), String> {
    let described = &plugin.description;
    for (what, text) in [("version", &described.version), ("summary", &described.summary)] {
        if text.trim().is_empty() || text.contains('\n') {
            return Err(format!("its {what} is {text:?}: one line is wanted"));
        }
    }
    for (index, setting) in described.settings.iter().enumerate() {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if setting.name.is_empty() || !setting.name.chars().all(plain) {
            return Err(format!(
                "it has a setting {:?}: a setting's name has lower-case letters, digits and dashes",
                setting.name
            ));
        }
        if setting.help.trim().is_empty() {
            return Err(format!(
                "setting {} has no help: one sentence for the person who sets it is wanted",
                setting.name
            ));
        }
        if described.settings[..index]
            .iter()
            .any(|earlier| earlier.name == setting.name)
        {
            return Err(format!("it has two settings {}", setting.name));
        }
    }
    Ok(())
}

/// Text for people: there where it is wanted, on one line, and of a length that can be read.
fn readable(what: &str, text: &str, wanted: bool) -> Result<(), String> {
    if wanted && text.trim().is_empty() {
        return Err(format!("{what} is empty; it is shown to people"));
    }
    let length = text.chars().count();
    if length > LONGEST_TEXT {
        return Err(format!(
            "{what} has {length} characters; more than {LONGEST_TEXT} are no help to people"
        ));
    }
    Ok(())
}

/// What `given` was answered with, for a failure.
fn failed(given: &str, error: &CallError) -> String {
    format!("given {given}: {}: {}", error.export, error.reason)
}

struct Naming<'a> {
    host: &'a PluginHost,
    plugin: &'a Plugin,
    settings: &'a [(String, String)],
}

impl Naming<'_> {
    fn ask(&self, traces: &[Trace], contents: SameContents) -> Result<Vec<Label>, String> {
        let labels = self
            .host
            .label(self.plugin, traces, self.settings, Arc::new(contents))
            .map_err(|error| failed(&list(traces), &error))?;
        for (trace, label) in traces.iter().zip(&labels) {
            sane(label).map_err(|why| format!("given {}: {why}", shown(&trace.path)))?;
        }
        Ok(labels)
    }

    fn many(&self) -> Result<(), String> {
        let traces: Vec<Trace> = (0..MANY)
            .map(|index| {
                trace(format!(
                    "run/step_{}/gpu{}@node{:03}.json",
                    index / 1000,
                    index % 8,
                    index / 8 % 125
                ))
            })
            .collect();
        self.ask(&traces, SameContents::empty(MANY)).map(drop)
    }

    fn hostile_names(&self) -> Result<(), String> {
        let names = hostile_texts();
        // One by one, so that the failure names the one name; then all at once.
        for name in &names {
            self.ask(&[trace(name.clone())], SameContents::empty(1))?;
        }
        let traces: Vec<Trace> = names.into_iter().map(trace).collect();
        self.ask(&traces, SameContents::empty(traces.len())).map(drop)
    }

    fn hostile_contents(&self) -> Result<(), String> {
        let members = [
            "",
            "null",
            "{",
            "[1,2",
            "{\"rank\":-1}",
            "{\"rank\":1e99,\"world_size\":\"\u{fffd}\"}",
            "\u{0}",
        ];
        for (kind, kind_name) in [
            (Kind::Kineto, "kineto"),
            (Kind::Rocprof, "rocprof"),
            (Kind::Pftrace, "pftrace"),
            (Kind::ExecutionTrace, "execution-trace"),
            (Kind::Other, "other"),
        ] {
            for bytes in [Vec::new(), vec![0xff; 100_000], no_utf8_bytes()] {
                let traces = [Trace {
                    path: "run/trace.json".into(),
                    kind,
                    size: bytes.len() as u64,
                    gpu_events: None,
                }];
                let contents = SameContents::new(1, bytes, members.map(str::to_owned).to_vec());
                self.ask(&traces, contents)
                    .map_err(|why| format!("{why} (of kind {kind_name}, with bytes that are no UTF-8 in it)"))?;
            }
        }
        Ok(())
    }

    fn repeated(&self) -> Result<(), String> {
        let traces: Vec<Trace> = (0..64)
            .map(|index| {
                trace(format!(
                    "job_{}/rank{index}/gpu{}@n{:02}.json.gz",
                    index % 3,
                    index % 4,
                    index / 4
                ))
            })
            .collect();
        let ask = || self.ask(&traces, SameContents::new(traces.len(), no_utf8_bytes(), Vec::new()));
        let (first, second) = (ask()?, ask()?);
        match first.iter().zip(&second).position(|(first, second)| first != second) {
            Some(index) => Err(format!(
                "given {} twice, it said {:?}, then {:?}: an answer may depend on its input only",
                shown(&traces[index].path),
                first[index],
                second[index]
            )),
            None => Ok(()),
        }
    }

    fn hostile_settings(&self) -> Result<(), String> {
        each_setting(self.plugin, self.settings, |given, settings| {
            let traces = [trace("run/gpu1@n01.json".into()), trace("run/rank3.json".into())];
            let contents = Arc::new(SameContents::empty(traces.len()));
            match self.host.label(self.plugin, &traces, settings, contents) {
                Err(error) if !matches!(error.reason, Reason::GaveUp(_)) => Err(failed(given, &error)),
                _ => Ok(()),
            }
        })
    }
}

/// What the contract leaves to the plugin, but no plugin can mean.
fn sane(label: &Label) -> Result<(), String> {
    match label {
        Label::Rank(claim) => {
            if let Some(world_size) = claim.world_size.filter(|&world_size| claim.rank >= world_size) {
                return Err(format!(
                    "it claims rank {} of {world_size}; ranks run from 0 to {}",
                    claim.rank,
                    i64::from(world_size) - 1
                ));
            }
            readable("its evidence", &claim.evidence, true)
        }
        Label::Role(role) => readable("its role", role, true),
        Label::Unknown(reason) => readable("its reason", reason, false),
    }
}

struct Interpreter<'a> {
    host: &'a PluginHost,
    plugin: &'a Plugin,
    settings: &'a [(String, String)],
}

impl Interpreter<'_> {
    fn ask(&self, given: &str, call: &Call) -> Result<Answer, String> {
        let answer = self
            .host
            .interpret(self.plugin, call, self.settings)
            .map_err(|error| failed(given, &error))?;
        consistent(&answer).map_err(|why| format!("given {given}: {why}"))?;
        Ok(answer)
    }

    fn silence(&self) -> Result<(), String> {
        for (given, exit_code, signal, timed_out) in [
            ("exit code 0 and no output", Some(0), None, false),
            ("exit code 1 and no output", Some(1), None, false),
            ("exit code 255 and no output", Some(255), None, false),
            ("an end by signal 9 and no output", None, Some(9), false),
            ("a call that never came back", None, None, true),
        ] {
            let call = Call {
                exit_code,
                signal,
                timed_out,
                ..call(Vec::new())
            };
            let answer = self.ask(given, &call)?;
            if answer.verdict == Verdict::Accepted && exit_code != Some(0) {
                return Err(format!("given {given}: it says accepted"));
            }
        }
        Ok(())
    }

    fn many(&self) -> Result<(), String> {
        let mut text = String::new();
        for pid in 0..MANY {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "traced {pid}, response = {{\"processesMatched\":[{pid}]}}");
        }
        self.ask("10,000 lines", &call(text.into_bytes())).map(drop)
    }

    fn hostile_output(&self) -> Result<(), String> {
        for text in hostile_texts() {
            let given = shown(&text);
            for exit_code in [0, 1] {
                let mut call = call(text.clone().into_bytes());
                call.exit_code = Some(exit_code);
                call.stderr = text.clone().into_bytes();
                self.ask(&given, &call)?;
            }
        }
        Ok(())
    }

    fn no_utf8(&self) -> Result<(), String> {
        for bytes in [vec![0xff; 1 << 20], no_utf8_bytes()] {
            for exit_code in [0, 1] {
                let mut call = call(bytes.clone());
                call.exit_code = Some(exit_code);
                call.stderr = bytes.clone();
                self.ask("bytes that are no UTF-8", &call)?;
            }
        }
        Ok(())
    }

    fn repeated(&self) -> Result<(), String> {
        let call = call(b"response = {\"processesMatched\":[4101]}\nMatched 1 processes\n".to_vec());
        let (first, second) = (self.ask("a reply", &call)?, self.ask("a reply", &call)?);
        match first == second {
            true => Ok(()),
            false => Err(format!(
                "given the same call twice, it said {first:?}, then {second:?}: an answer may depend on its input only"
            )),
        }
    }

    fn hostile_settings(&self) -> Result<(), String> {
        each_setting(self.plugin, self.settings, |given, settings| {
            match self
                .host
                .interpret(self.plugin, &call(b"traced 1\n".to_vec()), settings)
            {
                Err(error) if !matches!(error.reason, Reason::GaveUp(_)) => Err(failed(given, &error)),
                _ => Ok(()),
            }
        })
    }
}

/// Verdict and process ids must say the same.
fn consistent(answer: &Answer) -> Result<(), String> {
    let verdict = answer.verdict.as_str();
    if (answer.verdict == Verdict::Accepted) == answer.triggered.is_empty() {
        return Err(format!(
            "it says {verdict} and names {} triggered processes; accepted means that there is at least one, and only accepted does",
            answer.triggered.len()
        ));
    }
    for (what, pids) in [("matched", &answer.matched), ("triggered", &answer.triggered)] {
        let mut sorted = pids.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{what} names process {} twice", twice[0]));
        }
    }
    readable("its reason", &answer.reason, true)
}

/// Every declared setting in turn gets values that no site can mean; a plugin may give up, and say why.
fn each_setting(
    plugin: &Plugin,
    settings: &[(String, String)],
    ask: impl Fn(&str, &[(String, String)]) -> Result<(), String>,
) -> Result<(), String> {
    for declared in &plugin.description.settings {
        for value in hostile_texts() {
            let mut settings = settings.to_vec();
            let given = format!("{} = {}", declared.name, shown(&value));
            settings.push((declared.name.clone(), value));
            ask(&given, &settings)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::Claim;

    fn claim(rank: u32, world_size: Option<u32>, evidence: &str) -> Label {
        Label::Rank(Claim {
            rank,
            world_size,
            group: None,
            node: None,
            certain: false,
            evidence: evidence.into(),
        })
    }

    #[test]
    fn labels_that_nobody_can_mean_are_told() {
        assert_eq!(sane(&claim(7, Some(8), "name")), Ok(()));
        assert!(
            sane(&claim(8, Some(8), "name"))
                .unwrap_err()
                .contains("ranks run from 0 to 7")
        );
        assert!(sane(&claim(0, Some(0), "name")).is_err());
        assert!(sane(&claim(0, None, " ")).unwrap_err().contains("evidence is empty"));
        assert_eq!(sane(&Label::Unknown(String::new())), Ok(()));
        assert!(sane(&Label::Role(String::new())).is_err());
        assert!(sane(&Label::Unknown("x".repeat(LONGEST_TEXT + 1))).is_err());
    }

    #[test]
    fn a_verdict_and_its_processes_must_agree() {
        let answer = |verdict, triggered: &[i64]| Answer {
            verdict,
            matched: vec![1],
            triggered: triggered.to_vec(),
            busy: 0,
            reason: "said so".into(),
        };
        assert_eq!(consistent(&answer(Verdict::Accepted, &[1])), Ok(()));
        assert_eq!(consistent(&answer(Verdict::Waiting, &[])), Ok(()));
        assert!(consistent(&answer(Verdict::Accepted, &[])).is_err());
        assert!(consistent(&answer(Verdict::Waiting, &[1])).is_err());
        assert!(
            consistent(&answer(Verdict::Accepted, &[1, 1]))
                .unwrap_err()
                .contains("process 1 twice")
        );
    }
}
