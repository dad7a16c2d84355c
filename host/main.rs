//! The command line: parse, dispatch, exit code.

use std::process::ExitCode;

use clap::Parser;
use tracemend::cli::{Cli, run};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            eprintln!("tracemend: {}", tracemend::cli::one_line(&format!("{error:#}")));
            ExitCode::from(2)
        }
    }
}
