//! `tracemend analyze`

mod after;
mod before;
mod discovered;
mod embedded;
mod glance;
mod limits;
mod options;

use std::fs;
use std::io::{self, Write};

use anyhow::{Context, Result};

use super::compare::{compare, tell, write_json};
use super::gather::{Gathered, gather};
use super::text::{count, progress_bar};
use super::{Global, Outcome};
use crate::reports::{
    ClusterUse, Driver, Generator, Plan, Provenance, Reporter, Request, Status, discovered, plan, run, share,
};
use crate::scratch::Scratch;
use after::after;
use before::before;
use discovered::{Listing, list};

pub use options::Analyze;

impl Analyze {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        if !self.compare.is_empty() {
            self.compare(global)
        } else if self.discover_only {
            self.discover(global)
        } else {
            self.analyze(global)
        }
    }

    fn compare(&self, global: &Global) -> Result<Outcome> {
        let scratch = Scratch::for_this_run()?;
        let (extra, only_for) = self.extra();
        let mut driver = self.tracelens.driver(extra, only_for, scratch.path())?;
        if !extra.is_empty() {
            self.tracelens.learn(&mut driver, &[Generator::Compare], scratch.path());
            driver.check(&[Generator::Compare])?;
        }
        let comparison = compare(
            &driver,
            scratch.path(),
            &self.compare,
            &self.compare_names,
            &self.compare_output,
        )?;
        if let Some(path) = &self.json_summary {
            write_json(path, &comparison)?;
        }
        tell(&comparison, self.json, global)
    }

    fn discover(&self, global: &Global) -> Result<Outcome> {
        let gathered = self.gather(global)?;
        let found = discovered(&gathered.run, &gathered.assignment, self.max_traces());
        let listing = Listing::of(&found, self.run_folder());
        let mut out = io::BufWriter::new(io::stdout().lock());
        if self.json {
            serde_json::to_writer_pretty(&mut out, &listing)?;
            writeln!(out)?;
        } else {
            list(&mut out, &gathered.run, &found, self.run_folder())?;
        }
        out.flush()?;
        if let Some(path) = &self.json_summary {
            write_json(path, &listing)?;
        }
        Ok(Outcome::bad_news_if(gathered.failed_plugins > 0))
    }

    fn gather(&self, global: &Global) -> Result<Gathered> {
        let output = std::path::absolute(&self.output_dir)?;
        gather(self.run_folder(), Some(&output), &self.policies, global)
    }

    fn analyze(&self, global: &Global) -> Result<Outcome> {
        let scratch = Scratch::for_this_run()?;
        // Asked first: a wrong interpreter should not cost the pass over a large run.
        let mut reporter = self.reporter(&scratch)?;
        let gathered = self.gather(global)?;
        let output = std::path::absolute(&self.output_dir)?;
        fs::create_dir_all(&output).with_context(|| format!("cannot make {}", self.output_dir.display()))?;

        let plan = plan(&gathered.run, &gathered.assignment, &self.wanted(&reporter));
        let mut out = io::stdout().lock();
        let talk = !self.json && !global.quiet;
        if talk {
            before(&mut out, &gathered, &reporter)?;
        }
        let left_out = plan.discovered.left_out;
        if left_out > 0 && !global.quiet {
            eprintln!(
                "tracemend: --max-traces: {} without a report of its own",
                count(left_out, "trace")
            );
        }
        let plan = match self.jobs.shard {
            Some(shard) => share(plan, &gathered.run, shard),
            None => plan,
        };
        if let Reporter::TraceLens(driver) = &mut reporter {
            self.tracelens.learn(driver, &plan.generators(), scratch.path());
            if !global.quiet {
                say_left_out(driver, &plan);
            }
        }
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
            mode: self.mode().as_str(),
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

/// Says which options after `--` not every generator gets.
fn say_left_out(driver: &Driver, plan: &Plan) {
    let names = |generators: &[Generator]| {
        generators
            .iter()
            .map(|one| one.short_name())
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (flag, get, lack) in driver.not_for_all(&plan.generators()) {
        let lack = names(&lack);
        match get.is_empty() {
            true => eprintln!("tracemend: {flag} is given to no report of this run: {lack} do not know it"),
            false => eprintln!(
                "tracemend: {flag} is given to {} only: {lack} do not know it",
                names(&get)
            ),
        }
    }
}
