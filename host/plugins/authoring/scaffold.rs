//! A folder to start from: the smallest policy that does something real, in the author's language.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use thiserror::Error;

use super::lang::Lang;
use crate::plugins::{BUILT_IN, World};
use crate::scratch::Scratch;

macro_rules! template {
    ($path:literal) => {
        include_bytes!(concat!("templates/", $path))
    };
}

macro_rules! contract {
    ($($name:literal),*) => {
        [$((concat!("wit/", $name), include_bytes!(concat!("../../../wit/0.1.0/", $name)) as &[u8])),*]
    };
}

/// The contract that a plugin is built against.
const CONTRACT: [(&str, &[u8]); 7] = contract!(
    "bytes.wit",
    "contents.wit",
    "interpreter.wit",
    "log.wit",
    "naming.wit",
    "types.wit",
    "worlds.wit"
);

/// Names that no crate may have, or that stand for something else in one of the languages.
const TAKEN: [&str; 56] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
    "wit-bindgen",
    "con",
    "nul",
    "prn",
];

/// Why there is no new folder.
#[derive(Debug, Error)]
pub enum ScaffoldError {
    /// The name does not fit every language.
    #[error("{0:?} is no name for a plugin: {1}")]
    Name(String, &'static str),
    /// Something of that name is there.
    #[error("{0} is there already: nothing was changed; take another name, or move it away")]
    Exists(String),
    /// It cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(String, io::Error),
}

/// Checks that `name` can be a plugin's name, a crate's and a package's.
///
/// # Errors
/// [`ScaffoldError::Name`], which says what a name has to be.
pub fn check_name(name: &str) -> Result<(), ScaffoldError> {
    let refused = |why| Err(ScaffoldError::Name(name.to_owned(), why));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) || name.len() > 64 {
        return refused("1 to 64 lower-case letters, digits and dashes, a letter first, are wanted");
    }
    if name.ends_with('-') || name.contains("--") {
        return refused("dashes stand one by one, between letters and digits");
    }
    if TAKEN.contains(&name) {
        return refused("the word is taken in Rust or on Windows");
    }
    if BUILT_IN.iter().any(|(built_in, _)| *built_in == name) {
        return refused("a built-in plugin is called so");
    }
    Ok(())
}

/// Makes the folder `name` in `parent`: source, contract, cases, README, all that [`build`](super::build) needs. It appears whole or not
/// at all.
///
/// # Errors
/// [`ScaffoldError`]; nothing is left behind then.
pub fn create(parent: &Path, name: &str, world: World, lang: Lang) -> Result<(), ScaffoldError> {
    check_name(name)?;
    let target = parent.join(name);
    let failed = |error| ScaffoldError::Write(target.display().to_string(), error);
    if target.symlink_metadata().is_ok() {
        return Err(ScaffoldError::Exists(target.display().to_string()));
    }
    let folder = Scratch::folder_in(parent, ".tracemend-").map_err(failed)?;
    for (path, content) in files(name, world, lang) {
        let path = folder.path().join(path);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
            fs::write(&path, &content)
        };
        write().map_err(failed)?;
    }
    // Scratch is its owner's alone; what stays gets the permissions of a new folder, read off one of them.
    let mode = fs::metadata(folder.path().join("wit"))
        .map_err(failed)?
        .permissions()
        .mode();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).map_err(failed)?;
    match renameat_with(CWD, folder.path(), CWD, &target, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(rustix::io::Errno::EXIST) => return Err(ScaffoldError::Exists(target.display().to_string())),
        // Not every file system can do that; what came between is a folder, which a rename replaces only if it is empty.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            fs::rename(folder.path(), &target).map_err(failed)?;
        }
        Err(error) => return Err(failed(error.into())),
    }
    folder.keep();
    Ok(())
}

/// The file of cases of a world, relative to the plugin's folder.
pub fn cases_file(world: World) -> &'static str {
    match world {
        World::TraceNaming => "cases.tsv",
        World::DynoInterpreter => "cases.jsonl",
    }
}

fn files(name: &str, world: World, lang: Lang) -> Vec<(&'static str, Vec<u8>)> {
    let mut files: Vec<(&str, &[u8])> = vec![
        ("README.md", template!("README.md")),
        ("plugin.toml", template!("plugin.toml")),
        (".gitignore", template!("gitignore")),
        match world {
            World::TraceNaming => (cases_file(world), template!("trace-naming.tsv")),
            World::DynoInterpreter => (cases_file(world), template!("dyno-interpreter.jsonl")),
        },
    ];
    files.extend(CONTRACT);
    let (source, tools): (&[u8], &str) = match (lang, world) {
        (Lang::Rust, World::TraceNaming) => (
            template!("rust/trace-naming.rs"),
            include_str!("templates/rust/tools.md"),
        ),
        (Lang::Rust, World::DynoInterpreter) => (
            template!("rust/dyno-interpreter.rs"),
            include_str!("templates/rust/tools.md"),
        ),
        (Lang::Python, World::TraceNaming) => (
            template!("python/trace-naming.py"),
            include_str!("templates/python/tools.md"),
        ),
        (Lang::Python, World::DynoInterpreter) => (
            template!("python/dyno-interpreter.py"),
            include_str!("templates/python/tools.md"),
        ),
        (Lang::Js, World::TraceNaming) => (template!("js/trace-naming.js"), include_str!("templates/js/tools.md")),
        (Lang::Js, World::DynoInterpreter) => (
            template!("js/dyno-interpreter.js"),
            include_str!("templates/js/tools.md"),
        ),
        (Lang::C, World::TraceNaming) => (template!("c/trace-naming.c"), include_str!("templates/c/tools.md")),
        (Lang::C, World::DynoInterpreter) => (template!("c/dyno-interpreter.c"), include_str!("templates/c/tools.md")),
    };
    files.push((lang.source(), source));
    match lang {
        Lang::Rust => files.push(("Cargo.toml", template!("rust/Cargo.toml"))),
        Lang::Python => files.push(("requirements.txt", template!("python/requirements.txt"))),
        Lang::Js => files.push(("package.json", template!("js/package.json"))),
        Lang::C => files.extend(c_files(world)),
    }
    let usage = match world {
        World::TraceNaming => include_str!("templates/trace-naming.use.md"),
        World::DynoInterpreter => include_str!("templates/dyno-interpreter.use.md"),
    };
    let fill = |content: &[u8]| match std::str::from_utf8(content) {
        Ok(text) => text
            .replace("@TOOLS@", tools.trim_end())
            .replace("@USE@", usage.trim_end())
            .replace("@SOURCE@", lang.source())
            .replace("@CASES@", cases_file(world))
            .replace("@LANG@", lang.as_str())
            .replace("@WORLD@", world.as_str())
            .replace("@NAME@", name)
            .into_bytes(),
        Err(_) => content.to_vec(),
    };
    files.into_iter().map(|(path, content)| (path, fill(content))).collect()
}

fn c_files(world: World) -> Vec<(&'static str, &'static [u8])> {
    let mut files: Vec<(&str, &[u8])> = vec![
        ("libc/libc.c", template!("c/libc/libc.c")),
        ("libc/stdlib.h", template!("c/libc/stdlib.h")),
        ("libc/string.h", template!("c/libc/string.h")),
    ];
    macro_rules! bindings {
        ($world:literal, $($name:literal),*) => {
            [$((
                concat!("bindings/", $name),
                include_bytes!(concat!("templates/c/bindings/", $world, "/", $name)) as &[u8],
            )),*]
        };
    }
    files.extend(match world {
        World::TraceNaming => bindings!(
            "trace-naming",
            "trace_naming.c",
            "trace_naming.h",
            "trace_naming_component_type.o"
        ),
        World::DynoInterpreter => bindings!(
            "dyno-interpreter",
            "dyno_interpreter.c",
            "dyno_interpreter.h",
            "dyno_interpreter_component_type.o"
        ),
    });
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_every_language() {
        for name in ["gpu-slots", "a", "x86-nodes", &"n".repeat(64)] {
            check_name(name).unwrap();
        }
        for name in [
            "",
            "-a",
            "a-",
            "a--b",
            "Gpu",
            "gpu_slots",
            "1st",
            "../up",
            "a/b",
            "a b",
            "naïve",
            "fn",
            "test",
            "con",
            "wit-bindgen",
            "producers",
            &"n".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn no_placeholder_is_left() {
        for lang in Lang::ALL {
            for world in [World::TraceNaming, World::DynoInterpreter] {
                for (path, content) in files("my-plugin", world, lang) {
                    let text = String::from_utf8_lossy(&content);
                    for placeholder in ["@NAME@", "@WORLD@", "@LANG@", "@TOOLS@", "@USE@", "@SOURCE@", "@CASES@"] {
                        assert!(!text.contains(placeholder), "{path} of {lang} {world}: {placeholder}");
                    }
                }
            }
        }
    }
}
