//! The daemon's protocol: a 32-bit length in native order, JSON, and the same back; one request a connection (facts/dynolog.md
//! section 4).
//!
//! A peer that closes in the ordinary way before it has read the reply kills dynolog by SIGPIPE; one that resets does not. So every
//! connection is set to reset on close from the start, and to close in order only once the reply is in: whatever ends this process
//! in between, Ctrl-C or SIGKILL, the daemon lives.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;

use super::dyno::LAST_CHANCE;
use crate::plugins::Call;

/// The port that dynolog listens on.
const DEFAULT_PORT: u16 = 1778;
/// Longer is no reply of dynolog.
const LONGEST_REPLY: usize = 64 << 20;
/// A connection that is not taken within this time is not to be had.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A daemon's host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or address, an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Address {
    /// Reads `HOST`, `HOST:PORT`, `[IPV6]`, `[IPV6]:PORT` or a bare IPv6 address.
    ///
    /// # Errors
    /// In one sentence.
    pub fn parse(text: &str, default_port: u16) -> Result<Address, String> {
        let bad = || format!("{text:?} is no host: NAME, NAME:PORT, or [IPV6]:PORT is wanted");
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, port) = rest.split_once(']').ok_or_else(bad)?;
            (
                host,
                if port.is_empty() {
                    None
                } else {
                    Some(port.strip_prefix(':').ok_or_else(bad)?)
                },
            )
        } else if text.matches(':').count() == 1 {
            let (host, port) = text.split_once(':').ok_or_else(bad)?;
            (host, Some(port))
        } else {
            (text, None)
        };
        let known = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
        if host.is_empty() || host.starts_with('-') || !host.chars().all(known) {
            return Err(bad());
        }
        let port = match port {
            None => default_port,
            Some(port) => port.parse().ok().filter(|&port| port > 0).ok_or_else(bad)?,
        };
        Ok(Address {
            host: host.to_owned(),
            port,
        })
    }

    /// Whether it is this machine.
    pub fn is_local(&self) -> bool {
        let own = super::process::host_name();
        let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
        matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1" | "0.0.0.0" | "::")
            || self.host == own
            || (self.host.parse::<std::net::IpAddr>().is_err() && short(&self.host) == short(&own))
    }
}

impl Default for Address {
    fn default() -> Self {
        Address {
            host: "localhost".into(),
            port: DEFAULT_PORT,
        }
    }
}

/// One exchange, in the form that the interpreter `dynolog-rpc` takes.
pub fn call(
    address: &Address,
    request: &str,
    timeout: Duration,
    attempt: u32,
    unwanted: &(dyn Fn() -> bool + Sync),
) -> Call {
    let mut received = Vec::new();
    let ended = exchange(address, request, timeout, unwanted, &mut received);
    let (exit_code, timed_out, words) = match ended {
        Ok(()) => (Some(0), false, String::new()),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            (None, true, String::new())
        }
        Err(error) => (None, false, format!("{}:{}: {error}", address.host, address.port)),
    };
    Call {
        exit_code,
        signal: None,
        timed_out,
        stdout: received,
        stderr: words.into_bytes(),
        attempt,
    }
}

fn connect(address: &Address) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for socket in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&socket, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            // Nothing was sent: unlike a silent daemon, this can be asked again.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                last = io::Error::other("no connection within 10 s");
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(
    address: &Address,
    request: &str,
    timeout: Duration,
    unwanted: &dyn Fn() -> bool,
    received: &mut Vec<u8>,
) -> io::Result<()> {
    let mut deadline = Instant::now() + timeout;
    let mut was_unwanted = false;
    let mut stream = connect(address)?;
    set_socket_linger(&stream, Some(Duration::ZERO))?;
    let length = i32::try_from(request.len()).map_err(io::Error::other)?;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(request.as_bytes());
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(&message)?;
    while received.len() < whole_length(received) {
        if !was_unwanted && unwanted() {
            was_unwanted = true;
            deadline = deadline.min(Instant::now() + LAST_CHANCE);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left.min(Duration::from_millis(100))))?;
        let mut buffer = [0; 8192];
        let wanted = (whole_length(received) - received.len()).min(buffer.len());
        match stream.read(&mut buffer[..wanted]) {
            Ok(0) => {
                return Err(io::Error::other(
                    "the daemon closed the connection without a whole reply",
                ));
            }
            Ok(count) => received.extend(&buffer[..count]),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    set_socket_linger(&stream, None)?;
    Ok(())
}

/// How many bytes make the reply, its length included, as far as can be told from its first bytes; 4 if its length is none.
fn whole_length(received: &[u8]) -> usize {
    let Some(length) = received.first_chunk::<4>() else {
        return 4;
    };
    match usize::try_from(i32::from_ne_bytes(*length)) {
        Ok(length) if length <= LONGEST_REPLY => length + 4,
        _ => 4,
    }
}

/// Whether a dynolog daemon answers here: it has to say its status.
pub fn has_status(address: &Address, timeout: Duration) -> bool {
    let mut received = Vec::new();
    exchange(address, r#"{"fn":"getStatus"}"#, timeout, &|| false, &mut received).is_ok()
        && received
            .get(4..)
            .and_then(|body| serde_json::from_slice::<Value>(body).ok())
            .is_some_and(|reply| reply.get("status").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_as_people_write_them() {
        let address = |host: &str, port| {
            Ok(Address {
                host: host.into(),
                port,
            })
        };
        assert_eq!(Address::parse("n01", 1), address("n01", 1));
        assert_eq!(Address::parse("n01.x:99", 1), address("n01.x", 99));
        assert_eq!(Address::parse("::1", 1), address("::1", 1));
        assert_eq!(Address::parse("[fe80::2]:99", 1), address("fe80::2", 99));
        assert_eq!(Address::parse("[fe80::2]", 1), address("fe80::2", 1));
        for bad in [
            "",
            "n01:",
            "n01:0",
            "n01:70000",
            "n01:x",
            "[::1",
            "[::1]9",
            "-h",
            "a b",
            "a/b",
        ] {
            assert!(Address::parse(bad, 1).is_err(), "{bad}");
        }
    }
}
