//! `tracemend clusters`

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::site::cluster_variable;
use super::text::{one_line, printable};
use super::{Global, Outcome};
use crate::config::{Cluster, Configuration, Looked, Problem, find, host_name, places};
use crate::plugins::{Limits, NoContents, Place, Plugin, PluginHost, Wanted, World};

#[derive(Debug, Args)]
pub struct Clusters {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document {
    config: Option<String>,
    looked_at: Vec<Looked>,
    host: String,
    chosen: Option<String>,
    why: String,
    problems: Vec<String>,
    /// Whether something in the file makes no sense, so that no run starts with it.
    refuses_runs: bool,
    clusters: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    hosts: Vec<String>,
    chosen: bool,
    naming: Vec<ShownPlugin>,
    interpreter: ShownPlugin,
    limits: ShownLimits,
    problems: Vec<String>,
}

#[derive(Serialize)]
struct ShownPlugin {
    name: String,
    from: String,
    /// Whether its SHA-256 is pinned.
    pinned: bool,
    /// Of a plugin that can be used.
    sha256: Option<String>,
    settings: BTreeMap<String, ShownSetting>,
}

#[derive(Serialize)]
struct ShownSetting {
    value: Option<String>,
    /// Whether the cluster sets it.
    set: bool,
    default: Option<String>,
    help: String,
}

/// In the units of the configuration's keys.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownLimits {
    call_seconds: f64,
    run_seconds: f64,
    host_seconds: f64,
    memory_mib: usize,
    result_mib: usize,
}

impl Clusters {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let document = document(global)?;
        let mut out = BufWriter::new(io::stdout().lock());
        if self.json {
            serde_json::to_writer_pretty(&mut out, &document)?;
            writeln!(out)?;
        } else {
            show(&mut out, &document, global.verbose)?;
        }
        out.flush()?;
        let bad = document.clusters.iter().any(|cluster| !cluster.problems.is_empty());
        Ok(Outcome::bad_news_if(bad || !document.problems.is_empty()))
    }
}

fn document(global: &Global) -> Result<Document> {
    let looked_at = places(global.config.as_deref());
    let host = host_name();
    let mut document = Document {
        config: None,
        host,
        chosen: None,
        why: "there is no configuration: the built-in order".to_owned(),
        problems: Vec::new(),
        refuses_runs: false,
        clusters: Vec::new(),
        looked_at: Vec::new(),
    };
    let variable = cluster_variable()?;
    let found = find(&looked_at)?.map(|place| place.path.clone());
    document.looked_at = looked_at;
    let Some(path) = found else {
        let named = global.cluster.as_ref().or(variable.as_ref());
        document
            .problems
            .extend(named.map(|name| format!("there is no cluster {name}, since there is no configuration")));
        return Ok(document);
    };
    document.config = Some(path.to_string_lossy().into_owned());
    let configuration = Configuration::read(&path)?;
    document.problems = configuration.problems.iter().map(in_line).collect();
    match configuration.choose(global.cluster.as_deref(), variable.as_deref(), &document.host) {
        Ok(choice) => {
            document.chosen = choice.cluster.map(|cluster| cluster.name.clone());
            document.why = match choice.cluster {
                Some(_) => choice.why,
                None => format!("{}: the built-in order", choice.why),
            };
        }
        Err(error) => {
            document.why = "none can be chosen".to_owned();
            document.problems.push(one_line(&format!("{error:#}")));
        }
    }
    document.refuses_runs = configuration.check().is_err();
    for cluster in &configuration.clusters {
        let host = global.plugin_host_with(cluster.limits.clone())?;
        let chosen = document.chosen.as_ref() == Some(&cluster.name);
        document.clusters.push(shown(&host, cluster, chosen));
    }
    Ok(document)
}

fn in_line(problem: &Problem) -> String {
    format!("line {}: {}", problem.line, problem.text)
}

/// `cluster` with all its plugins loaded, so that whatever is wrong with one of them is found before a run.
fn shown(host: &PluginHost, cluster: &Cluster, chosen: bool) -> Shown {
    let mut problems: Vec<String> = cluster.problems.iter().map(in_line).collect();
    let mut plugin = |wanted: &Wanted, world| {
        let loaded = load(host, wanted, world);
        if let Err(error) = &loaded {
            let (plugin, error) = (format!("plugin {}", wanted.name()), one_line(&format!("{error:#}")));
            problems.push(match error.starts_with(&plugin) {
                true => error,
                false => format!("{plugin}: {error}"),
            });
        }
        shown_plugin(wanted, loaded.ok().as_ref())
    };
    let order = &cluster.order;
    Shown {
        name: cluster.name.clone(),
        hosts: cluster.hosts.clone(),
        chosen,
        naming: order
            .naming
            .iter()
            .map(|wanted| plugin(wanted, World::TraceNaming))
            .collect(),
        interpreter: plugin(&order.interpreter, World::DynoInterpreter),
        limits: shown_limits(&cluster.limits),
        problems,
    }
}

/// A naming policy is asked about no traces at all: that is when it looks at its settings and says what it cannot take.
fn load(host: &PluginHost, wanted: &Wanted, world: World) -> Result<Plugin> {
    let mut plugin = wanted.load(host, world)?;
    plugin.configure(wanted.settings.clone())?;
    if world == World::TraceNaming {
        host.label(&plugin, &[], &[], Arc::new(NoContents))?;
    }
    Ok(plugin)
}

fn shown_plugin(wanted: &Wanted, loaded: Option<&Plugin>) -> ShownPlugin {
    let mut settings = BTreeMap::new();
    if let Some(plugin) = loaded {
        let values: BTreeMap<String, String> = plugin.settings(&[]).into_iter().collect();
        for setting in &plugin.description.settings {
            let shown = ShownSetting {
                value: values.get(&setting.name).cloned(),
                set: wanted.settings.iter().any(|(name, _)| *name == setting.name),
                default: setting.default.clone(),
                help: setting.help.clone(),
            };
            settings.insert(setting.name.clone(), shown);
        }
    }
    ShownPlugin {
        name: wanted.name().into_owned(),
        from: match &wanted.place {
            Place::BuiltIn(_) => "built in".to_owned(),
            Place::File(file) => file.to_string_lossy().into_owned(),
        },
        pinned: wanted.sha256.is_some(),
        sha256: loaded.map(|plugin| plugin.sha256.clone()),
        settings,
    }
}

fn shown_limits(limits: &Limits) -> ShownLimits {
    ShownLimits {
        call_seconds: limits.time.as_secs_f64(),
        run_seconds: limits.run_time.as_secs_f64(),
        host_seconds: limits.host_time.as_secs_f64(),
        memory_mib: limits.memory >> 20,
        result_mib: limits.result >> 20,
    }
}

fn show(out: &mut dyn Write, document: &Document, verbose: bool) -> Result<()> {
    match &document.config {
        Some(config) => writeln!(out, "{}", printable(config))?,
        None => {
            for place in &document.looked_at {
                let path = place.path.to_string_lossy();
                writeln!(out, "no {} ({})", printable(&path), place.source.as_str())?;
            }
        }
    }
    let chosen = document.chosen.as_deref().unwrap_or("no cluster");
    writeln!(out, "chosen: {}: {}", printable(chosen), printable(&document.why))?;
    for problem in &document.problems {
        writeln!(out, "problem: {}", printable(problem))?;
    }
    for cluster in &document.clusters {
        let mark = if cluster.chosen { "*" } else { " " };
        let hosts = match cluster.hosts.as_slice() {
            [] => "by name only".to_owned(),
            hosts => hosts.join(", "),
        };
        writeln!(out, "\n{mark} {}", printable(&cluster.name))?;
        writeln!(out, "    hosts        {}", printable(&hosts))?;
        for (number, plugin) in cluster.naming.iter().enumerate() {
            let title = if number == 0 { "naming" } else { "" };
            show_plugin(out, title, plugin, verbose)?;
        }
        show_plugin(out, "interpreter", &cluster.interpreter, verbose)?;
        let limits = &cluster.limits;
        writeln!(
            out,
            "    limits       {} s a call, {} s a run, {} s of reading, {} MiB, {} MiB a result",
            limits.call_seconds, limits.run_seconds, limits.host_seconds, limits.memory_mib, limits.result_mib
        )?;
        for problem in &cluster.problems {
            writeln!(out, "    problem      {}", printable(problem))?;
        }
    }
    if document.refuses_runs {
        writeln!(
            out,
            "\nno run starts with this file before the problems with a line number are mended"
        )?;
    }
    Ok(())
}

/// A plugin with the settings that the cluster sets; all of them, with their help, where `verbose`.
fn show_plugin(out: &mut dyn Write, title: &str, plugin: &ShownPlugin, verbose: bool) -> Result<()> {
    let pinned = if plugin.pinned { ", pinned" } else { "" };
    let from = format!("({}{pinned})", plugin.from);
    writeln!(out, "    {title:12} {} {}", printable(&plugin.name), printable(&from))?;
    for (name, setting) in plugin.settings.iter().filter(|(_, setting)| setting.set || verbose) {
        let value = setting.value.as_deref().unwrap_or("(none)");
        let help = if verbose {
            format!("  {}", setting.help)
        } else {
            String::new()
        };
        writeln!(out, "      {:12} {}", "", printable(&format!("{name} = {value}{help}")))?;
    }
    Ok(())
}
