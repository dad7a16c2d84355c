//! `tracemend plugin`

mod build;
mod check;
mod new;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

use super::site::Site;
use super::text::printable;
use super::{Global, Outcome, Policies};
use crate::plugins::{BUILT_IN, Origin, Plugin, PluginHost, built_in, from_file};

#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// List the plugins that a run would use, in the order in which they are asked
    List {
        #[command(flatten)]
        policies: Policies,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Say what a plugin is: its world, description, imports and exports
    Inspect {
        /// A plugin's file, or the name of a built-in plugin
        #[arg(value_name = "FILE.wasm|NAME")]
        plugin: PathBuf,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Try a plugin: on cases that say what it should answer, and on what every plugin must survive
    Check(check::Check),
    /// Make a folder to start a plugin from, in Rust, Python, JavaScript or C
    New(new::New),
    /// Build the plugin in a folder with its language's own tool
    Build(build::Build),
}

#[derive(Serialize)]
struct Card<'a> {
    name: &'a str,
    version: &'a str,
    summary: &'a str,
    world: &'static str,
    origin: String,
    size: usize,
    sha256: &'a str,
    cached: bool,
    settings: Vec<Setting<'a>>,
    imports: &'a [String],
    exports: &'a [String],
}

#[derive(Serialize)]
struct Setting<'a> {
    name: &'a str,
    help: &'a str,
    default: Option<&'a str>,
}

#[derive(Serialize)]
struct Refused {
    path: String,
    reason: String,
}

#[derive(Serialize)]
struct Listing<'a> {
    plugins: Vec<Card<'a>>,
    refused: Vec<Refused>,
}

impl<'a> Card<'a> {
    fn of(plugin: &'a Plugin) -> Self {
        let description = &plugin.description;
        let settings = description.settings.iter();
        Card {
            name: &description.name,
            version: &description.version,
            summary: &description.summary,
            world: plugin.world.as_str(),
            origin: match &plugin.origin {
                Origin::BuiltIn => "built in".to_owned(),
                Origin::File(path) => path.to_string_lossy().into_owned(),
            },
            size: plugin.size,
            sha256: &plugin.sha256,
            cached: plugin.from_cache,
            settings: settings
                .map(|s| Setting {
                    name: &s.name,
                    help: &s.help,
                    default: s.default.as_deref(),
                })
                .collect(),
            imports: &plugin.imports,
            exports: &plugin.exports,
        }
    }
}

impl PluginCommand {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        match self {
            PluginCommand::List { policies, json } => list(&global.site()?, &policies, json),
            PluginCommand::Inspect { plugin, json } => inspect(&global.plugin_host()?, &plugin, json),
            PluginCommand::Check(check) => check.run(global),
            PluginCommand::New(new) => new.run(global),
            PluginCommand::Build(build) => build.run(global),
        }
    }
}

fn list(site: &Site, policies: &Policies, json: bool) -> Result<Outcome> {
    let mut registry = site.naming(policies)?;
    match site.interpreter(None) {
        Ok(interpreter) => registry.plugins.push(interpreter),
        Err(error) => registry.refused.push((PathBuf::from("interpreter"), error)),
    }
    let plugins: Vec<Card> = registry.plugins.iter().map(Card::of).collect();
    let refused = registry.refused.iter().map(|(path, error)| Refused {
        path: path.to_string_lossy().into_owned(),
        reason: super::one_line(&format!("{error:#}")),
    });
    let listing = Listing {
        plugins,
        refused: refused.collect(),
    };
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &listing)?;
        writeln!(out)?;
    } else {
        let mut table = Table::new();
        table
            .load_style(comfy_table::presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["world", "plugin", "version", "from", "what it knows"]);
        for card in &listing.plugins {
            let row = [card.world, card.name, card.version, &card.origin, card.summary];
            table.add_row(row.map(printable));
        }
        writeln!(out, "{}", table.trim_fmt())?;
        for refused in &listing.refused {
            writeln!(out, "refused: {}: {}", printable(&refused.path), refused.reason)?;
        }
    }
    Ok(Outcome::bad_news_if(!listing.refused.is_empty()))
}

/// What a command's PLUGIN argument names.
enum Found {
    Plugin(Box<Plugin>),
    /// A file that is no plugin; why was said on standard error.
    Refused,
}

/// The plugin that `named` names: a built-in one, or a file. A file that is not there is a question that cannot be asked; one that is no
/// plugin is the answer.
fn find(host: &PluginHost, named: &Path) -> Result<Found> {
    let built_in_name = named
        .to_str()
        .filter(|name| BUILT_IN.iter().any(|(built_in, _)| built_in == name));
    if let Some(name) = built_in_name {
        return Ok(Found::Plugin(Box::new(built_in(host, name)?)));
    }
    std::fs::metadata(named).with_context(|| format!("cannot read {}", named.display()))?;
    match from_file(host, named, None) {
        Ok(plugin) => Ok(Found::Plugin(Box::new(plugin))),
        Err(error) => {
            let shown = printable(&named.to_string_lossy());
            eprintln!("tracemend: plugin {shown}: {}", super::one_line(&format!("{error:#}")));
            Ok(Found::Refused)
        }
    }
}

fn inspect(host: &PluginHost, plugin: &Path, json: bool) -> Result<Outcome> {
    let Found::Plugin(loaded) = find(host, plugin)? else {
        return Ok(Outcome::BadNews);
    };
    let card = Card::of(&loaded);
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &card)?;
        writeln!(out)?;
        return Ok(Outcome::Done);
    }
    writeln!(out, "{} {} ({})", card.name, printable(card.version), card.world)?;
    writeln!(out, "{}", printable(card.summary))?;
    writeln!(
        out,
        "from      {}, {} bytes, {}",
        printable(&card.origin),
        card.size,
        cached(card.cached)
    )?;
    writeln!(out, "sha256    {}", card.sha256)?;
    for (title, names) in [("imports", card.imports), ("exports", card.exports)] {
        writeln!(out, "{title:9} {}", printable(&names.join(", ")))?;
    }
    for setting in &card.settings {
        let default = setting
            .default
            .map(|value| format!(" (default {value})"))
            .unwrap_or_default();
        writeln!(
            out,
            "setting   {}{}: {}",
            printable(setting.name),
            printable(&default),
            printable(setting.help)
        )?;
    }
    Ok(Outcome::Done)
}

/// The names of a plugin's imports, for people.
fn imports(plugin: &Plugin) -> String {
    match plugin.imports.is_empty() {
        true => "nothing".to_owned(),
        false => plugin.imports.join(", "),
    }
}

fn cached(cached: bool) -> &'static str {
    if cached {
        "native code from the cache"
    } else {
        "compiled just now"
    }
}
