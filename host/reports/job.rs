//! One report to be made.

/// What a job does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// TraceLens's report on one Kineto trace.
    Pytorch,
    /// TraceLens's report on one rocprofv3 trace: CSV and workbook, which TraceLens writes in two runs (facts/tracelens.md section 1).
    Rocprof,
    /// TraceLens's collective report; the traces of the job are those of ranks 0..N-1, in order.
    Collective,
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
    /// The row's kind: `pytorch`, `rocprof_json`, `pftrace` or `unsupported`.
    pub kind: &'static str,
    /// What to do.
    pub work: Work,
    /// Positions in the run of the traces it reads.
    pub traces: Vec<usize>,
    /// The group of its traces, empty if they have none.
    pub group: String,
    /// The rank of its trace, if it is one trace of known rank.
    pub rank: Option<u32>,
    /// The name that its outputs begin with, unique in the run.
    pub stem: String,
}

impl Job {
    /// The program that the row names: TraceLens's script, `builtin`, or nothing.
    pub fn tool(&self) -> &'static str {
        match self.work {
            Work::Pytorch => "TraceLens_generate_perf_report_pytorch",
            Work::Rocprof => "TraceLens_generate_perf_report_rocprof",
            Work::Collective => "TraceLens_generate_multi_rank_collective_report_pytorch",
            Work::BuiltIn => "builtin",
            Work::Skip(_) | Work::Fail(_) => "",
        }
    }
}
