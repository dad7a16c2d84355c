//! The languages' own tools: where they are looked for, and how they are called (facts/wasm.md section 4).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use toolchain::{Missing, cargo_program, first_line, on_path};

use crate::plugins::World;

fn missing(what: &str, how: &str) -> Missing {
    Missing {
        what: what.to_owned(),
        how: how.to_owned(),
    }
}

pub(super) fn cargo() -> Result<(), Missing> {
    match first_line(Command::new(cargo_program()).arg("--version")) {
        Some(_) => Ok(()),
        None => Err(missing("no cargo", "get Rust from https://rustup.rs")),
    }
}

/// In the folder's own environment, the one that is active, or on PATH.
pub(super) fn componentize_py(folder: &Path) -> Result<PathBuf, Missing> {
    const NAME: &str = "componentize-py";
    let environments = [
        Some(folder.join(".venv")),
        env::var_os("VIRTUAL_ENV").map(PathBuf::from),
    ];
    environments
        .into_iter()
        .flatten()
        .map(|environment| environment.join("bin").join(NAME))
        .find(|program| program.is_file())
        .or_else(|| on_path(NAME))
        .ok_or_else(|| {
            missing(
                "no componentize-py",
                "`python3 -m venv .venv && .venv/bin/pip install -r requirements.txt` in the plugin's folder",
            )
        })
}

/// `-s` stubs WASI, so that the component imports the contract only; its `random` repeats itself then, as an answer must anyway.
pub(super) fn python(folder: &Path, world: World, made: &Path) -> Command {
    let mut command = Command::new(componentize_py(folder).unwrap_or_else(|_| "componentize-py".into()));
    command
        .current_dir(folder)
        .args([
            "--quiet",
            "--wit-path",
            "wit",
            "--world",
            world.as_str(),
            "componentize",
        ])
        .args(["--stub-wasi", "plugin", "--output"])
        .arg(made);
    command
}

/// In the folder's node_modules, or on PATH; it needs node.
pub(super) fn componentize_qjs(folder: &Path) -> Result<PathBuf, Missing> {
    const NAME: &str = "componentize-qjs";
    if on_path("node").is_none() {
        return Err(missing(
            "no node",
            "get Node 18 or later from https://nodejs.org, or `apt-get install nodejs npm`",
        ));
    }
    let own = folder.join("node_modules/.bin").join(NAME);
    Some(own)
        .filter(|program| program.is_file())
        .or_else(|| on_path(NAME))
        .ok_or_else(|| missing("no componentize-qjs", "`npm install` in the plugin's folder"))
}

/// `--sync`, since the default runtime needs component-model-async (facts/wasm.md section 3); `--stub-wasi` as for Python.
pub(super) fn js(folder: &Path, world: World, made: &Path) -> Command {
    let mut command = Command::new(componentize_qjs(folder).unwrap_or_else(|_| "componentize-qjs".into()));
    command
        .current_dir(folder)
        .args(["--wit", "wit", "--world", world.as_str(), "--js", "plugin.js"])
        .args(["--sync", "--stub-wasi", "--output"])
        .arg(made);
    command
}

/// A clang that knows WebAssembly, with its linker: Apple's does not, Homebrew's does.
pub(super) fn clang() -> Result<PathBuf, Missing> {
    let versions = (14..=22).rev().map(|version| format!("clang-{version}"));
    let homebrew = ["/opt/homebrew/opt/llvm/bin/clang", "/usr/local/opt/llvm/bin/clang"];
    let found = std::iter::once("clang".to_owned())
        .chain(versions)
        .filter_map(|name| on_path(&name))
        .chain(homebrew.map(PathBuf::from))
        .filter(|clang| clang.is_file())
        .find(|clang| knows_wasm(clang));
    let clang = found.ok_or_else(|| {
        missing(
            "no clang that knows WebAssembly",
            "`apt-get install clang lld`, or `brew install llvm lld`",
        )
    })?;
    // clang names the linker it would call: a path, or a bare name where it has none beside it.
    let linker = first_line(Command::new(&clang).arg("-print-prog-name=wasm-ld"));
    match linker {
        Some(linker) if Path::new(&linker).is_file() || on_path(&linker).is_some() => Ok(clang),
        _ => Err(missing("no wasm-ld", "`apt-get install lld`, or `brew install lld`")),
    }
}

fn knows_wasm(clang: &Path) -> bool {
    let targets = Command::new(clang).arg("--print-targets").output();
    targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("wasm32"))
}

/// Every C source of the folder, of `bindings/` and of `libc/`, and the object with the world's type, without a C library.
pub(super) fn c(folder: &Path, made: &Path) -> Result<Command> {
    let mut inputs: Vec<PathBuf> = Vec::new();
    for part in ["", "bindings", "libc"] {
        let path = folder.join(part);
        let mut found = Vec::new();
        for entry in fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))? {
            let name = PathBuf::from(entry?.file_name());
            let extension = name.extension().unwrap_or_default();
            if extension == "c" || (extension == "o" && part == "bindings") {
                found.push(Path::new(part).join(name));
            }
        }
        found.sort();
        inputs.append(&mut found);
    }
    let mut command = Command::new(clang().unwrap_or_else(|_| "clang".into()));
    command
        .current_dir(folder)
        .args([
            "--target=wasm32",
            "-std=c11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-mbulk-memory",
        ])
        // The little libc must not become calls of itself.
        .args(["-fno-builtin", "-nostdlib", "-I", ".", "-I", "libc"])
        // Function names stay, for backtraces.
        .args(["-Wl,--no-entry", "-Wl,--strip-debug", "-o"])
        .arg(made)
        .args(inputs.into_iter().map(|input| {
            // A name that begins with a dash is a name all the same.
            let mut argument = OsString::from("./");
            argument.push(input);
            argument
        }));
    Ok(command)
}
