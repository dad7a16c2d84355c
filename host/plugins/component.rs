//! From a plugin file's bytes to a component of a known world, with refusals in our own words.

use std::fmt;

use thiserror::Error;
use wasmparser::{Parser, Payload, TypeRef, Validator, WasmFeatures};
use wasmtime::Engine;
use wasmtime::component::Component;
use wit_component::ComponentEncoder;

use super::wasi;

/// The contract's package and the version that this host offers.
const PACKAGE: &str = "tracemend:plugin";
/// Version of the contract that this host offers to plugins.
pub const CONTRACT: &str = "0.1.0";
const OFFERED: [&str; 4] = ["bytes", "contents", "log", "types"];

/// What a plugin is for; its world in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum World {
    /// Says whose trace is whose.
    TraceNaming,
    /// Reads the answers to capture requests.
    DynoInterpreter,
}

impl World {
    /// The world's name in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            World::TraceNaming => "trace-naming",
            World::DynoInterpreter => "dyno-interpreter",
        }
    }

    fn of_export(interface: &str) -> Option<World> {
        match interface {
            "naming" => Some(World::TraceNaming),
            "interpreter" => Some(World::DynoInterpreter),
            _ => None,
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a file is no plugin for this host. Each says what to do about it.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// The bytes are not WebAssembly.
    #[error(
        "it is not WebAssembly (a .wasm file begins with 00 61 73 6d); build it with `cargo build --release --target wasm32-unknown-unknown`"
    )]
    NotWasm,
    /// WebAssembly that does not validate, for example a file cut short.
    #[error("it is damaged or cut short ({0}); copy or build it again")]
    Invalid(String),
    /// A core module without the type information that wit-bindgen puts in.
    #[error(
        "it is a core module that says nothing of its world ({0}); build it with wit-bindgen and the contract in wit/"
    )]
    NoWorld(String),
    /// It wants something that no plugin gets.
    #[error(
        "it imports {0}, which no plugin gets: there are the interfaces of wit/ and an empty WASI 0.2 (its cli, clocks, filesystem, io, random and sockets); build it without (componentize-js: `-d http -d fetch-event`)"
    )]
    ForbiddenImport(String),
    /// Built against another version of the contract.
    #[error(
        "it was built for version {0} of the plugin contract, this tracemend has {CONTRACT}; build it with the contract of `wit/{CONTRACT}`"
    )]
    OtherContract(String),
    /// Built against a later version of the same track, and in need of what it added.
    #[error(
        "it was built for version {version} of the plugin contract and needs what this tracemend, with {CONTRACT}, has not yet ({detail}); take a newer tracemend, or build it with the contract of `wit/{CONTRACT}`"
    )]
    LaterContract {
        /// Its version.
        version: String,
        /// What the linker missed.
        detail: String,
    },
    /// Its memory is shared between threads.
    #[error(
        "it uses threads (a shared memory), and a plugin runs on one: build it without the target feature atomics, and not for wasm32-wasip1-threads"
    )]
    Threads,
    /// No world of the contract is exported.
    #[error(
        "it exports {0}, neither tracemend:plugin/naming nor tracemend:plugin/interpreter, so it is no tracemend plugin"
    )]
    NoKnownExport(String),
    /// A plugin, but for another purpose.
    #[error("it is a {found} plugin, and a {wanted} plugin is wanted here")]
    OtherWorld {
        /// What it is.
        found: World,
        /// What would fit.
        wanted: World,
    },
    /// Imports or exports differ from the contract in a way only the linker sees.
    #[error("it does not fit the contract: {0}")]
    Mismatch(String),
    /// The native code could not be made.
    #[error("it cannot be compiled: {0}")]
    Compile(String),
}

/// `wasm` as a component: a core module is wrapped, both are validated first, since wit-component panics on a truncated module
/// (facts/wasm.md, finding 4).
pub(super) fn componentize(wasm: &[u8]) -> Result<Vec<u8>, Refusal> {
    let layer = match wasm {
        [0, b'a', b's', b'm', layer @ ..] if layer.len() >= 4 => [layer[0], layer[1], layer[2], layer[3]],
        [0, b'a', b's', b'm', ..] => return Err(Refusal::Invalid("only its first bytes are there".into())),
        _ => return Err(Refusal::NotWasm),
    };
    Validator::new_with_features(WasmFeatures::all())
        .validate_all(wasm)
        .map_err(|e| Refusal::Invalid(e.to_string()))?;
    if shares_memory(wasm) {
        return Err(Refusal::Threads);
    }
    if layer != [1, 0, 0, 0] {
        return Ok(wasm.to_vec());
    }
    if !names_its_world(wasm) {
        return Err(Refusal::NoWorld("it has no component-type section".into()));
    }
    let encoder = ComponentEncoder::default().validate(true).module(wasm);
    encoder
        .and_then(|mut encoder| encoder.encode())
        .map_err(|e| Refusal::NoWorld(format!("{e:#}")))
}

/// Whether wit-bindgen left its custom section in a core module. Without it wit-component makes an empty component.
fn names_its_world(module: &[u8]) -> bool {
    Parser::new(0).parse_all(module).any(
        |section| matches!(section, Ok(Payload::CustomSection(custom)) if custom.name().starts_with("component-type")),
    )
}

/// Whether a memory anywhere in `wasm`, imported or its own, is one for several threads.
fn shares_memory(wasm: &[u8]) -> bool {
    Parser::new(0).parse_all(wasm).any(|section| match section {
        Ok(Payload::MemorySection(memories)) => memories.into_iter().flatten().any(|memory| memory.shared),
        Ok(Payload::ImportSection(imports)) => imports
            .into_imports()
            .flatten()
            .any(|import| matches!(import.ty, TypeRef::Memory(memory) if memory.shared)),
        _ => false,
    })
}

/// Names a component's imports and exports.
pub(super) struct Shape {
    pub(super) imports: Vec<String>,
    pub(super) exports: Vec<String>,
}

impl Shape {
    pub(super) fn of(engine: &Engine, component: &Component) -> Self {
        let shape = component.component_type();
        Shape {
            imports: shape.imports(engine).map(|(name, _)| name.to_owned()).collect(),
            exports: shape.exports(engine).map(|(name, _)| name.to_owned()).collect(),
        }
    }

    /// The version of the contract that it was built for, if that is later than ours.
    fn later_version(&self) -> Option<String> {
        let patch = |version: &str| {
            version
                .rsplit_once('.')
                .and_then(|(_, patch)| patch.parse::<u32>().ok())
        };
        let names = self.imports.iter().chain(&self.exports);
        let versions = names.filter_map(|name| of_contract(name)).map(|(_, version)| version);
        let latest = versions.max_by_key(|version| patch(version))?;
        (patch(latest) > patch(CONTRACT)).then(|| latest.to_owned())
    }

    /// The world that the component fits, judged by names.
    pub(super) fn world(&self) -> Result<World, Refusal> {
        let mut found = None;
        for export in &self.exports {
            if let Some((interface, version)) = of_contract(export) {
                check_version(version)?;
                found = found.or(World::of_export(interface));
            }
        }
        for import in &self.imports {
            match of_contract(import) {
                Some((interface, version)) => {
                    check_version(version)?;
                    if !OFFERED.contains(&interface) {
                        return Err(Refusal::ForbiddenImport(import.clone()));
                    }
                }
                None if wasi::is_offered(import) => {}
                None => return Err(Refusal::ForbiddenImport(import.clone())),
            }
        }
        found.ok_or_else(|| {
            Refusal::NoKnownExport(if self.exports.is_empty() {
                "nothing".into()
            } else {
                self.exports.join(", ")
            })
        })
    }
}

/// A linker's refusal of a component of this shape, in our own words.
pub(super) fn mismatch(shape: &Shape, error: &wasmtime::Error) -> Refusal {
    let detail = error.root_cause().to_string();
    match shape.later_version() {
        Some(version) => Refusal::LaterContract { version, detail },
        None => Refusal::Mismatch(format!("{error:#}")),
    }
}

/// Interface and version of a name of our package: `tracemend:plugin/naming@0.1.0`.
fn of_contract(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    Some(rest.split_once('@').unwrap_or((rest, "")))
}

/// Versions match by their track: for 0.x the minor number (semver, as the component model's linking does).
fn check_version(version: &str) -> Result<(), Refusal> {
    let track = |version: &str| version.rsplit_once('.').map(|(track, _)| track.to_owned());
    if track(version) == track(CONTRACT) {
        Ok(())
    } else {
        Err(Refusal::OtherContract(version.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_wasm_is_named_as_such() {
        assert_eq!(componentize(b"").unwrap_err(), Refusal::NotWasm);
        assert_eq!(componentize(b"#!/bin/sh").unwrap_err(), Refusal::NotWasm);
        assert!(matches!(componentize(b"\0asm\x01").unwrap_err(), Refusal::Invalid(_)));
        assert!(matches!(
            componentize(b"\0asm\x01\0\0\0\x01").unwrap_err(),
            Refusal::Invalid(_)
        ));
        assert!(matches!(
            componentize(b"\0asm\x01\0\0\0").unwrap_err(),
            Refusal::NoWorld(_)
        ));
    }

    #[test]
    fn versions_match_by_track() {
        let shape = |exports: &[&str], imports: &[&str]| Shape {
            imports: imports.iter().map(|name| name.to_string()).collect(),
            exports: exports.iter().map(|name| name.to_string()).collect(),
        };
        assert_eq!(
            shape(&["tracemend:plugin/naming@0.1.7"], &[]).world(),
            Ok(World::TraceNaming)
        );
        assert_eq!(
            shape(&["tracemend:plugin/naming@0.2.0"], &[]).world(),
            Err(Refusal::OtherContract("0.2.0".into()))
        );
        assert_eq!(
            shape(&["tracemend:plugin/interpreter@0.1.0"], &["wasi:http/types@0.2.0"]).world(),
            Err(Refusal::ForbiddenImport("wasi:http/types@0.2.0".into()))
        );
        assert_eq!(shape(&[], &[]).world(), Err(Refusal::NoKnownExport("nothing".into())));
    }
}
