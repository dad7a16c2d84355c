//! The Rust compiler that makes components, found by looking: either one with a ready standard library for
//! wasm32-unknown-unknown, or Debian's, which brings the library's source (facts/wasm.md, "How Rust plugins are built").
//! `cargo xtask plugins` and `tracemend plugin build` share it; it depends on nothing, so that xtask builds in seconds.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What plugins are built for where nothing else is asked for: no WASI, so nothing to stub.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A tool that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// How to get it.
    pub how: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.how)
    }
}

impl std::error::Error for Missing {}

/// A Rust compiler that can build for one WebAssembly target.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// The standard library's source, where it must be built.
    pub std_source: Option<PathBuf>,
    /// wasm-component-ld: links and makes a component of the module.
    pub linker: Option<PathBuf>,
    target: String,
}

impl Toolchain {
    /// A compiler for `target`.
    ///
    /// # Errors
    /// [`Missing`] where there is none; it says how to get one.
    pub fn find(target: &str) -> Result<Self, Missing> {
        let on_path: PathBuf = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()).into();
        let debian = PathBuf::from("/usr/bin/rustc");
        let linker = find_linker(&on_path);
        let ready = [&on_path, &debian]
            .into_iter()
            .find(|rustc| has_standard_library(rustc, target));
        let (rustc, std_source) = match ready {
            Some(rustc) => (rustc.clone(), None),
            // Debian's source builds for the target without a system; others need a C library as well.
            None if target == TARGET => match source_of(&debian) {
                Some(source) => (debian, Some(source)),
                None => return Err(no_compiler(target)),
            },
            None => return Err(no_compiler(target)),
        };
        Ok(Toolchain {
            rustc,
            std_source,
            linker,
            target: target.to_owned(),
        })
    }

    /// Makes `cargo build` build with this compiler, such that the bytes depend on sources and compilers alone: paths that stand
    /// in front of `remapped` ones are replaced, profiles and flags of the environment do not count.
    pub fn configure(&self, cargo: &mut Command, remapped: &[(PathBuf, &str)]) {
        cargo.args(["--release", "--target", &self.target]);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PROFILE_")) {
            cargo.env_remove(name);
        }
        cargo.env("CARGO_INCREMENTAL", "0").env("RUSTC", &self.rustc);
        if let Some(linker) = self.linker.as_ref().filter(|_| self.target == TARGET) {
            cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        let mut remap = vec![(cargo_home(), "/cargo")];
        remap.extend_from_slice(remapped);
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
    }
}

/// cargo, as the one that runs us names it, else the one on PATH.
pub fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The first line that a command prints, if it succeeds.
pub fn first_line(command: &mut Command) -> Option<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    String::from_utf8(output.stdout)
        .ok()?
        .lines()
        .next()
        .map(|line| line.trim().to_string())
}

/// The program `name` on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let name = format!("{name}{}", env::consts::EXE_SUFFIX);
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(&name))
        .find(|program| program.is_file())
}

fn no_compiler(target: &str) -> Missing {
    let debian = match target {
        TARGET => {
            ", or on Debian `apt-get update && apt-get install --no-install-recommends rustc-web rust-web-src lld`"
        }
        _ => "",
    };
    Missing {
        what: format!("no Rust compiler for {target}"),
        how: format!("`rustup target add {target}` with the Rust of https://rustup.rs{debian}"),
    }
}

fn print(rustc: &Path, what: &[&str]) -> Option<PathBuf> {
    first_line(Command::new(rustc).arg("--print").args(what)).map(PathBuf::from)
}

fn has_standard_library(rustc: &Path, target: &str) -> bool {
    print(rustc, &["target-libdir", "--target", target]).is_some_and(|libdir| libdir.is_dir())
}

fn source_of(rustc: &Path) -> Option<PathBuf> {
    let source = print(rustc, &["sysroot"])?.join("lib/rustlib/src/rust");
    source.join("library/std/Cargo.toml").is_file().then_some(source)
}

/// In the folder of rustup's own linkers, beside `gcc-ld/wasm-ld`, which it calls; else on PATH.
fn find_linker(rustc: &Path) -> Option<PathBuf> {
    const NAME: &str = "wasm-component-ld";
    let bundled = print(rustc, &["target-libdir"]).and_then(|libdir| {
        let folder = libdir.parent()?.join("bin");
        Some(folder.join(format!("{NAME}{}", env::consts::EXE_SUFFIX)))
    });
    bundled.filter(|linker| linker.is_file()).or_else(|| on_path(NAME))
}

fn cargo_home() -> PathBuf {
    let default = || env::home_dir().unwrap_or_default().join(".cargo");
    env::var_os("CARGO_HOME").map_or_else(default, PathBuf::from)
}

/// The version that `program` says it has, on one line; empty where it does not say.
pub fn version_of(program: impl AsRef<OsStr>) -> String {
    first_line(Command::new(program).arg("--version")).unwrap_or_default()
}
