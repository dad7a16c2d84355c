//! Whom to ask, and by what means.

use std::time::Duration;

use super::dyno::Dyno;
use super::log_path::LogPath;
use super::request::Request;
use super::rpc::{self, Address};
use crate::plugins::Call;

/// How a daemon is asked.
#[derive(Debug, Clone)]
pub enum Transport {
    /// Through the dyno program.
    Dyno(Dyno),
    /// By the daemon's own protocol.
    Rpc,
}

/// One daemon.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: Address,
    /// How it is asked.
    pub transport: Transport,
    /// Where the processes of its host write.
    pub log_path: LogPath,
}

impl Target {
    /// One request; what came back is for an interpreter to judge. Once `unwanted`, it still has two seconds to be answered.
    pub fn ask(
        &self,
        request: &Request,
        timeout: Duration,
        attempt: u32,
        unwanted: &(dyn Fn() -> bool + Sync),
    ) -> Call {
        match &self.transport {
            Transport::Rpc => rpc::call(&self.address, &request.json(&self.log_path), timeout, attempt, unwanted),
            Transport::Dyno(dyno) => {
                let arguments = request.dyno_arguments(&self.log_path, |flag| dyno.has(flag));
                dyno.request(&self.address, &arguments, timeout, attempt, unwanted)
                    .unwrap_or_else(|error| Call {
                        exit_code: None,
                        signal: None,
                        timed_out: false,
                        stdout: Vec::new(),
                        stderr: format!("dyno cannot be started: {error}").into_bytes(),
                        attempt,
                    })
            }
        }
    }

    /// Asks the daemon itself, by its own protocol, which processes a request would match; the answer is `dynolog-rpc`'s to judge.
    pub fn census(
        &self,
        request: &Request,
        timeout: Duration,
        attempt: u32,
        unwanted: &(dyn Fn() -> bool + Sync),
    ) -> Call {
        rpc::call(&self.address, &request.census(), timeout, attempt, unwanted)
    }

    /// Whether it is asked by the daemon's own protocol.
    pub fn is_rpc(&self) -> bool {
        matches!(self.transport, Transport::Rpc)
    }

    /// Flags that the request wants and this dyno lacks.
    pub fn missing_flags(&self, request: &Request) -> Vec<&'static str> {
        match &self.transport {
            Transport::Rpc => Vec::new(),
            Transport::Dyno(dyno) => request
                .optional_flags()
                .into_iter()
                .filter(|flag| !dyno.has(flag))
                .collect(),
        }
    }
}
