//! How much memory jobs may use together, and what one needs.

use std::fs;
use std::path::Path;

/// TraceLens loads a trace whole: measured peak 0.1 GB + 10 to 15 x its raw bytes (facts/tracelens.md section 2).
pub fn tracelens_needs(raw_bytes: u64) -> u64 {
    (100 << 20) + raw_bytes.saturating_mul(15)
}

/// Most of what is free now, the machine's or the cgroup's, whichever is less.
pub fn budget() -> u64 {
    let free = machine_free().into_iter().chain(cgroup_free()).min().unwrap_or(4 << 30);
    free / 10 * 9
}

fn machine_free() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Of this process's cgroup (version 2) and those above it: the file cache counts as free.
fn cgroup_free() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
    let number = |folder: &Path, file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let root = Path::new("/sys/fs/cgroup");
    root.join(own)
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .filter_map(|folder| {
            let (limit, used) = (number(folder, "memory.max")?, number(folder, "memory.current")?);
            let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let cache = stat
                .lines()
                .find_map(|line| line.strip_prefix("file "))?
                .trim()
                .parse::<u64>()
                .ok()?;
            Some(limit.saturating_sub(used.saturating_sub(cache)))
        })
        .min()
}
