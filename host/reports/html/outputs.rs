//! Files that the run left, as links.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Source;
use super::text::relative_address;
use crate::reports::{Status, Work};

/// What the embedded reporter's files are called after the report's name, and how a link to each reads.
const OF_BUILT_IN: [(&str, &str); 4] = [
    ("_kernels.csv", "kernels"),
    ("_gpu_timeline.csv", "time line"),
    ("_collectives.csv", "collectives"),
    ("_memory_copies.csv", "copies"),
];
/// The same of TraceLens's.
const OF_TRACELENS: [(&str, &str); 2] = [(".xlsx", "workbook"), ("_csv", "CSVs")];
/// How a link to the log of a trace's edits reads.
const EDITS: &str = "edits";

/// The files of the output folder, by job and by trace.
pub(super) struct Outputs {
    /// Links of each job: address and text.
    jobs: Vec<Vec<(String, String)>>,
    traces: HashMap<usize, Vec<usize>>,
    /// Files about the whole run.
    pub(super) of_run: Vec<(String, String)>,
}

impl Outputs {
    /// Looks for what the jobs promise; links are relative to `folder`. One is only made to a plain file or folder that lies in the
    /// output folder under a name that this run gave.
    pub(super) fn find(source: &Source, folder: &Path) -> Outputs {
        let link = |path: PathBuf, text: &str| {
            let meta = fs::symlink_metadata(&path).ok()?;
            let address = relative_address(folder, &path)?;
            (meta.is_file() || meta.is_dir()).then(|| (address, text.to_owned()))
        };
        let mut traces: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut jobs = Vec::with_capacity(source.jobs.len());
        for (number, (job, row)) in source.jobs.iter().zip(source.rows).enumerate() {
            for &index in &job.traces {
                traces.entry(index).or_default().push(number);
            }
            let mut links = Vec::new();
            if row.status == Status::Success {
                let with = |ending: &str| source.output.join(format!("{}{ending}", job.stem));
                let endings: &[(&str, &str)] = match job.work {
                    Work::BuiltIn => &OF_BUILT_IN,
                    _ => &OF_TRACELENS,
                };
                links.extend(endings.iter().filter_map(|(ending, text)| link(with(ending), text)));
            }
            links.extend(row.log.iter().filter_map(|log| link(source.output.join(log), "log")));
            links.extend(
                row.edits
                    .iter()
                    .filter_map(|edits| link(source.output.join(edits), EDITS)),
            );
            jobs.push(links);
        }
        let of_run = [
            "tracelens_summary.csv",
            "tracelens_summary.json",
            "tracemend_record.json",
            "ranks.csv",
            "kernels.csv",
            "collectives.csv",
            "memory_copies.csv",
        ];
        let of_run = of_run
            .iter()
            .filter_map(|name| link(source.output.join(name), name))
            .collect();
        Outputs { jobs, traces, of_run }
    }

    /// The files of job `number`.
    pub(super) fn of_job(&self, number: usize) -> Vec<(String, String)> {
        self.jobs.get(number).cloned().unwrap_or_default()
    }

    /// The log of the edits that mended trace `index`.
    pub(super) fn edits_of_trace(&self, index: usize) -> Option<(String, String)> {
        let jobs = self.traces.get(&index)?;
        jobs.iter()
            .flat_map(|&number| &self.jobs[number])
            .find(|(_, text)| text == EDITS)
            .cloned()
    }

    /// The file `name` about the whole run.
    pub(super) fn file(&self, name: &str) -> Option<(String, String)> {
        self.of_run.iter().find(|(_, text)| text == name).cloned()
    }
}
