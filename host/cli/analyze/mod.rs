//! `tracemend analyze`

mod after;
mod before;
mod embedded;
mod limits;
mod options;

use std::fs;
use std::io;

use anyhow::{Context, Result};

use super::gather::gather;
use super::text::progress_bar;
use super::{Global, Outcome};
use crate::reports::{Reporter, Request, Status, plan, run};
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
        let bar = progress_bar(global.quiet, "making reports");
        bar.set_length(plan.jobs.len() as u64);
        let report = run(&Request {
            run: &gathered.run,
            plan: &plan,
            reporter: &reporter,
            mode: mode.as_str(),
            cluster: gathered.cluster.as_deref(),
            output: &output,
            json_summary: self.json_summary.as_deref(),
            limits: self.limits.limits(),
            scratch: &scratch,
            progress: &|_| bar.inc(1),
        })?;
        bar.finish_and_clear();
        if self.json {
            io::copy(&mut fs::File::open(&report.json_summary)?, &mut out)?;
        } else {
            after(&mut out, &report, &self.output_dir, talk)?;
        }
        let failed = report.rows.iter().any(|row| row.status == Status::Failure);
        Ok(Outcome::bad_news_if(failed || gathered.failed_plugins > 0))
    }
}
