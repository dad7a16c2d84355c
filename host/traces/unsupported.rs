//! What profilers leave that TraceLens cannot read in any form (facts/seed.md section 2.3).

use std::path::{Path, PathBuf};

/// A profiler's output of which no report can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Path relative to the run's root.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: &'static str,
}

/// Endings of names, and what to tell those who have such a file.
const REASONS: [(&str, &str); 2] = [
    (
        "_results.db",
        "a rocpd database, which TraceLens cannot read: profile again with rocprofv3 --output-format json or pftrace (rocprofv3_lightweight, rocprofv3_perfetto)",
    ),
    (
        ".rpd",
        "an rpd database, which TraceLens cannot read: its converter writes a trace.json beside it, which is reported on",
    ),
];

/// Why no report can be made of the file `path`, if its name says that.
pub(super) fn reason(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.as_encoded_bytes();
    let fits = |(ending, _): &&(&str, &str)| name.ends_with(ending.as_bytes());
    REASONS.iter().find(fits).map(|(_, reason)| *reason)
}
