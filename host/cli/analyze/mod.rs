//! `tracemend analyze`

mod after;
mod before;
mod embedded;
mod glance;
mod limits;
mod options;

use std::fs;
use std::io;

use anyhow::{Context, Result};

use super::gather::gather;
use super::text::progress_bar;
use super::{Global, Outcome};
use crate::reports::{ClusterUse, Provenance, Reporter, Request, Status, plan, run, share};
use crate::scratch::Scratch;
use after::after;
use before::before;

pub use options::Analyze;

impl Analyze {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let temporary = std::env::temp_dir();
        let scratch = Scratch::folder_in(&temporary, "tracemend-")
            .with_context(|| format!("cannot write to {} (set TMPDIR to another place)", temporary.display()))?;
        // Asked first: a wrong interpreter should not cost the pass over a large run.
        let reporter = self.reporter(&scratch)?;
        let output = std::path::absolute(&self.output_dir)?;
        let gathered = gather(&self.root, Some(&output), &self.policies, global)?;
        fs::create_dir_all(&output).with_context(|| format!("cannot make {}", self.output_dir.display()))?;

        let mut out = io::stdout().lock();
        let talk = !self.json && !global.quiet;
        if talk {
            before(&mut out, &gathered, &reporter)?;
        }
        let mode = self.mode();
        let plan = plan(
            &gathered.run,
            &gathered.assignment,
            mode,
            matches!(reporter, Reporter::TraceLens(_)),
        );
        let plan = match self.jobs.shard {
            Some(shard) => share(plan, &gathered.run, shard),
            None => plan,
        };
        let bar = progress_bar(global.quiet, "making reports");
        bar.set_length(plan.jobs.len() as u64);
        let report = run(&Request {
            run: &gathered.run,
            assignment: &gathered.assignment,
            plan: &plan,
            shard: self.jobs.shard,
            resume: self.jobs.resume,
            provenance: Provenance {
                command_line: std::env::args_os()
                    .map(|word| word.to_string_lossy().into_owned())
                    .collect(),
                cluster: gathered.cluster.clone().map(|name| ClusterUse {
                    name,
                    config: gathered
                        .configuration
                        .as_deref()
                        .map(|path| path.to_string_lossy().into_owned()),
                }),
                plugins: gathered.plugins.clone(),
            },
            reporter: &reporter,
            mode: mode.as_str(),
            output: &output,
            json_summary: self.json_summary.as_deref(),
            limits: self.jobs.limits(),
            scratch: &scratch,
            progress: &|_| bar.inc(1),
        })?;
        bar.finish_and_clear();
        let told = self.write_page(&gathered, &plan, &report, &reporter, &output, &scratch);
        if report.made_otherwise {
            eprintln!(
                "tracemend: the reports of the earlier run were made by another reporter, version or options; all are made again"
            );
        }
        if self.json {
            io::copy(&mut fs::File::open(&report.json_summary)?, &mut out)?;
        } else {
            after(&mut out, &report, &told, &self.output_dir, talk)?;
        }
        let failed = report.rows.iter().any(|row| row.status == Status::Failure);
        Ok(Outcome::bad_news_if(
            failed || told.failed || gathered.failed_plugins > 0,
        ))
    }
}
