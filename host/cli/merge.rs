//! `tracemend merge`

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use super::text::{count, printable};
use super::{Global, Outcome};
use crate::reports::{Status, merge, write_merged};

#[derive(Debug, Args)]
pub struct Merge {
    /// The output folders of the shards
    #[arg(value_name = "OUT", required = true)]
    shards: Vec<PathBuf>,
    /// Where the summary and the record of the whole run go
    #[arg(short, long, value_name = "DIR")]
    output_dir: PathBuf,
    /// Print the JSON summary instead of text
    #[arg(long)]
    json: bool,
}

impl Merge {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let output = std::path::absolute(&self.output_dir)?;
        for shard in &self.shards {
            if shard
                .canonicalize()
                .ok()
                .is_some_and(|shard| output.canonicalize().is_ok_and(|output| output == shard))
            {
                bail!(
                    "{} is a shard; give the merged files a folder of their own",
                    shard.display()
                );
            }
        }
        let record = merge(&self.shards, &output)?;
        write_merged(&record, &output)?;
        for shard in &record.missing_shards {
            eprintln!("tracemend: shard {shard} is missing, or did not come to its end");
        }
        let of = |status| record.jobs.iter().filter(|job| job.row.status == status).count();
        let (failed, skipped) = (of(Status::Failure), of(Status::Skipped));
        let mut out = io::stdout().lock();
        if self.json {
            io::copy(&mut fs::File::open(output.join("tracelens_summary.json"))?, &mut out)?;
        } else if !global.quiet || failed > 0 {
            let made = count(of(Status::Success), "report");
            let shown = printable(&self.output_dir.to_string_lossy());
            writeln!(
                out,
                "{made}, {failed} failed, {skipped} skipped; the summary is in {shown}"
            )?;
        }
        Ok(Outcome::bad_news_if(failed > 0 || !record.missing_shards.is_empty()))
    }
}
