//! What `ranks` and `analyze` begin with: the run, its policies, and whose trace is whose.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};

use super::text::{count, one_line, printable, progress_bar};
use super::{Global, Policies};
use crate::bytes::{Options, Verdict};
use crate::plugins::{Plugin, Registry};
use crate::ranks::{Assignment, PolicyLabels, UserMap, ask, assign};
use crate::traces::{Run, discover};

/// A run with its ranks.
pub(super) struct Gathered {
    pub(super) run: Arc<Run>,
    /// What each policy said, in the order in which they were asked.
    pub(super) answers: Vec<PolicyLabels>,
    pub(super) assignment: Assignment,
    /// Plugins that were refused or failed; each was named on standard error.
    pub(super) failed_plugins: usize,
}

/// Discovers the run in `root` and asks the policies. Complaints go to standard error.
pub(super) fn gather(root: &Path, output: Option<&Path>, policies: &Policies, global: &Global) -> Result<Gathered> {
    let host = global.plugin_host()?;
    let map = policies.map.as_deref().map(UserMap::read).transpose()?;
    let registry = Registry::naming(&host, &policies.plugins, policies.by_elimination)?;
    for (path, error) in &registry.refused {
        let path = printable(&path.to_string_lossy());
        eprintln!(
            "tracemend: plugin {path}: {}; the run goes on without it",
            one_line(&format!("{error:#}"))
        );
    }
    check_settings(policies, &registry.plugins)?;

    let bar = progress_bar(global.quiet, "reading traces");
    let run = discover(root, output, &Options::default(), &|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let run = Arc::new(run?);
    for skipped in &run.skipped {
        eprintln!(
            "tracemend: {}: {}",
            printable(&skipped.path.to_string_lossy()),
            skipped.reason
        );
    }

    let settings = |plugin: &str| {
        let own = policies.settings.iter().filter(|(name, ..)| name == plugin);
        own.map(|(_, setting, value)| (setting.clone(), value.clone()))
            .collect()
    };
    let (mut answers, failed) = ask(&host, &registry.plugins, &run, &settings);
    for error in &failed {
        eprintln!(
            "tracemend: {}; the run goes on without its claims",
            one_line(&error.to_string())
        );
    }
    if let Some(map) = map {
        let (labels, unused) = map.labels(&run);
        for line in unused {
            eprintln!("tracemend: line {line} of the map matches no trace");
        }
        answers.insert(0, labels);
    }
    let assignment = assign(&run, &answers, policies.world_size.filter(|size| *size > 0));
    Ok(Gathered {
        run,
        answers,
        assignment,
        failed_plugins: registry.refused.len() + failed.len(),
    })
}

/// Every setting given must be one that a plugin of this run declares: a misspelt one would be ignored in silence.
fn check_settings(policies: &Policies, plugins: &[Plugin]) -> Result<()> {
    for (plugin, setting, _) in &policies.settings {
        let Some(known) = plugins.iter().find(|known| known.name() == plugin) else {
            let names: Vec<&str> = plugins.iter().map(Plugin::name).collect();
            bail!(
                "--set {plugin}.{setting}: there is no plugin {plugin} in this run; there are {}",
                names.join(", ")
            );
        };
        if !known
            .description
            .settings
            .iter()
            .any(|declared| declared.name == *setting)
        {
            let names: Vec<&str> = known
                .description
                .settings
                .iter()
                .map(|declared| declared.name.as_str())
                .collect();
            match names.is_empty() {
                true => bail!("--set {plugin}.{setting}: {plugin} has no settings"),
                false => bail!("--set {plugin}.{setting}: {plugin} has only {}", names.join(", ")),
            }
        }
    }
    Ok(())
}

/// `4 traces: 3 clean, 1 damaged`, with the phrase that users of the toolchain before search for if there are none.
pub(super) fn found(run: &Run) -> String {
    if run.traces.is_empty() {
        return format!(
            "No supported trace artifacts found under {}. Profile with torch.profiler, with dynolog (torch_profiler_dynolog), or with rocprofv3 --output-format json (rocprofv3_lightweight).",
            printable(&run.root.to_string_lossy())
        );
    }
    let of = |verdict| {
        run.traces
            .iter()
            .filter(|trace| trace.findings.verdict == verdict)
            .count()
    };
    let parts = [
        (Verdict::Clean, "clean"),
        (Verdict::Damaged, "damaged"),
        (Verdict::Refused, "refused"),
    ];
    let parts = parts.map(|(verdict, word)| (of(verdict), word));
    let parts = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"));
    format!(
        "{}: {}",
        count(run.traces.len(), "trace"),
        parts.collect::<Vec<_>>().join(", ")
    )
}
