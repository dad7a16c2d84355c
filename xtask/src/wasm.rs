//! The compiler that makes components, found by looking (facts/wasm.md): either one with a ready standard library for
//! wasm32-unknown-unknown, or Debian's, which brings the library's source.

use crate::step::{Failed, first_line};
use crate::tree::{Tree, cargo_program};
use serde::{Deserialize, Serialize};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TARGET: &str = "wasm32-unknown-unknown";

const TO_GET_ONE: &str = "`rustup target add wasm32-unknown-unknown`, or on Debian \
     `apt-get update && apt-get install --no-install-recommends rustc-web rust-web-src lld`";

/// What decides the bytes of a component besides its sources.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Compilers {
    rustc: String,
    standard_library: String,
    cargo: String,
    linker: String,
}

pub struct Toolchain {
    rustc: PathBuf,
    /// The standard library's source, where it must be built.
    std_source: Option<PathBuf>,
    /// wasm-component-ld: links and makes a component of the module.
    linker: PathBuf,
    pub compilers: Compilers,
}

impl Toolchain {
    pub fn find() -> Result<Self, Failed> {
        let refused = |what: &str, mend: &str| Failed {
            code: 1,
            what: format!("{what}: {mend}"),
        };
        let on_path: PathBuf = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()).into();
        let debian = PathBuf::from("/usr/bin/rustc");
        let linker = find_linker(&on_path).ok_or_else(|| {
            refused(
                "no wasm-component-ld",
                "it comes with the Rust that rustup installs (https://rustup.rs)",
            )
        })?;
        let ready = [&on_path, &debian]
            .into_iter()
            .find(|rustc| has_standard_library(rustc));
        let (rustc, std_source) = match ready {
            Some(rustc) => (rustc.clone(), None),
            None => {
                let source = source_of(&debian).ok_or_else(|| refused("no compiler for wasm plugins", TO_GET_ONE))?;
                (debian, Some(source))
            }
        };
        let version = |program: &OsStr| first_line(Command::new(program).arg("--version")).unwrap_or_default();
        let compilers = Compilers {
            rustc: version(rustc.as_os_str()),
            standard_library: if std_source.is_some() {
                "built from source"
            } else {
                "as installed"
            }
            .into(),
            cargo: version(&cargo_program()),
            linker: version(linker.as_os_str()),
        };
        Ok(Toolchain {
            rustc,
            std_source,
            linker,
            compilers,
        })
    }

    /// One line about it, for people.
    pub fn summary(&self) -> String {
        format!(
            "{}, standard library {}",
            self.compilers.rustc, self.compilers.standard_library
        )
    }

    /// `cargo build` in a workspace of guests, such that the bytes depend on the sources and the compilers alone
    /// (facts/wasm.md section 6).
    pub fn build(&self, tree: &Tree, workspace: &str) -> Command {
        let mut cargo = tree.cargo_for_guests(workspace);
        cargo.args(["build", "--locked", "--release", "--target", TARGET]);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PROFILE_")) {
            cargo.env_remove(name);
        }
        cargo.env("CARGO_INCREMENTAL", "0").env("RUSTC", &self.rustc);
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker);
        let mut remap = vec![(cargo_home(), "/cargo"), (tree.root.clone(), "/build")];
        if let Some(source) = &self.std_source {
            cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC_BOOTSTRAP", "1");
            remap.push((source.clone(), "/rust"));
            remap.extend(source.canonicalize().map(|real| (real, "/rust")));
        }
        let mut flags = OsString::new();
        for (from, to) in remap {
            if !flags.is_empty() {
                flags.push("\u{1f}");
            }
            flags.push("--remap-path-prefix=");
            flags.push(from);
            flags.push("=");
            flags.push(to);
        }
        cargo.env("CARGO_ENCODED_RUSTFLAGS", flags);
        cargo
    }
}

fn print(rustc: &Path, what: &[&str]) -> Option<PathBuf> {
    first_line(Command::new(rustc).arg("--print").args(what)).map(PathBuf::from)
}

fn has_standard_library(rustc: &Path) -> bool {
    print(rustc, &["target-libdir", "--target", TARGET]).is_some_and(|libdir| libdir.is_dir())
}

fn source_of(rustc: &Path) -> Option<PathBuf> {
    let source = print(rustc, &["sysroot"])?.join("lib/rustlib/src/rust");
    source.join("library/std/Cargo.toml").is_file().then_some(source)
}

/// In the folder of rustup's own linkers, beside `gcc-ld/wasm-ld`, which it calls; else on PATH.
fn find_linker(rustc: &Path) -> Option<PathBuf> {
    let name = format!("wasm-component-ld{}", env::consts::EXE_SUFFIX);
    let bundled = print(rustc, &["target-libdir"]).and_then(|libdir| Some(libdir.parent()?.join("bin").join(&name)));
    let on_path =
        env::var_os("PATH").map(|path| env::split_paths(&path).map(|dir| dir.join(&name)).collect::<Vec<_>>());
    bundled
        .into_iter()
        .chain(on_path.into_iter().flatten())
        .find(|linker| linker.is_file())
}

fn cargo_home() -> PathBuf {
    let default = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(default, PathBuf::from)
}
