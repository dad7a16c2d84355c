//! TraceLens's report generators (facts/tracelens.md section 1).

/// A program of TraceLens that makes one kind of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generator {
    /// One Kineto trace.
    Pytorch,
    /// One rocprofv3 JSON.
    Rocprof,
    /// GPU activity of one Perfetto trace.
    HipActivity,
    /// HIP API calls of one Perfetto trace.
    HipApi,
    /// Memory copies of one Perfetto trace.
    MemoryCopy,
    /// One XPlane of JAX.
    Jax,
    /// The Kineto traces of all ranks of a job together.
    Collective,
    /// Differences between reports.
    Compare,
}

impl Generator {
    /// All of them.
    pub const ALL: [Generator; 8] = [
        Generator::Pytorch,
        Generator::Rocprof,
        Generator::HipActivity,
        Generator::HipApi,
        Generator::MemoryCopy,
        Generator::Jax,
        Generator::Collective,
        Generator::Compare,
    ];

    /// TraceLens's console script.
    pub fn script(self) -> &'static str {
        match self {
            Generator::Pytorch => "TraceLens_generate_perf_report_pytorch",
            Generator::Rocprof => "TraceLens_generate_perf_report_rocprof",
            Generator::HipActivity => "TraceLens_generate_perf_report_pftrace_hip_activity",
            Generator::HipApi => "TraceLens_generate_perf_report_pftrace_hip_api",
            Generator::MemoryCopy => "TraceLens_generate_perf_report_pftrace_memory_copy",
            Generator::Jax => "TraceLens_generate_perf_report_jax",
            Generator::Collective => "TraceLens_generate_multi_rank_collective_report_pytorch",
            Generator::Compare => "TraceLens_compare_perf_reports_pytorch",
        }
    }

    /// The module whose `main` the console script calls.
    pub fn module(self) -> String {
        let name = self.script().strip_prefix("TraceLens_").unwrap_or(self.script());
        format!("TraceLens.Reporting.{name}")
    }
}
