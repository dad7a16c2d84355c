//! A loaded plugin, and the host that loads and calls it.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use thiserror::Error;
use wasmtime::Engine;
use wasmtime::component::{Component, HasSelf, Linker};

use super::bindings::dyno_interpreter::exports::tracemend::plugin::interpreter::{Answer, Call};
use super::bindings::dyno_interpreter::{DynoInterpreter, DynoInterpreterPre};
use super::bindings::log::Level;
use super::bindings::trace_naming::exports::tracemend::plugin::naming::{Label, Trace};
use super::bindings::trace_naming::{TraceNaming, TraceNamingPre};
use super::bindings::types::Description;
use super::cache::{Cache, hex};
use super::call::{CallError, Guest, Reason, Spent, call};
use super::component::{Refusal, Shape, World, componentize, mismatch};
use super::engine::engine;
use super::imports::{Contents, NoContents, State};
use super::limits::Limits;
use super::wasi;
use crate::nearest::did_you_mean;

/// Where a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Embedded in this binary.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

enum Linked {
    TraceNaming(TraceNamingPre<State>),
    DynoInterpreter(DynoInterpreterPre<State>),
}

/// A plugin that is loaded, linked and has said who it is.
pub struct Plugin {
    /// What it said of itself.
    pub description: Description,
    /// Its world.
    pub world: World,
    /// Where it came from.
    pub origin: Origin,
    /// SHA-256 of its file, lower-case hexadecimal.
    pub sha256: String,
    /// Size of its file in bytes.
    pub size: usize,
    /// Whether its native code came from the cache.
    pub from_cache: bool,
    /// Names of its imports.
    pub imports: Vec<String>,
    /// Names of its exports.
    pub exports: Vec<String>,
    configured: Vec<(String, String)>,
    spent: Spent,
    linked: Linked,
}

/// A value for a setting that the plugin does not have.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("plugin {plugin} has no setting {setting}; {hint}")]
pub struct UnknownSetting {
    /// The plugin's name.
    pub plugin: String,
    /// The setting that was given.
    pub setting: String,
    /// What it does have, as the end of the sentence.
    pub hint: String,
}

impl Plugin {
    /// Its own name for itself.
    pub fn name(&self) -> &str {
        &self.description.name
    }

    /// Takes the site's values of its settings, besides those that it has already; the last value of a setting counts.
    ///
    /// # Errors
    /// When it declares no such setting.
    pub fn configure(&mut self, values: Vec<(String, String)>) -> Result<(), UnknownSetting> {
        for (setting, _) in &values {
            let declared = self.description.settings.iter().map(|declared| declared.name.as_str());
            if !declared.clone().any(|declared| declared == setting) {
                return Err(UnknownSetting {
                    plugin: self.name().to_owned(),
                    setting: setting.clone(),
                    hint: match self.description.settings.is_empty() {
                        true => "it has no settings".to_owned(),
                        false => did_you_mean(setting, declared),
                    },
                });
            }
        }
        self.configured.extend(values);
        Ok(())
    }

    /// The values that it is called with: those of `own` where given, else the site's, else its own defaults. Only settings that it
    /// declares are handed over.
    pub fn settings(&self, own: &[(String, String)]) -> Vec<(String, String)> {
        let value = |name: &str| {
            let given = own.iter().rev().chain(self.configured.iter().rev());
            given
                .clone()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        let declared = self.description.settings.iter();
        declared
            .filter_map(|setting| {
                Some((
                    setting.name.clone(),
                    value(&setting.name).or_else(|| setting.default.clone())?,
                ))
            })
            .collect()
    }
}

/// Receives what plugins log: the plugin's name, the level, the message (any text; not fit for a terminal as it is).
pub type LogSink = Box<dyn Fn(&str, Level, &str) + Send + Sync>;

/// Loads and calls plugins.
pub struct PluginHost {
    engine: Engine,
    cache: Cache,
    limits: Limits,
    log: LogSink,
    naming: Linker<State>,
    interpreter: Linker<State>,
}

impl PluginHost {
    /// A host with an engine of its own.
    ///
    /// # Errors
    /// When the engine or its clock cannot be started on this machine.
    pub fn new(cache: Cache, limits: Limits, log: LogSink) -> Result<Self> {
        let engine = engine().context("the WebAssembly engine does not start")?;
        let mut naming = Linker::new(&engine);
        TraceNaming::add_to_linker::<State, HasSelf<State>>(&mut naming, |state| state)?;
        let mut interpreter = Linker::new(&engine);
        DynoInterpreter::add_to_linker::<State, HasSelf<State>>(&mut interpreter, |state| state)?;
        Ok(PluginHost {
            engine,
            cache,
            limits,
            log,
            naming,
            interpreter,
        })
    }

    /// Loads `wasm`, a component or a core module made by wit-bindgen, as a plugin of world `wanted` (any, if none).
    ///
    /// # Errors
    /// [`Refusal`] when it is no plugin that fits; [`CallError`] when it cannot say who it is.
    pub fn load(&self, origin: Origin, wasm: &[u8], wanted: Option<World>) -> Result<Plugin> {
        let (component, from_cache) = self.compile(wasm)?;
        let shape = Shape::of(&self.engine, &component);
        let world = shape.world()?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != world) {
            return Err(Refusal::OtherWorld { found: world, wanted }.into());
        }
        let mismatch = |error: wasmtime::Error| mismatch(&shape, &error);
        let linked = match world {
            World::TraceNaming => Linked::TraceNaming(
                self.linker(&self.naming, &shape)?
                    .instantiate_pre(&component)
                    .and_then(TraceNamingPre::new)
                    .map_err(mismatch)?,
            ),
            World::DynoInterpreter => Linked::DynoInterpreter(
                self.linker(&self.interpreter, &shape)?
                    .instantiate_pre(&component)
                    .and_then(DynoInterpreterPre::new)
                    .map_err(mismatch)?,
            ),
        };
        let description = self.describe(&origin, &linked)?;
        Ok(Plugin {
            description,
            world,
            origin,
            sha256: hex(&Sha256::digest(wasm)),
            size: wasm.len(),
            from_cache,
            imports: shape.imports,
            exports: shape.exports,
            configured: Vec::new(),
            spent: Spent::default(),
            linked,
        })
    }

    /// `linker`, with WASI where the component imports it: the others pay nothing for it.
    fn linker<'a>(&self, linker: &'a Linker<State>, shape: &Shape) -> Result<Cow<'a, Linker<State>>> {
        if !shape.imports.iter().any(|import| wasi::is_wasi(import)) {
            return Ok(Cow::Borrowed(linker));
        }
        let mut linker = linker.clone();
        wasi::add_to_linker(&mut linker)?;
        Ok(Cow::Owned(linker))
    }

    /// Native code for `wasm`: from the cache where it is whole, else made and stored there.
    fn compile(&self, wasm: &[u8]) -> Result<(Component, bool)> {
        let key = Cache::key(&self.engine, wasm);
        if let Some(code) = self.cache.get(&key) {
            // SAFETY: the cache gives out only what this program wrote for this engine, checked by digest, from a folder that
            // nobody else can write to.
            if let Ok(component) = unsafe { Component::deserialize(&self.engine, &code) } {
                return Ok((component, true));
            }
        }
        let component = componentize(wasm)?;
        let code = self
            .engine
            .precompile_component(&component)
            .map_err(|e| Refusal::Compile(e.root_cause().to_string()))?;
        self.cache.put(&key, &code);
        // SAFETY: the code was made by this engine a moment ago.
        let component = unsafe { Component::deserialize(&self.engine, &code) }?;
        Ok((component, false))
    }

    fn describe(&self, origin: &Origin, linked: &Linked) -> Result<Description, CallError> {
        let name = match origin {
            Origin::BuiltIn => "(built in)".to_owned(),
            Origin::File(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let (spent, no_contents) = (Spent::default(), || Arc::new(NoContents));
        let description = match linked {
            Linked::TraceNaming(guest) => {
                self.call(&name, "describe", &spent, guest, no_contents(), |exports, store| {
                    exports.tracemend_plugin_naming().call_describe(store)
                })
            }
            Linked::DynoInterpreter(guest) => {
                self.call(&name, "describe", &spent, guest, no_contents(), |exports, store| {
                    exports.tracemend_plugin_interpreter().call_describe(store)
                })
            }
        }?;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if description.name.is_empty() || description.name.len() > 64 || !description.name.chars().all(plain) {
            let reason = format!(
                "its name is {:?}; a name has 1 to 64 lower-case letters, digits and dashes",
                description.name.chars().take(80).collect::<String>()
            );
            return Err(CallError {
                plugin: name,
                export: "describe",
                reason: Reason::Nonsense(reason),
            });
        }
        Ok(description)
    }

    /// The labels that `plugin` gives to `traces`, one each, in order. `contents` serves the same traces.
    ///
    /// # Errors
    /// When the plugin traps, exceeds a limit, gives up, or answers with a list of another length.
    pub fn label(
        &self,
        plugin: &Plugin,
        traces: &[Trace],
        settings: &[(String, String)],
        contents: Arc<dyn Contents>,
    ) -> Result<Vec<Label>, CallError> {
        let fail = |reason| CallError {
            plugin: plugin.name().to_owned(),
            export: "label-all",
            reason,
        };
        let Linked::TraceNaming(guest) = &plugin.linked else {
            return Err(fail(Reason::Nonsense(format!(
                "a {} plugin labels no traces",
                plugin.world
            ))));
        };
        let settings = plugin.settings(settings);
        let labels = self.call(
            plugin.name(),
            "label-all",
            &plugin.spent,
            guest,
            contents,
            |exports, store| {
                exports
                    .tracemend_plugin_naming()
                    .call_label_all(store, traces, &settings)
            },
        )?;
        let labels = labels.map_err(|message| fail(Reason::GaveUp(message)))?;
        if labels.len() != traces.len() {
            return Err(fail(Reason::Nonsense(format!(
                "{} labels for {} traces",
                labels.len(),
                traces.len()
            ))));
        }
        Ok(labels)
    }

    /// What `plugin` makes of one call of `dyno`.
    ///
    /// # Errors
    /// When the plugin traps, exceeds a limit or gives up.
    pub fn interpret(&self, plugin: &Plugin, dyno: &Call, settings: &[(String, String)]) -> Result<Answer, CallError> {
        let fail = |reason| CallError {
            plugin: plugin.name().to_owned(),
            export: "interpret",
            reason,
        };
        let Linked::DynoInterpreter(guest) = &plugin.linked else {
            return Err(fail(Reason::Nonsense(format!(
                "a {} plugin interprets no calls",
                plugin.world
            ))));
        };
        let settings = plugin.settings(settings);
        let answer = self.call(
            plugin.name(),
            "interpret",
            &plugin.spent,
            guest,
            Arc::new(NoContents),
            |exports, store| {
                exports
                    .tracemend_plugin_interpreter()
                    .call_interpret(store, dyno, &settings)
            },
        )?;
        answer.map_err(|message| fail(Reason::GaveUp(message)))
    }

    fn call<G: Guest, T>(
        &self,
        plugin: &str,
        export: &'static str,
        spent: &Spent,
        guest: &G,
        contents: Arc<dyn Contents>,
        run: impl FnOnce(&G::Exports, &mut wasmtime::Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let (result, messages) = call(&self.engine, &self.limits, spent, guest, contents, run);
        for (level, message) in messages {
            (self.log)(plugin, level, &message);
        }
        result.map_err(|reason| CallError {
            plugin: plugin.to_owned(),
            export,
            reason,
        })
    }
}
