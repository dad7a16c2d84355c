//! GPU figures as the page wants them.

/// What is known of the GPU's time in one trace.
#[derive(Debug, Clone)]
pub struct TraceFigures {
    /// Position of the trace in the run.
    pub trace: usize,
    /// How its time is spent; none where only kernels are known.
    pub time: Option<GpuTime>,
    /// Its kernels, largest total first.
    pub kernels: Vec<KernelTotal>,
}

/// How the time of one trace is spent; the four parts add up to the whole. Nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct GpuTime {
    /// Kernels that are no collectives run.
    pub computation_ns: u64,
    /// A collective runs and no computation.
    pub exposed_communication_ns: u64,
    /// Only memory copies run.
    pub exposed_copies_ns: u64,
    /// Nothing runs.
    pub idle_ns: u64,
    /// A collective runs behind computation: a part of `computation_ns`.
    pub hidden_communication_ns: u64,
}

impl GpuTime {
    /// The whole.
    pub fn total_ns(&self) -> u64 {
        self.computation_ns + self.exposed_communication_ns + self.exposed_copies_ns + self.idle_ns
    }

    /// Anything runs.
    pub fn busy_ns(&self) -> u64 {
        self.total_ns() - self.idle_ns
    }
}

/// One kernel of one trace.
#[derive(Debug, Clone)]
pub struct KernelTotal {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// All its runs together, in nanoseconds.
    pub total_ns: f64,
}
