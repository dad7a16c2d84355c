//! What the tests need beyond cargo. Each part looks first and does nothing where all is there.

use crate::authoring;
use crate::hash;
use crate::step::{Failed, first_line, step, succeeds};
use crate::tree::Tree;
use crate::wasm::{TARGET, Toolchain};
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STAND_IN: &str = "fixtures/tracelens";

/// `cargo xtask setup`.
pub fn all(tree: &Tree) -> anyhow::Result<()> {
    wasm_toolchain()?;
    browser();
    python(tree)?;
    authoring::tools(tree);
    Ok(())
}

/// Chromium and its driver, for the tests of pages. Where they cannot be had, those tests say so and are skipped.
fn browser() {
    let there = || {
        ["chromium", "chromedriver"]
            .iter()
            .all(|program| succeeds(Command::new(program).arg("--version")))
    };
    if !there()
        && let Err(error) = apt_install(&["chromium", "chromium-driver"])
    {
        eprintln!("xtask: {error:#}");
    }
    match there() {
        true => eprintln!("xtask: chromium and chromedriver are there"),
        false => eprintln!(
            "xtask: NO BROWSER: the tests of pages in a browser will be skipped; install chromium and chromedriver"
        ),
    }
}

fn wasm_toolchain() -> anyhow::Result<()> {
    let installs: [fn() -> anyhow::Result<()>; 2] = [
        || {
            step(
                "fetch the wasm target",
                Command::new("rustup").args(["target", "add", TARGET]),
            )
        },
        || apt_install(&["rustc-web", "rust-web-src", "lld"]),
    ];
    let mut found = Toolchain::find();
    for install in installs {
        if found.is_err() {
            if let Err(error) = install() {
                eprintln!("xtask: {error:#}");
            }
            found = Toolchain::find();
        }
    }
    eprintln!("xtask: wasm toolchain: {}", found?.summary());
    Ok(())
}

/// The interpreter of the tests' virtual environment.
pub fn venv_python(tree: &Tree) -> PathBuf {
    venv(tree).join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    })
}

fn venv(tree: &Tree) -> PathBuf {
    tree.target.join("tracelens-venv")
}

/// A virtual environment with the stand-in for TraceLens, made anew when the stand-in or the Python changes.
fn python(tree: &Tree) -> anyhow::Result<()> {
    let version =
        first_line(Command::new("python3").args(["-c", "import sys; print(sys.executable, sys.version.split()[0])"]))
            .ok_or_else(|| Failed {
            code: 1,
            what: "no python3: install Python 3.9 or later".into(),
        })?;
    let sources = hash::of_tree(&tree.root, &[STAND_IN.into()], |path| {
        path.extension().is_none_or(|kind| kind != "pyc")
    })?;
    let wanted = format!("{sources} {version}\n");
    let stamp = venv(tree).join("stand-in.stamp");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted)
        && succeeds(Command::new(venv_python(tree)).arg("--version"))
    {
        eprintln!("xtask: {} is up to date", venv(tree).display());
        return Ok(());
    }
    make_venv(&venv(tree))?;
    let mut pip = Command::new(venv_python(tree));
    pip.current_dir(&tree.root)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .arg(format!("./{STAND_IN}"));
    step("install the stand-in for TraceLens", &mut pip)?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// A new virtual environment in `folder`.
pub fn make_venv(folder: &Path) -> anyhow::Result<()> {
    let make = || {
        step(
            "make a Python environment",
            Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder),
        )
    };
    // Debian splits venv and ensurepip off; without them `python3 -m venv` fails and says so.
    if succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"])) {
        return make();
    }
    apt_install(&["python3-venv"])
        .context("python3 cannot make virtual environments: install the package python3-venv")?;
    make()
}

/// Installs Debian packages, where this may be done without asking: as root, or with a sudo that needs no password.
pub fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    let refused = |why| Failed {
        code: 1,
        what: format!("cannot install {}: {why}", packages.join(", ")),
    };
    if !succeeds(Command::new("apt-get").arg("--version")) {
        return Err(refused("this machine has no apt-get").into());
    }
    let root = first_line(Command::new("id").arg("-u")).is_some_and(|id| id == "0");
    if !root && !succeeds(Command::new("sudo").args(["-n", "true"])) {
        return Err(refused("this takes root, or sudo without a password").into());
    }
    let apt = || {
        let mut apt = Command::new(if root { "apt-get" } else { "sudo" });
        if !root {
            apt.args(["-n", "apt-get"]);
        }
        apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-q");
        apt
    };
    // Without fresh lists apt asks for versions that the security archive no longer has.
    step("refresh Debian's package lists", apt().arg("update"))?;
    step(
        "install Debian packages",
        apt().args(["install", "-y", "--no-install-recommends"]).args(packages),
    )
}
