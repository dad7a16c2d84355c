//! What the tree needs beyond plain cargo: `cargo xtask plugins [--check] | setup | test | demo`.

mod authoring;
mod guests;
mod hash;
mod setup;
mod step;
mod tree;
mod wasm;

use std::process::ExitCode;
use step::{Failed, step};
use tree::Tree;

const USAGE: &str = "\
usage: cargo xtask COMMAND
  plugins          build the guests of plugins/ and tests/guests/ into their built/ folders
  plugins --check  fail if built/ is not what the sources beside it give
  setup            fetch what the tests need: the wasm toolchain, a Python with the stand-in for TraceLens, the plugin authors' tools
  test             setup, plugins --check, and every test of the tree
  demo             analyze the bundled run with the built-in reporter";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let run = || {
        let tree = Tree::at_hand()?;
        match words.as_slice() {
            ["plugins"] => guests::build(&tree),
            ["plugins", "--check"] => guests::check(&tree),
            ["setup"] => setup::all(&tree),
            ["test"] => test(&tree),
            ["demo"] => demo(&tree),
            _ => Err(Failed {
                code: 2,
                what: USAGE.into(),
            }
            .into()),
        }
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(error.downcast_ref::<Failed>().map_or(1, |failed| failed.code))
        }
    }
}

fn test(tree: &Tree) -> anyhow::Result<()> {
    setup::all(tree)?;
    guests::check(tree)?;
    for workspace in guests::WORKSPACES {
        step(
            &format!("test {workspace} natively"),
            tree.cargo_for_guests(workspace).args(["test", "--locked"]),
        )?;
    }
    let python = setup::venv_python(tree);
    let mut workspace = tree.cargo();
    workspace
        .args(["test", "--locked", "--release", "--workspace"])
        .env("TRACEMEND_TEST_PYTHON", python)
        .env("TRACEMEND_TEST_LANGUAGES", authoring::languages(tree).join(","));
    step("test the workspace", &mut workspace)
}

fn demo(tree: &Tree) -> anyhow::Result<()> {
    let mut analyze = tree.cargo();
    analyze.args([
        "run",
        "--locked",
        "--release",
        "--",
        "analyze",
        "fixtures/run",
        "--reporter",
        "builtin",
        "-o",
    ]);
    analyze.arg(tree.target.join("demo-report"));
    step("analyze the bundled run", &mut analyze)
}
