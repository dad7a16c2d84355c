//! From the text of `tracemend.toml` to clusters, with everything that is wrong in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::choose::pattern_of;
use super::section::{Section, Value, kind, line_of};
use super::{Cluster, Configuration, Problem};
use crate::nearest::did_you_mean;
use crate::plugins::{BUILT_IN, Limits, Order, Place, Wanted};

/// Paths of the file are relative to the folder that it lies in.
pub(super) fn read(path: &Path, text: &str) -> Configuration {
    let mut configuration = Configuration {
        path: path.to_owned(),
        clusters: Vec::new(),
        limits: Limits::default(),
        problems: Vec::new(),
    };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            configuration.problems.push(Problem {
                line: error.span().map_or(1, |span| line_of(text, span.start)),
                text: format!("it is no TOML: {}", error.message()),
            });
            return configuration;
        }
    };
    let base = path.parent().unwrap_or(Path::new(""));
    let mut top = Section::new(String::new(), text, document.get_ref());
    let folders = folders(&mut top, base);
    if let Some(section) = top.section("limits") {
        top.problems.extend(limits(section, &mut configuration.limits));
    }
    for (name, place, value) in top.entries("cluster") {
        if name.is_empty() || name.chars().any(char::is_control) {
            top.problem(place, "a cluster's name is empty or holds control characters".into());
        }
        if let Some(section) = top.below("cluster", name, value) {
            let reader = ClusterReader {
                base,
                folders: &folders,
                name,
                limits: &configuration.limits,
            };
            configuration.clusters.push(reader.read(section));
        }
    }
    configuration.problems = in_order(top.close());
    configuration
}

fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by_key(|problem| problem.line);
    problems
}

fn folders(section: &mut Section, base: &Path) -> Vec<PathBuf> {
    let folders = section.texts("plugin-folders").unwrap_or_default();
    folders.into_iter().map(|(folder, _)| base.join(folder)).collect()
}

/// Seconds and MiB: no one writes longer or larger than a day and 4 GiB, the most that a component can hold.
fn limits(mut section: Section, limits: &mut Limits) -> Vec<Problem> {
    const DAY: f64 = 86_400.0;
    let mut seconds = |key, limit: &mut Duration| {
        if let Some(number) = section.number(key, 0.001, DAY) {
            *limit = Duration::from_secs_f64(number);
        }
    };
    seconds("call-seconds", &mut limits.time);
    seconds("run-seconds", &mut limits.run_time);
    seconds("host-seconds", &mut limits.host_time);
    let mut mib = |key, limit: &mut usize| {
        if let Some(number) = section.number(key, 1.0, 4096.0) {
            *limit = (number * f64::from(1 << 20)) as usize;
        }
    };
    mib("memory-mib", &mut limits.memory);
    mib("result-mib", &mut limits.result);
    section.close()
}

struct ClusterReader<'a> {
    base: &'a Path,
    folders: &'a [PathBuf],
    name: &'a str,
    limits: &'a Limits,
}

/// A plugin as `[cluster.NAME.plugins.PLUGIN]` has it.
struct Entry {
    place: usize,
    path: Option<PathBuf>,
    sha256: Option<String>,
    settings: Vec<(String, String)>,
    used: bool,
}

impl ClusterReader<'_> {
    fn read(&self, mut section: Section) -> Cluster {
        let mut hosts = Vec::new();
        for (pattern, place) in section.texts("hosts").unwrap_or_default() {
            if let Err(error) = pattern_of(pattern) {
                section.problem(
                    place,
                    format!("{pattern} is no pattern of host names: {}", error.kind()),
                );
            }
            hosts.push(pattern.to_owned());
        }
        let mut folders = folders(&mut section, self.base);
        folders.extend_from_slice(self.folders);
        let mut limits = self.limits.clone();
        if let Some(below) = section.section("limits") {
            section.problems.extend(self::limits(below, &mut limits));
        }

        let mut entries = BTreeMap::new();
        for (name, place, value) in section.entries("plugins") {
            if let Some(below) = section.below("plugins", name, value) {
                let (entry, problems) = self.entry(below, place);
                section.problems.extend(problems);
                entries.insert(name, entry);
            }
        }
        let mut order = Order::default();
        let mut resolve = |section: &mut Section, name: &str, place: usize| {
            let wanted = resolve(name, &mut entries, &folders);
            if let Err(text) = &wanted {
                section.problem(place, text.clone());
            }
            wanted.ok()
        };
        if let Some(names) = section.texts("naming") {
            let mut naming: Vec<Wanted> = Vec::new();
            for (name, place) in names {
                if naming.iter().any(|earlier| earlier.name() == name) {
                    section.problem(place, format!("naming has {name} twice"));
                } else {
                    naming.extend(resolve(&mut section, name, place));
                }
            }
            order.naming = naming;
        } else {
            // The built-in order, with the cluster's word on each.
            let names: Vec<String> = order.naming.iter().map(|wanted| wanted.name().into_owned()).collect();
            order.naming = names.iter().filter_map(|name| resolve(&mut section, name, 0)).collect();
        }
        let default = order.interpreter.name().into_owned();
        let (name, place) = section.text("interpreter").unwrap_or((&default, 0));
        order.interpreter = resolve(&mut section, name, place).unwrap_or(order.interpreter);
        for wanted in [&mut order.by_elimination, &mut order.rpc_interpreter] {
            let name = wanted.name().into_owned();
            if let Some(own) = resolve(&mut section, &name, 0) {
                *wanted = own;
            }
        }

        for (name, entry) in &entries {
            if !entry.used {
                let known = BUILT_IN.iter().map(|(name, _)| *name);
                let named = order
                    .naming
                    .iter()
                    .map(|wanted| wanted.name().into_owned())
                    .collect::<Vec<_>>();
                let hint = did_you_mean(name, named.iter().map(String::as_str).chain(known));
                section.problem(
                    entry.place,
                    format!(
                        "cluster.{}.plugins.{name} is neither in naming nor the interpreter; {hint}",
                        self.name
                    ),
                );
            }
        }
        Cluster {
            name: self.name.to_owned(),
            hosts,
            order,
            limits,
            problems: in_order(section.close()),
        }
    }

    fn entry(&self, mut section: Section, place: usize) -> (Entry, Vec<Problem>) {
        let path = section.text("path").map(|(path, _)| self.base.join(path));
        let sha256 = section.text("sha256").and_then(|(digits, place)| {
            let digits = digits.to_ascii_lowercase();
            if digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Some(digits);
            }
            section.problem(
                place,
                "a sha256 has 64 hexadecimal digits, as `tracemend plugin inspect` and sha256sum print them".into(),
            );
            None
        });
        let mut settings = Vec::new();
        for (name, place, value) in section.entries("settings") {
            match text_of(value) {
                Some(text) => settings.push((name.to_owned(), text)),
                None => section.problem(
                    place,
                    format!(
                        "setting {name} is {}, and a text, a number, true or false is wanted",
                        kind(value)
                    ),
                ),
            }
        }
        let entry = Entry {
            place,
            path,
            sha256,
            settings,
            used: false,
        };
        (entry, section.close())
    }
}

/// A setting's value as plugins get it: always text.
fn text_of(value: &Value) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|n| n.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// Where plugin `name` of a cluster comes from: its entry's path, else this binary, else a plugin folder.
fn resolve(name: &str, entries: &mut BTreeMap<&str, Entry>, folders: &[PathBuf]) -> Result<Wanted, String> {
    let entry = entries.get_mut(name).map(|entry| {
        entry.used = true;
        &*entry
    });
    let in_folder = || {
        // A name is no path: it must not lead out of the folder.
        let plain = !name.is_empty() && !name.contains(['/', '\\', '\0']);
        let mut files = folders.iter().map(|folder| folder.join(format!("{name}.wasm")));
        plain.then(|| files.find(|file| file.is_file())).flatten()
    };
    let place = match entry.and_then(|entry| entry.path.clone()) {
        Some(path) => Place::File(path),
        None if BUILT_IN.iter().any(|(built_in, _)| *built_in == name) => Place::BuiltIn(name.to_owned()),
        None => match in_folder() {
            Some(path) => Place::File(path),
            None => {
                let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
                let known = known
                    .into_iter()
                    .chain(entries.keys().copied().filter(|known| *known != name));
                return Err(format!(
                    "there is no plugin {name}: it is not built in, has no path, and no plugin folder holds {name}.wasm; {}",
                    did_you_mean(name, known)
                ));
            }
        },
    };
    let entry = entries.get(name);
    Ok(Wanted {
        place,
        name: Some(name.to_owned()),
        sha256: entry.and_then(|entry| entry.sha256.clone()),
        settings: entry.map(|entry| entry.settings.clone()).unwrap_or_default(),
    })
}
