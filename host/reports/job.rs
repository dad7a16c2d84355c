//! One report to be made.

use super::generator::Generator;

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A report of TraceLens. For [`Generator::Collective`] the traces of the job are those of ranks 0..N-1, in order; any other
    /// has one.
    TraceLens(Generator),
    /// The embedded reporter on one trace.
    BuiltIn,
    /// Nothing, and why.
    Skip(String),
    /// Nothing can be done, and why; counts as a failure.
    Fail(String),
}

/// One report, or the reason why there is none. It becomes one row of the summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// What the row calls it: the trace's path, or a label such as `8 per-rank traces`.
    pub label: String,
    /// The row's kind: `pytorch`, `rocprof_json`, `pftrace`, `jax` or `unsupported`.
    pub kind: &'static str,
    /// The generator of TraceLens whose report this is, or would be.
    pub generator: Option<Generator>,
    /// What to do.
    pub work: Work,
    /// Positions in the run of the traces it reads.
    pub traces: Vec<usize>,
    /// The group of its traces, empty if they have none.
    pub group: String,
    /// The rank of its trace, if it is one trace of known rank.
    pub rank: Option<u32>,
    /// How many ranks each node holds, for a collective report, where that is known and even.
    pub gpus_per_node: Option<usize>,
    /// The name that its outputs begin with, unique in the run.
    pub stem: String,
}

impl Job {
    /// The program that the row names: TraceLens's script, also where it is not run; `builtin`; or nothing.
    pub fn tool(&self) -> &'static str {
        match (&self.work, self.generator) {
            (Work::BuiltIn, _) => "builtin",
            (_, Some(generator)) => generator.script(),
            (_, None) => "",
        }
    }

    /// The generator that is run.
    pub fn runs(&self) -> Option<Generator> {
        match self.work {
            Work::TraceLens(generator) => Some(generator),
            _ => None,
        }
    }
}
