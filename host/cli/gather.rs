//! What `ranks` and `analyze` begin with: the run, its policies, and whose trace is whose.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;

use super::text::{count, one_line, printable, progress_bar};
use super::{Global, Policies};
use crate::bytes::{Options, Verdict};
use crate::ranks::{Assignment, PolicyLabels, UserMap, ask, assign};
use crate::reports::PluginUse;
use crate::traces::{Run, discover};

/// A run with its ranks.
pub(super) struct Gathered {
    pub(super) run: Arc<Run>,
    /// What each policy said, in the order in which they were asked.
    pub(super) answers: Vec<PolicyLabels>,
    pub(super) assignment: Assignment,
    /// The policies, in that order.
    pub(super) plugins: Vec<PluginUse>,
    /// The cluster whose policies they are, if the configuration has one for this host.
    pub(super) cluster: Option<String>,
    /// The configuration, if there is one.
    pub(super) configuration: Option<PathBuf>,
    /// Plugins that were refused or failed; each was named on standard error.
    pub(super) failed_plugins: usize,
}

/// Discovers the run in `root` and asks the policies. Complaints go to standard error.
pub(super) fn gather(root: &Path, output: Option<&Path>, policies: &Policies, global: &Global) -> Result<Gathered> {
    let site = global.site()?;
    let map = policies.map.as_deref().map(UserMap::read).transpose()?;
    let registry = site.naming(policies)?;
    for (path, error) in &registry.refused {
        let path = printable(&path.to_string_lossy());
        eprintln!(
            "tracemend: plugin {path}: {}; the run goes on without it",
            one_line(&format!("{error:#}"))
        );
    }

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

    let (mut answers, failed) = ask(&site.host, &registry.plugins, &run);
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
        plugins: registry.plugins.iter().map(PluginUse::from).collect(),
        cluster: site.cluster,
        configuration: site.configuration,
        failed_plugins: registry.refused.len() + failed.len(),
    })
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
