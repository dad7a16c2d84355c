//! `tracemend plugin new`

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::super::{Global, Outcome};
use crate::plugins::World;
use crate::plugins::authoring::build::Project;
use crate::plugins::authoring::{Lang, scaffold};

#[derive(Debug, Args)]
pub struct New {
    /// The plugin's name: lower-case letters, digits and dashes. The folder is called so, too
    name: String,
    /// What it answers: whose trace is this, or what did dyno's answer mean
    #[arg(long, value_parser = PossibleValuesParser::new([World::TraceNaming.as_str(), World::DynoInterpreter.as_str()]).map(world))]
    world: World,
    /// The language to write it in
    #[arg(long, value_parser = PossibleValuesParser::new(Lang::ALL.map(Lang::as_str)).try_map(|name| name.parse::<Lang>()))]
    lang: Lang,
}

fn world(name: String) -> World {
    match name == World::TraceNaming.as_str() {
        true => World::TraceNaming,
        false => World::DynoInterpreter,
    }
}

impl New {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let New { name, world, lang } = self;
        scaffold::create(Path::new("."), &name, world, lang)?;
        let project = Project {
            lang,
            world: Some(world),
        };
        for missing in project.missing(Path::new(&name), toolchain::TARGET) {
            eprintln!("tracemend: to build it: {missing}");
        }
        if global.quiet {
            return Ok(Outcome::Done);
        }
        let mut out = io::stdout().lock();
        let cases = scaffold::cases_file(world);
        writeln!(
            out,
            "{name}: a {world} plugin in {lang}; the policy is in {}",
            lang.source()
        )?;
        writeln!(out, "  cd {name}")?;
        writeln!(out, "  tracemend plugin build .")?;
        writeln!(out, "  tracemend plugin check {name}.wasm --cases {cases}")?;
        Ok(Outcome::Done)
    }
}
