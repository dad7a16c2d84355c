//! The Python interpreter that TraceLens lives in, and nothing else: never PATH, never the current folder (facts/seed.md A20).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::generator::Generator;

/// The TraceLens that an interpreter has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceLens {
    /// The package's folder.
    pub path: String,
    /// Name and version of the distribution that brought it, if it says.
    pub distribution: Option<String>,
    /// The commit it was installed from, if pip noted it.
    pub commit: Option<String>,
}

/// An interpreter that has TraceLens.
#[derive(Debug, Clone)]
pub struct Interpreter {
    /// Absolute; links are not resolved, since a venv's interpreter is a link.
    pub python: PathBuf,
    /// Python's own version.
    pub version: String,
    /// What it has.
    pub tracelens: TraceLens,
    keep_pythonpath: bool,
}

/// Asks the interpreter about itself without importing TraceLens, which takes most of a second.
const PROBE: &str = r#"
import importlib.util, json, os, sys
from importlib import metadata
spec = importlib.util.find_spec("TraceLens")
found = None
if spec and spec.submodule_search_locations:
    found = {"path": list(spec.submodule_search_locations)[0], "distribution": None, "commit": None}
    for dist in metadata.distributions():
        if any(file.parts[0] == "TraceLens" for file in dist.files or []):
            found["distribution"] = dist.metadata["Name"] + " " + dist.version
            try:
                found["commit"] = json.loads(dist.read_text("direct_url.json") or "{}").get("vcs_info", {}).get("commit_id")
            except ValueError:
                pass
            break
    folder = os.path.dirname(found["path"])
    if not found["commit"] and os.path.exists(os.path.join(folder, ".git")):
        # A checkout: its HEAD, which may name a branch.
        try:
            head = open(os.path.join(folder, ".git", "HEAD")).read().strip()
            if head.startswith("ref: "):
                head = open(os.path.join(folder, ".git", *head[5:].split("/"))).read().strip()
            found["commit"] = head
        except OSError:
            pass
print(json.dumps({"version": "%d.%d.%d" % sys.version_info[:3], "tracelens": found}))
"#;

#[derive(Deserialize)]
struct Answer {
    version: String,
    tracelens: Option<TraceLens>,
}

impl Interpreter {
    /// Finds out about the interpreter `python`. A bare name is looked up once on PATH, as an interpreter.
    ///
    /// # Errors
    /// When it is no Python interpreter, or TraceLens is not installed in it.
    pub fn find(python: &Path, keep_pythonpath: bool, scratch: &Path) -> Result<Self> {
        let shown = python.display();
        let path = find_program(python).with_context(|| {
            format!("no interpreter at {shown}; give --python the venv's own, such as VENV/bin/python")
        })?;
        let mut command = Command::new(&path);
        command.args([OsStr::new("-c"), OsStr::new(PROBE)]);
        isolate(&mut command, keep_pythonpath, scratch);
        let output = command.output().with_context(|| format!("{shown} does not run"))?;
        let answer = serde_json::from_slice::<Answer>(output.stdout.trim_ascii());
        let Ok(answer) = answer else {
            bail!(
                "{shown} does not answer as a Python interpreter does; give --python the venv's own, such as VENV/bin/python"
            );
        };
        let Some(tracelens) = answer.tracelens else {
            bail!(
                "TraceLens is not installed in {shown}; install it with `{shown} -m pip install git+https://github.com/AMD-AGI/TraceLens.git` (the PyPI package `tracelens` is another program), or use --reporter builtin"
            );
        };
        Ok(Interpreter {
            python: path,
            version: answer.version,
            tracelens,
            keep_pythonpath,
        })
    }

    /// Imports `module` as a report would. Returns its version, as far as it says.
    ///
    /// # Errors
    /// With Python's last words, when that fails.
    pub fn import(&self, module: &str, scratch: &Path) -> Result<String> {
        let mut command = Command::new(&self.python);
        command.arg("-c").arg(format!(
            "import {module}; print(getattr({module}, '__version__', 'version unknown'))"
        ));
        isolate(&mut command, self.keep_pythonpath, scratch);
        let output = command
            .output()
            .with_context(|| format!("{} does not run", self.python.display()))?;
        let (said, complained) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        if !output.status.success() {
            let last = complained.lines().rev().map(str::trim).find(|line| !line.is_empty());
            bail!("{}", last.unwrap_or("Python failed without a word"));
        }
        Ok(said.lines().last().unwrap_or_default().trim().to_owned())
    }

    /// A command that runs `generator` in isolation: the console script beside the interpreter if it is there, else the function
    /// behind it.
    pub fn command(&self, generator: Generator, scratch: &Path) -> Command {
        let beside = self
            .python
            .parent()
            .map(|bin| bin.join(generator.script()))
            .filter(|path| is_executable(path));
        let mut command = match beside {
            Some(path) => Command::new(path),
            None => {
                let mut command = Command::new(&self.python);
                let module = generator.module();
                command.arg("-c");
                command.arg(format!("import sys; from {module} import main; sys.exit(main())"));
                command
            }
        };
        isolate(&mut command, self.keep_pythonpath, scratch);
        command
    }
}

/// Nothing of the caller's Python reaches the child. It starts in an empty folder of ours, so that the current folder is no source
/// of modules, and keeps its own caches there.
fn isolate(command: &mut Command, keep_pythonpath: bool, scratch: &Path) {
    if !keep_pythonpath {
        command.env_remove("PYTHONPATH");
    }
    command.env_remove("PYTHONHOME").env_remove("PYTHONSTARTUP");
    command.env("PYTHONNOUSERSITE", "1");
    // Any path and any output can be printed (facts/tracelens.md section 6).
    command.env("PYTHONUTF8", "1");
    command.env("MPLCONFIGDIR", scratch);
    command.current_dir(scratch).stdin(Stdio::null());
}

/// The program `program`: a path as it is, a bare name as it stands in an absolute folder of PATH.
pub fn find_program(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return std::path::absolute(program).ok().filter(|path| is_executable(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
