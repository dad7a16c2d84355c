//! The start-up hook of `capture run`: a `sitecustomize` on PYTHONPATH, in the state folder and nowhere else.

use std::ffi::OsString;
use std::io::Write;

use anyhow::{Context, Result};

use super::state::{State, make_private};

const HOOK: &str = include_str!("sitecustomize.py");
const FOLDER: &str = "hook";

/// Writes the hook, and gives the PYTHONPATH that finds it before everything on `pythonpath`.
///
/// # Errors
/// When it cannot be written.
pub fn write_hook(state: &State, pythonpath: Option<OsString>) -> Result<OsString> {
    let folder = state.path(FOLDER);
    make_private(&folder)?;
    let mut file = state.new_file(&format!("{FOLDER}/sitecustomize.py"))?;
    file.write_all(HOOK.as_bytes())
        .context("cannot write the start-up hook")?;
    let mut path = folder.into_os_string();
    if let Some(rest) = pythonpath.filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    Ok(path)
}
