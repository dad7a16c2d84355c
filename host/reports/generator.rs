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

    /// Its name on the command line.
    pub fn short_name(self) -> &'static str {
        match self {
            Generator::Pytorch => "pytorch",
            Generator::Rocprof => "rocprof",
            Generator::HipActivity => "pftrace-hip-activity",
            Generator::HipApi => "pftrace-hip-api",
            Generator::MemoryCopy => "pftrace-memory-copy",
            Generator::Jax => "jax",
            Generator::Collective => "collective",
            Generator::Compare => "compare",
        }
    }

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

    fn name(self) -> &'static str {
        self.script().strip_prefix("TraceLens_").unwrap_or(self.script())
    }

    /// The module whose `main` the console script calls.
    pub fn module(self) -> String {
        format!("TraceLens.Reporting.{}", self.name())
    }

    /// The file of that module, relative to the package's folder.
    pub fn module_file(self) -> String {
        format!("Reporting/{}.py", self.name())
    }

    /// The flag that names what it reads.
    pub fn input_flag(self) -> &'static str {
        match self {
            Generator::Pytorch | Generator::Rocprof => "--profile_json_path",
            Generator::HipActivity | Generator::HipApi | Generator::MemoryCopy => "--trace_path",
            Generator::Jax => "--profile_path",
            Generator::Collective => "--trace_glob",
            Generator::Compare => "",
        }
    }

    /// What is added to the trace's stem to name its outputs, where a trace has several reports.
    pub fn stem_ending(self) -> &'static str {
        match self {
            Generator::HipActivity => "_activity",
            Generator::HipApi => "_hip_api",
            Generator::MemoryCopy => "_memory_copy",
            _ => "",
        }
    }
}
