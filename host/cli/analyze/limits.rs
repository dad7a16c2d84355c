//! The options of `analyze` that say how its jobs are run.

use std::time::Duration;

use clap::Args;

use crate::reports::{Limits, ShardUse};

#[derive(Debug, Args)]
pub(super) struct JobOptions {
    /// How many reports are made at once, memory permitting; by default one a processor
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// How much memory reports may take together, such as 64G; by default most of what is free. A report that needs more runs alone
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<u64>,
    /// How much space mended copies may take at once in TMPDIR, such as 20G; by default most of what is free there
    #[arg(long, value_name = "SIZE", value_parser = size)]
    scratch_limit: Option<u64>,
    /// End a program of TraceLens that takes longer than this, such as 20m, with all that it started
    #[arg(long, value_name = "TIME", value_parser = time)]
    job_timeout: Option<Duration>,
    /// Make only what an earlier run into the same output folder did not make, or made from traces that have changed since
    #[arg(long)]
    pub(super) resume: bool,
    /// Make one part of N of the reports, counted from 0, such as 0/4; ranks of one job stay together. See also `tracemend merge`
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(super) shard: Option<ShardUse>,
}

impl JobOptions {
    pub(super) fn limits(&self) -> Limits {
        Limits {
            jobs: self.jobs.map(usize::from),
            memory: self.memory_limit,
            scratch: self.scratch_limit,
            time: self.job_timeout,
        }
    }
}

/// Units are powers of 1024, as Slurm's are.
fn size(text: &str) -> Result<u64, String> {
    let parsed = parse_size::Config::new().with_binary().parse_size(text);
    match parsed {
        Ok(bytes) if bytes >= 4096 => Ok(bytes),
        Ok(bytes) => Err(format!("that is {bytes} bytes; a size has a unit, such as 500M or 64G")),
        Err(_) => Err("a size is wanted, such as 500M or 64G".to_owned()),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<u32>() {
        Ok(seconds) => Some(Duration::from_secs(seconds.into())),
        Err(_) => humantime::parse_duration(text).ok(),
    };
    match parsed {
        Some(time) if time > Duration::ZERO => Ok(time),
        _ => Err("a time is wanted, such as 90s, 20m or 1h 30m".to_owned()),
    }
}

fn shard(text: &str) -> Result<ShardUse, String> {
    let parts = text.split_once('/').map(|(index, of)| (index.parse(), of.parse()));
    match parts {
        Some((Ok(index), Ok(of))) if index < of => Ok(ShardUse { index, of }),
        Some((Ok(index), Ok(of))) if index == of && of > 0 => {
            Err(format!("shards count from 0: 0/{of} to {}/{of}", of - 1))
        }
        _ => Err("I/N is wanted, I from 0 to N - 1, such as 0/4".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_or_explained() {
        assert_eq!(size("64G"), Ok(64 << 30));
        assert_eq!(size("1.5 MiB"), Ok(3 << 19));
        for text in ["64", "", "much", "-1G"] {
            assert!(size(text).unwrap_err().contains("500M"), "{text}");
        }
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1h 30m"), Ok(Duration::from_secs(5400)));
        for text in ["0", "", "soon", "-5s"] {
            assert!(time(text).unwrap_err().contains("90s"), "{text}");
        }
        assert_eq!(shard("3/4"), Ok(ShardUse { index: 3, of: 4 }));
        assert!(shard("4/4").unwrap_err().contains("0/4 to 3/4"));
        for text in ["", "1", "5/4", "0/0", "-1/4", "a/b"] {
            assert!(shard(text).unwrap_err().contains("0/4"), "{text}");
        }
    }
}
