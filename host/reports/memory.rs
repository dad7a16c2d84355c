//! How much memory jobs may use together, and what one needs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What an interpreter with TraceLens takes before it reads anything (facts/tracelens.md section 2).
const BASE: u64 = 105 << 20;
/// TraceLens loads a trace whole: measured peak 10 to 15 x its raw bytes (facts/tracelens.md section 2).
const TIMES_RAW: f64 = 15.0;
/// Of traces smaller than this the interpreter itself takes too much of the peak to learn from.
const TELLING: u64 = 4 << 20;
/// Traces differ: what comes is taken to need this many times what was seen.
const MARGIN: f64 = 1.25;

/// What TraceLens's programs need, corrected by what they have been seen to use.
#[derive(Debug, Default)]
pub struct CostModel {
    /// The most memory seen for each raw byte, by program.
    seen: BTreeMap<&'static str, f64>,
}

impl CostModel {
    /// Bytes of memory that `program` needs at its peak for `raw` bytes of traces in memory at once, decompressed.
    pub fn needs(&self, program: &str, raw: u64) -> u64 {
        let times = self.seen.get(program).map_or(TIMES_RAW, |seen| seen * MARGIN);
        BASE.saturating_add((raw as f64 * times) as u64)
    }

    /// `program` used `peak` bytes for `raw` bytes of traces. One that failed may have stopped early: it proves only that more is
    /// needed than expected. Returns whether anything was learned.
    pub fn learn(&mut self, program: &'static str, raw: u64, peak: u64, succeeded: bool) -> bool {
        if raw < TELLING || (!succeeded && peak <= self.needs(program, raw)) {
            return false;
        }
        let times = peak.saturating_sub(BASE) as f64 / raw as f64;
        let seen = self.seen.entry(program).or_insert(0.0);
        let more = times > *seen;
        *seen = seen.max(times);
        more
    }
}

/// Bytes of memory that jobs may use together: nine tenths of what is free now, by whoever says the least: the machine, the
/// cgroup, Slurm.
pub fn budget() -> u64 {
    let free = [machine_free(), cgroup_free(), slurm_allotment()];
    free.into_iter().flatten().min().unwrap_or(4 << 30) / 10 * 9
}

fn machine_free() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Of this process's cgroup and those above it, of version 2 or 1 (cgroups(7)).
fn cgroup_free() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let hierarchies = own.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        if controllers.split(',').any(|controller| controller == "memory") {
            Some((
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_",
                path,
            ))
        } else {
            (id == "0").then_some(("/sys/fs/cgroup", "memory.max", "memory.current", "", path))
        }
    });
    hierarchies
        .filter_map(|(root, limit, usage, prefix, path)| {
            let root = Path::new(root);
            let own = root.join(path.trim_start_matches('/'));
            own.ancestors()
                .take_while(|folder| folder.starts_with(root))
                .filter_map(|folder| free_in(folder, limit, usage, prefix))
                .min()
        })
        .min()
}

/// The limit less what is used; the file cache gives way and counts as free.
fn free_in(folder: &Path, limit: &str, usage: &str, prefix: &str) -> Option<u64> {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let (limit, used) = (number(limit)?, number(usage)?);
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let cache = |name: &str| {
        let value = |line: &str| {
            line.strip_prefix(prefix)?
                .strip_prefix(name)?
                .trim()
                .parse::<u64>()
                .ok()
        };
        stat.lines().find_map(value).unwrap_or(0)
    };
    let cached = cache("active_file ") + cache("inactive_file ");
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// What Slurm gave this job on this node, in case no cgroup enforces it: several tasks of an array share a node's free memory
/// (sbatch(1): megabytes; 0 is all there is).
fn slurm_allotment() -> Option<u64> {
    let number = |name: &str| {
        std::env::var(name)
            .ok()?
            .parse::<u64>()
            .ok()
            .filter(|&number| number > 0)
    };
    let per_node = number("SLURM_MEM_PER_NODE");
    let per_cpu = || Some(number("SLURM_MEM_PER_CPU")? * number("SLURM_CPUS_ON_NODE")?);
    Some(per_node.or_else(per_cpu)? << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn what_was_used_corrects_what_is_expected() {
        let mut model = CostModel::default();
        assert_eq!(model.needs("pytorch", 100 * MB), BASE + 1500 * MB);
        assert!(model.learn("pytorch", 100 * MB, BASE + 800 * MB, true));
        assert_eq!(model.needs("pytorch", 100 * MB), BASE + 1000 * MB);
        assert_eq!(model.needs("rocprof", 100 * MB), BASE + 1500 * MB);
        // The most that was seen counts.
        assert!(!model.learn("pytorch", 100 * MB, BASE + 400 * MB, true));
        assert!(model.learn("pytorch", 100 * MB, BASE + 2000 * MB, true));
        assert_eq!(model.needs("pytorch", 100 * MB), BASE + 2500 * MB);
    }

    #[test]
    fn small_traces_and_early_failures_teach_nothing() {
        let mut model = CostModel::default();
        assert!(!model.learn("pytorch", MB, BASE + 100 * MB, true));
        assert!(!model.learn("pytorch", 100 * MB, BASE, false));
        assert!(model.learn("pytorch", 100 * MB, BASE + 1600 * MB, false));
    }

    #[test]
    fn there_is_a_budget_on_this_machine() {
        assert!(budget() > 0);
    }
}
