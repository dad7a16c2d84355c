//! From a plugin's folder to a component: the language's own tool, then this host, which makes a component of a core module, loads it
//! and keeps its native code.

mod tools;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use thiserror::Error;
use toolchain::{Missing, Toolchain};

use super::lang::Lang;
use crate::plugins::component::componentize;
use crate::plugins::{Origin, Plugin, PluginHost, World};
use crate::scratch::{ProcessGroup, Scratch};

/// The file in a plugin's folder that says its language and world.
const MANIFEST: &str = "plugin.toml";

/// A folder that could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// Tools are missing.
    #[error("{}", .0.iter().map(Missing::to_string).collect::<Vec<_>>().join("\n"))]
    Missing(Vec<Missing>),
    /// The tool ran and failed; what it said was handed on while it ran.
    #[error("{program} failed ({status})")]
    Tool {
        /// The program's name.
        program: String,
        /// How it ended.
        status: String,
    },
    /// The tool made something that is no plugin.
    #[error("what was built is no plugin: {0}")]
    NoPlugin(String),
    /// The folder is no plugin's, or it cannot be read or written.
    #[error("{0}")]
    Folder(String),
}

/// What a folder says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Project {
    /// The language.
    pub lang: Lang,
    /// The world, if it is named.
    pub world: Option<World>,
}

/// A plugin that was built, loaded, and written to its file.
pub struct Built {
    /// The component's file.
    pub file: PathBuf,
    /// The plugin, loaded.
    pub plugin: Plugin,
    /// How long the language's tool ran.
    pub tool_time: Duration,
    /// How long the host took to load it, which includes compiling it to native code if that was not cached.
    pub load_time: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    lang: String,
    world: Option<String>,
}

impl Project {
    /// What `folder` is: by its plugin.toml, or a Rust crate by its Cargo.toml.
    ///
    /// # Errors
    /// When it is neither, or plugin.toml cannot be read.
    pub fn of(folder: &Path) -> Result<Project> {
        let manifest = folder.join(MANIFEST);
        let text = match fs::read_to_string(&manifest) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if folder.join("Cargo.toml").is_file() {
                    return Ok(Project {
                        lang: Lang::Rust,
                        world: None,
                    });
                }
                if !folder.is_dir() {
                    bail!("there is no folder {}", folder.display());
                }
                bail!(
                    "{} has no {MANIFEST}, so it is no plugin's folder; `tracemend plugin new` makes one",
                    folder.display()
                );
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", manifest.display())),
        };
        let shown = || manifest.display().to_string();
        let read: Manifest = toml::from_str(&text).with_context(shown)?;
        let lang = read
            .lang
            .parse()
            .map_err(|why: String| anyhow!(why))
            .with_context(shown)?;
        let world = read
            .world
            .as_deref()
            .map(world_of_name)
            .transpose()
            .with_context(shown)?;
        Ok(Project { lang, world })
    }

    /// Tools that building `folder` needs and that are not there, each with how to get it.
    pub fn missing(&self, folder: &Path, target: &str) -> Vec<Missing> {
        let missing: Vec<Option<Missing>> = match self.lang {
            Lang::Rust => vec![tools::cargo().err(), Toolchain::find(target).err()],
            Lang::Python => vec![tools::componentize_py(folder).err()],
            Lang::Js => vec![tools::componentize_qjs(folder).err()],
            Lang::C => vec![tools::clang().err()],
        };
        missing.into_iter().flatten().collect()
    }
}

fn world_of_name(name: &str) -> Result<World> {
    [World::TraceNaming, World::DynoInterpreter]
        .into_iter()
        .find(|world| world.as_str() == name)
        .with_context(|| format!("there is no world {name:?}: trace-naming or dyno-interpreter is wanted"))
}

/// Builds the plugin in `folder` and writes it to `output`, else to `folder/NAME.wasm`, NAME being what the plugin calls itself. `target`
/// is what a Rust plugin is built for. `say` gets what the tool prints, line by line: any text, not fit for a terminal as it is.
///
/// # Errors
/// [`BuildError`]; a file of the name stays as it was then.
pub fn run(
    host: &PluginHost,
    folder: &Path,
    output: Option<&Path>,
    target: &str,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Built, BuildError> {
    let in_folder = |error: anyhow::Error| BuildError::Folder(format!("{error:#}"));
    // What is written is named as the user named the folder; tools run in it.
    let named = folder;
    let folder = std::path::absolute(folder).map_err(|error| BuildError::Folder(error.to_string()))?;
    let project = Project::of(&folder).map_err(in_folder)?;
    let missing = project.missing(&folder, target);
    if !missing.is_empty() {
        return Err(BuildError::Missing(missing));
    }
    let scratch = Scratch::folder_in(&std::env::temp_dir(), "tracemend-build-")
        .context("cannot make a temporary folder")
        .map_err(in_folder)?;
    let start = Instant::now();
    let made = match project.lang {
        Lang::Rust => rust(&folder, target, say)?,
        lang => {
            let world = project
                .world
                .ok_or_else(|| BuildError::Folder(format!("{MANIFEST} names no world")))?;
            let made = scratch.path().join("made.wasm");
            let mut tool = match lang {
                Lang::Python => tools::python(&folder, world, &made),
                Lang::Js => tools::js(&folder, world, &made),
                _ => tools::c(&folder, &made).map_err(in_folder)?,
            };
            call(&mut tool, &mut |line| say(line), say)?;
            made
        }
    };
    let tool_time = start.elapsed();
    let module = fs::read(&made)
        .with_context(|| format!("cannot read {}", made.display()))
        .map_err(in_folder)?;

    let no_plugin = |error: anyhow::Error| BuildError::NoPlugin(format!("{error:#}"));
    let start = Instant::now();
    let component = componentize(&module).map_err(|refusal| no_plugin(refusal.into()))?;
    let plugin = host
        .load(Origin::File(folder.clone()), &component, project.world)
        .map_err(no_plugin)?;
    let load_time = start.elapsed();
    let file = output.map_or_else(|| named.join(format!("{}.wasm", plugin.name())), Path::to_owned);
    write(&file, &component)
        .with_context(|| format!("cannot write {}", file.display()))
        .map_err(in_folder)?;
    Ok(Built {
        file,
        plugin,
        tool_time,
        load_time,
    })
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (mut file, scratch) = Scratch::file_beside(path)?;
    file.write_all(bytes)?;
    scratch.persist(path)
}

#[derive(Deserialize)]
struct CargoMessage {
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// Builds the crate in `folder`; the last WebAssembly file that cargo reports is the crate's own, since it comes after its dependencies.
fn rust(folder: &Path, target: &str, say: &(dyn Fn(&str) + Sync)) -> Result<PathBuf, BuildError> {
    let toolchain = Toolchain::find(target).map_err(|missing| BuildError::Missing(vec![missing]))?;
    let mut cargo = Command::new(toolchain::cargo_program());
    cargo
        .current_dir(folder)
        .args(["build", "--message-format", "json-render-diagnostics"]);
    toolchain.configure(&mut cargo, &[]);
    let mut made = None;
    let mut listen = |line: &str| {
        // Anything else on its standard output is not for us.
        if let Ok(message) = serde_json::from_str::<CargoMessage>(line) {
            let wasm = |file: &PathBuf| file.extension() == Some(OsStr::new("wasm"));
            made = message.filenames.into_iter().find(wasm).or(made.take());
        }
    };
    call(&mut cargo, &mut listen, say)?;
    made.ok_or_else(|| {
        BuildError::NoPlugin(
            "cargo made no .wasm file; Cargo.toml needs `crate-type = [\"cdylib\"]` under [lib]".into(),
        )
    })
}

/// Runs a tool. Its standard output goes to `listen`, its standard error to `say`, line by line; it ends with us when we are interrupted.
fn call(tool: &mut Command, listen: &mut dyn FnMut(&str), say: &(dyn Fn(&str) + Sync)) -> Result<(), BuildError> {
    let program = Path::new(tool.get_program())
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let failed = |status: String| BuildError::Tool {
        program: program.clone(),
        status,
    };
    tool.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let (mut child, group) = ProcessGroup::of(|| tool.spawn()).map_err(|error| failed(error.to_string()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || lines(stderr, &mut |line| say(line)));
        lines(stdout, listen);
    });
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    drop(group);
    match status.success() {
        true => Ok(()),
        false => Err(failed(status.to_string())),
    }
}

/// Hands on every line of `stream`, whatever its bytes.
fn lines(stream: Option<impl Read>, hand_on: &mut dyn FnMut(&str)) {
    let Some(stream) = stream else { return };
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    // A stream that breaks ends like one that is closed: the exit code tells.
    while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        hand_on(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}
