//! What tracemend itself needs: scratch space, its plugins, its cache.

use std::path::Path;

use indicatif::HumanBytes;

use super::Check;
use crate::cli::{Global, Policies};
use crate::plugins::{BUILT_IN, built_in, user_cache};
use crate::scratch::Scratch;

/// Mended copies of a few large traces; less is likely to run out.
const ROOM: u64 = 2 << 30;

/// The folder for temporary files, and room in it.
pub(super) fn scratch(checks: &mut Vec<Check>) -> Option<Scratch> {
    match Scratch::for_this_run() {
        Ok(scratch) => {
            let place = std::env::temp_dir();
            checks.push(room(&place));
            Some(scratch)
        }
        Err(error) => {
            checks.push(Check::bad(
                "scratch",
                format!("{error:#}"),
                "set TMPDIR to a folder that you can write to",
            ));
            None
        }
    }
}

fn room(place: &Path) -> Check {
    let shown = place.display();
    let Ok(space) = rustix::fs::statvfs(place) else {
        return Check::ok("scratch", format!("{shown}, room not known"));
    };
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let found = format!("{} free in {shown}", HumanBytes(free));
    match free < ROOM {
        false => Check::ok("scratch", found),
        true => Check::note(
            "scratch",
            found,
            "each damaged trace being reported on takes its size there; set TMPDIR to a place with more room",
        ),
    }
}

/// All built-in plugins, and those that a run would use here.
pub(super) fn plugins(checks: &mut Vec<Check>, policies: &Policies, global: &Global) {
    let site = match global.site() {
        Ok(site) => site,
        Err(error) => {
            let advice = "every command that uses plugins ends with this; tracemend clusters shows the configuration";
            checks.push(Check::bad("plugins", format!("{error:#}"), advice));
            return;
        }
    };
    let mut failed: Vec<String> = BUILT_IN
        .iter()
        .filter_map(|(name, _)| {
            built_in(&site.host, name)
                .err()
                .map(|error| format!("{name}: {error:#}"))
        })
        .collect();
    let mut used = 0;
    match site.naming(policies) {
        Ok(registry) => {
            used = registry.plugins.len();
            let refused = registry.refused.iter();
            failed.extend(refused.map(|(path, error)| format!("{}: {error:#}", path.display())));
        }
        Err(error) => failed.push(format!("{error:#}")),
    }
    for interpreter in [site.interpreter(None), site.rpc_interpreter()] {
        failed.extend(interpreter.err().map(|error| format!("{error:#}")));
    }
    if failed.is_empty() {
        let cluster = site.cluster.as_ref().map(|cluster| format!(" (cluster {cluster})"));
        let found = format!(
            "all {} built in load; a run uses {used} for ranks{}",
            BUILT_IN.len(),
            cluster.unwrap_or_default()
        );
        checks.push(Check::ok("plugins", found));
    }
    for one in failed {
        let advice = "tracemend plugin inspect FILE says more; runs go on without it";
        checks.push(Check::bad("plugins", one, advice));
    }
}

/// The user's cache: without one everything works, only slower.
pub(super) fn cache(checks: &mut Vec<Check>) {
    let advice = "plugins are compiled and TraceLens is asked for its flags on every run; set XDG_CACHE_HOME to a folder of yours";
    checks.push(match user_cache() {
        None => Check::note("cache", "none: neither XDG_CACHE_HOME nor HOME names a folder", advice),
        Some(folder) => {
            let shown = folder.display().to_string();
            let written = std::fs::create_dir_all(&folder).and_then(|()| tempfile::tempfile_in(&folder));
            match written {
                Ok(_) => Check::ok("cache", shown),
                Err(error) => Check::note("cache", format!("{shown} cannot be written: {error}"), advice),
            }
        }
    });
}
