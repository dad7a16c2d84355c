//! The tools with which the tests build plugins in other languages than Rust, as their authors would: clang, componentize-py and
//! componentize-qjs. What cannot be had is said, and the tests leave that language out.

use crate::setup::{apt_install, make_venv};
use crate::step::{first_line, step, succeeds};
use crate::tree::Tree;
use anyhow::Context;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use toolchain::on_path;

/// The versions that new plugins get, so that the tests build what authors build.
const PYTHON_TOOLS: &str = "host/plugins/authoring/templates/python/requirements.txt";
const JS_TOOLS: &str = "host/plugins/authoring/templates/js/package.json";

fn python_folder(tree: &Tree) -> PathBuf {
    tree.target.join("authoring-tools/python")
}

fn js_folder(tree: &Tree) -> PathBuf {
    tree.target.join("authoring-tools/js")
}

/// Fetches what is not there; kept between runs.
pub fn tools(tree: &Tree) {
    type Fetch = fn(&Tree) -> anyhow::Result<()>;
    let fetches: [(&str, Fetch); 3] = [("c", clang), ("python", componentize_py), ("js", componentize_qjs)];
    for (lang, fetch) in fetches {
        if let Err(error) = fetch(tree) {
            eprintln!("xtask: SKIPPED: no plugins in {lang} will be built: {error:#}");
        }
    }
    eprintln!("xtask: plugins are built in {}", languages(tree).join(", "));
}

/// The languages whose tools are there.
pub fn languages(tree: &Tree) -> Vec<&'static str> {
    let python = || python_folder(tree).join("bin/componentize-py").is_file();
    let js = || js_folder(tree).join("node_modules/.bin/componentize-qjs").exists() && on_path("node").is_some();
    let found = [("rust", true), ("c", has_clang()), ("python", python()), ("js", js())];
    found
        .into_iter()
        .filter_map(|(lang, found)| found.then_some(lang))
        .collect()
}

fn has_clang() -> bool {
    let linker = first_line(Command::new("clang").arg("-print-prog-name=wasm-ld"));
    linker.is_some_and(|linker| PathBuf::from(&linker).is_file() || on_path(&linker).is_some())
}

fn clang(_: &Tree) -> anyhow::Result<()> {
    match has_clang() {
        true => Ok(()),
        false => apt_install(&["clang", "lld"]),
    }
}

fn componentize_py(tree: &Tree) -> anyhow::Result<()> {
    let folder = python_folder(tree);
    let wanted = fs::read_to_string(tree.root.join(PYTHON_TOOLS))?;
    let stamp = folder.join("installed.txt");
    let program = folder.join("bin/componentize-py");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) && succeeds(Command::new(program).arg("--version"))
    {
        return Ok(());
    }
    make_venv(&folder)?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(tree.root.join(PYTHON_TOOLS));
    step("install componentize-py", &mut pip)?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn componentize_qjs(tree: &Tree) -> anyhow::Result<()> {
    if on_path("npm").is_none() {
        apt_install(&["nodejs", "npm"])?;
    }
    let folder = js_folder(tree);
    let wanted = fs::read_to_string(tree.root.join(JS_TOOLS))?.replace("@NAME@", "authoring-tools");
    let stamp = folder.join("installed.json");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(folder.join("package.json"), &wanted)?;
    let mut npm = Command::new("npm");
    npm.current_dir(&folder)
        .args(["install", "--silent", "--no-audit", "--no-fund"]);
    step("install componentize-qjs", &mut npm)?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}
