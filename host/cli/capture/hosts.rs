//! Which daemons are meant: `--hosts`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use super::options::variable;
use crate::capture::Address;

/// The daemons that `hosts` names, each once: this host's if it is none. `port` is theirs where they name none.
pub fn addresses(hosts: Option<&str>, port: u16) -> Result<Vec<Address>> {
    let Some(hosts) = hosts else {
        return Ok(vec![Address {
            host: "localhost".into(),
            port,
        }]);
    };
    let names: Vec<String> = if let Some(file) = hosts.strip_prefix('@') {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
        text.lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect()
    } else if hosts == "slurm" {
        let list = variable("SLURM_JOB_NODELIST")?.context("SLURM_JOB_NODELIST is not set: this is no Slurm job")?;
        slurm_hosts(&list)?
    } else if hosts.contains('[') && !hosts.contains(':') {
        slurm_hosts(hosts)?
    } else {
        hosts.split(',').map(|host| host.trim().to_owned()).collect()
    };
    let mut addresses: Vec<Address> = Vec::new();
    for name in names {
        let address = Address::parse(&name, port).map_err(|why| anyhow!(why))?;
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        bail!("--hosts names no host");
    }
    Ok(addresses)
}

/// A node list such as `n[1-3,7]`, as Slurm itself expands it.
fn slurm_hosts(list: &str) -> Result<Vec<String>> {
    if list.starts_with('-') {
        bail!("{list:?} is no node list");
    }
    let output = Command::new("scontrol")
        .args(["show", "hostnames", list])
        .stdin(Stdio::null())
        .output()
        .context("cannot start scontrol, which expands node lists: name the hosts one by one")?;
    if !output.status.success() {
        bail!(
            "scontrol does not expand {list:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .map(str::to_owned)
        .collect())
}
