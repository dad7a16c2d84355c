//! The site that a command runs at: its cluster's plugins, settings and limits, with the command line's on top.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Global, Policies};
use crate::config::{Configuration, find, host_name, places};
use crate::nearest::did_you_mean;
use crate::plugins::{Order, Plugin, PluginHost, Registry, Wanted, World};

/// A host for plugins, and which of them are wanted.
pub(super) struct Site {
    pub(super) host: PluginHost,
    /// The cluster's name, if the configuration has one for this host.
    pub(super) cluster: Option<String>,
    /// The configuration, if there is one.
    pub(super) configuration: Option<PathBuf>,
    order: Order,
}

impl Global {
    /// The site of this host, or of `--cluster`.
    ///
    /// # Errors
    /// When the configuration cannot be read or has something in it that makes no sense.
    pub(super) fn site(&self) -> Result<Site> {
        let places = places(self.config.as_deref());
        let Some(place) = find(&places)? else {
            if let Some(name) = self.named_cluster()? {
                let looked: Vec<String> = places.iter().map(|place| place.path.display().to_string()).collect();
                bail!(
                    "there is no cluster {name}, since there is no configuration; looked for {}",
                    looked.join(", ")
                );
            }
            return Ok(Site {
                host: self.plugin_host()?,
                cluster: None,
                configuration: None,
                order: Order::default(),
            });
        };
        let configuration = Configuration::read(&place.path)?;
        configuration.check()?;
        let variable = cluster_variable()?;
        let choice = configuration.choose(self.cluster.as_deref(), variable.as_deref(), &host_name())?;
        let limits = choice.cluster.map_or(&configuration.limits, |cluster| &cluster.limits);
        Ok(Site {
            host: self.plugin_host_with(limits.clone())?,
            cluster: choice.cluster.map(|cluster| cluster.name.clone()),
            configuration: Some(place.path.clone()),
            order: choice.cluster.map(|cluster| cluster.order.clone()).unwrap_or_default(),
        })
    }

    fn named_cluster(&self) -> Result<Option<String>> {
        Ok(self.cluster.clone().or(cluster_variable()?))
    }
}

/// `$TRACEMEND_CLUSTER`, unless it is empty.
pub(super) fn cluster_variable() -> Result<Option<String>> {
    match env::var_os("TRACEMEND_CLUSTER").filter(|name| !name.is_empty()) {
        None => Ok(None),
        Some(name) => match name.into_string() {
            Ok(name) => Ok(Some(name)),
            Err(name) => bail!("TRACEMEND_CLUSTER is {name:?}, which is not UTF-8"),
        },
    }
}

impl Site {
    /// The naming policies of a run, with those that were refused.
    ///
    /// # Errors
    /// When a setting is none of its plugin's, in the configuration or on the command line.
    pub(super) fn naming(&self, policies: &Policies) -> Result<Registry> {
        let wanted = self.order.naming_with(&policies.plugins, policies.by_elimination);
        let mut registry = Registry::load(&self.host, &wanted, World::TraceNaming)?;
        for (plugin, setting, value) in &policies.settings {
            let names: Vec<String> = registry.plugins.iter().map(|known| known.name().to_owned()).collect();
            let Some(known) = registry.plugins.iter_mut().find(|known| known.name() == plugin) else {
                bail!(
                    "--set {plugin}.{setting}: there is no plugin {plugin} in this run; {}",
                    did_you_mean(plugin, names.iter().map(String::as_str))
                );
            };
            known
                .configure(vec![(setting.clone(), value.clone())])
                .with_context(|| format!("--set {plugin}.{setting}"))?;
        }
        Ok(registry)
    }

    /// The interpreter of dyno's answers: the one in `file`, else the cluster's.
    ///
    /// # Errors
    /// When it does not load, or a setting is none of its own.
    pub(super) fn interpreter(&self, file: Option<&Path>) -> Result<Plugin> {
        match file {
            Some(file) => self.load_interpreter(&Wanted::file(file)),
            None => self.load_interpreter(&self.order.interpreter),
        }
    }

    /// The interpreter of the daemon's own replies.
    ///
    /// # Errors
    /// As [`Site::interpreter`].
    pub(super) fn rpc_interpreter(&self) -> Result<Plugin> {
        self.load_interpreter(&self.order.rpc_interpreter)
    }

    fn load_interpreter(&self, wanted: &Wanted) -> Result<Plugin> {
        let shown = || match &wanted.place {
            crate::plugins::Place::File(file) => format!("plugin {}", file.display()),
            crate::plugins::Place::BuiltIn(name) => format!("plugin {name}"),
        };
        let mut plugin = wanted.load(&self.host, World::DynoInterpreter).with_context(shown)?;
        plugin.configure(wanted.settings.clone())?;
        Ok(plugin)
    }
}
