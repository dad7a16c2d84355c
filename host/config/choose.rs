//! Which cluster this is.

use anyhow::{Result, bail};
use globset::GlobBuilder;

use super::{Cluster, Configuration};
use crate::nearest::did_you_mean;

/// The cluster chosen, if any, and why.
#[derive(Debug)]
pub struct Choice<'a> {
    /// The cluster; none means the built-in order.
    pub cluster: Option<&'a Cluster>,
    /// One phrase for people.
    pub why: String,
}

/// This host's name, as `uname -n` gives it.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl Configuration {
    /// The cluster that `--cluster` or `$TRACEMEND_CLUSTER` names, else the first one whose patterns match `host`.
    ///
    /// # Errors
    /// When there is no cluster of the name given.
    pub fn choose(&self, option: Option<&str>, variable: Option<&str>, host: &str) -> Result<Choice<'_>> {
        let named = option
            .map(|name| ("--cluster", name))
            .or_else(|| variable.map(|name| ("$TRACEMEND_CLUSTER", name)));
        if let Some((by, name)) = named {
            let Some(cluster) = self.cluster(name) else {
                let known = self.clusters.iter().map(|cluster| cluster.name.as_str());
                bail!(
                    "{by}: there is no cluster {name} in {}; {}",
                    self.path.display(),
                    did_you_mean(name, known)
                );
            };
            return Ok(Choice {
                cluster: Some(cluster),
                why: format!("{by} names it"),
            });
        }
        for cluster in &self.clusters {
            if let Some(pattern) = cluster.hosts.iter().find(|pattern| matches(pattern, host)) {
                return Ok(Choice {
                    cluster: Some(cluster),
                    why: format!("its pattern {pattern} matches this host, {host}"),
                });
            }
        }
        Ok(Choice {
            cluster: None,
            why: format!("no cluster's patterns match this host, {host}"),
        })
    }
}

/// Whether `pattern` matches `host`, or what stands before the first dot of it.
fn matches(pattern: &str, host: &str) -> bool {
    let short = host.split('.').next().unwrap_or(host);
    pattern_of(pattern).is_ok_and(|pattern| {
        let matcher = pattern.compile_matcher();
        matcher.is_match(host) || matcher.is_match(short)
    })
}

/// A pattern of host names, in any case of letters.
pub(super) fn pattern_of(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(pattern).case_insensitive(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names_and_short_ones() {
        for (pattern, host, expected) in [
            ("banff-*", "banff-sc-cs41-29", true),
            ("banff-*", "banff-login.dcgpu", true),
            ("banff-login", "banff-login.dcgpu", true),
            ("*.dcgpu", "BANFF-login.dcgpu", true),
            ("n[0-9]", "n7", true),
            ("banff-*", "notbanff-1", false),
            ("banff", "banff-1", false),
        ] {
            assert_eq!(matches(pattern, host), expected, "{pattern} {host}");
        }
    }
}
