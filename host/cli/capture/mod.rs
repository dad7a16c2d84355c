//! `tracemend capture`

mod hosts;
mod options;
mod report;
mod run;
mod start;
mod stop;
mod trigger;
mod wait;

use anyhow::Result;
use clap::Subcommand;

use super::{Global, Outcome};

#[derive(Debug, Subcommand)]
#[command(args_override_self = true)]
pub enum CaptureCommand {
    /// Start the dynolog daemon, and arm a trigger in the background
    Start(start::Start),
    /// Ask for a capture until it is accepted, and note whose trace will be whose
    Trigger(trigger::TriggerCommand),
    /// Wait for the traces of the newest capture, and gather them
    Wait(wait::Wait),
    /// End what `start` started, and say what was captured
    Stop(stop::Stop),
    /// All of it around one command, whose exit code is the exit code
    Run(run::Run),
}

impl CaptureCommand {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        match self {
            CaptureCommand::Start(command) => command.run(global),
            CaptureCommand::Trigger(command) => command.run(global),
            CaptureCommand::Wait(command) => command.run(global),
            CaptureCommand::Stop(command) => command.run(global),
            CaptureCommand::Run(command) => command.run(global),
        }
    }

    /// `run` passes signals on to its command instead of ending by them.
    pub(super) fn handles_signals(&self) -> bool {
        matches!(self, CaptureCommand::Run(_))
    }
}
