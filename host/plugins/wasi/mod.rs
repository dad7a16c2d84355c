//! WASI with nothing in it, for guests whose toolchain imports it by default (Rust's wasm32-wasip2, componentize-py, jco).
//!
//! No files, environment, arguments or network; standard input is at its end, standard output and error become log messages;
//! clocks and random numbers are the same in every run. What stands in wasmtime-wasi is taken from there; clocks, waiting and
//! output are our own, since theirs are those of the machine.

mod output;
mod time;

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use wasmtime::component::{HasData, HasSelf, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random, sockets, sync};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};
use wasmtime_wasi::{Deterministic, WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_io::bindings::wasi::io::error;

use self::output::StandardStreams;
use self::time::{Clock, Clocks};
use super::imports::State;
use super::messages::Messages;

pub(super) use self::time::{Overslept, WaitsForever};

/// Every interface of WASI that is linked. Files and sockets are among them because toolchains import them unasked: opening
/// either fails in the guest, as on a machine without any.
const OFFERED: [&str; 27] = [
    "cli/environment",
    "cli/exit",
    "cli/stderr",
    "cli/stdin",
    "cli/stdout",
    "cli/terminal-input",
    "cli/terminal-output",
    "cli/terminal-stderr",
    "cli/terminal-stdin",
    "cli/terminal-stdout",
    "clocks/monotonic-clock",
    "clocks/wall-clock",
    "filesystem/preopens",
    "filesystem/types",
    "io/error",
    "io/poll",
    "io/streams",
    "random/insecure",
    "random/insecure-seed",
    "random/random",
    "sockets/instance-network",
    "sockets/ip-name-lookup",
    "sockets/network",
    "sockets/tcp",
    "sockets/tcp-create-socket",
    "sockets/udp",
    "sockets/udp-create-socket",
];
/// WASI's versions match by their track, as the contract's do.
const TRACK: &str = "0.2.";
/// Longest answer of `get-random-bytes`.
const MAX_RANDOM: u64 = 1 << 20;

/// Whether `import` is of WASI: `wasi:io/poll@0.2.6`.
pub(super) fn is_wasi(import: &str) -> bool {
    import.starts_with("wasi:")
}

/// Whether `import` is an interface of WASI that is linked here.
pub(super) fn is_offered(import: &str) -> bool {
    let name = import.strip_prefix("wasi:").and_then(|name| name.split_once('@'));
    name.is_some_and(|(interface, version)| version.starts_with(TRACK) && OFFERED.contains(&interface))
}

/// The WASI of one call.
pub(super) struct Wasi {
    table: ResourceTable,
    context: WasiCtx,
    clock: Clock,
    messages: Messages,
}

impl Wasi {
    /// `patience` is how long the guest may sleep in all.
    pub(super) fn new(patience: std::time::Duration, messages: Messages) -> Self {
        let numbers = || Deterministic::new(RANDOM.clone());
        let context = WasiCtx::builder()
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .secure_random(numbers())
            .insecure_random(numbers())
            .insecure_random_seed(0)
            .max_random_size(MAX_RANDOM)
            .build();
        Wasi {
            table: ResourceTable::new(),
            context,
            clock: Clock::new(patience),
            messages,
        }
    }
}

/// The numbers that every guest gets for random ones: SHA-256 of 0, 1, 2 ...
static RANDOM: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..128u32).flat_map(|i| Sha256::digest(i.to_le_bytes())).collect());

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi();
        WasiCtxView {
            ctx: &mut wasi.context,
            table: &mut wasi.table,
        }
    }
}

struct OwnClocks;

impl HasData for OwnClocks {
    type Data<'a> = Clocks<'a>;
}

struct OwnOutput;

impl HasData for OwnOutput {
    type Data<'a> = StandardStreams<'a>;
}

fn own_clocks(state: &mut State) -> Clocks<'_> {
    let wasi = state.wasi();
    Clocks {
        clock: &wasi.clock,
        table: &mut wasi.table,
    }
}

fn own_output(state: &mut State) -> StandardStreams<'_> {
    let wasi = state.wasi();
    StandardStreams {
        messages: &wasi.messages,
        table: &mut wasi.table,
    }
}

fn table(state: &mut State) -> &mut ResourceTable {
    &mut state.wasi().table
}

/// Links all of [`OFFERED`].
pub(super) fn add_to_linker(l: &mut Linker<State>) -> wasmtime::Result<()> {
    type Table = HasSelf<ResourceTable>;
    clocks::monotonic_clock::add_to_linker::<State, OwnClocks>(l, own_clocks)?;
    clocks::wall_clock::add_to_linker::<State, OwnClocks>(l, own_clocks)?;
    sync::io::poll::add_to_linker::<State, OwnClocks>(l, own_clocks)?;
    cli::stdout::add_to_linker::<State, OwnOutput>(l, own_output)?;
    cli::stderr::add_to_linker::<State, OwnOutput>(l, own_output)?;

    error::add_to_linker::<State, Table>(l, table)?;
    sync::io::streams::add_to_linker::<State, Table>(l, table)?;
    cli::environment::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::exit::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(l, State::cli)?;
    filesystem::preopens::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    sync::filesystem::types::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    random::random::add_to_linker::<State, WasiRandom>(l, |state| state.wasi().context.random())?;
    random::insecure::add_to_linker::<State, WasiRandom>(l, |state| state.wasi().context.random())?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(l, |state| state.wasi().context.random())?;
    sockets::instance_network::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::ip_name_lookup::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::network::add_to_linker::<State, WasiSockets>(l, &Default::default(), State::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sync::sockets::tcp::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sync::sockets::udp::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sync::sockets::udp_create_socket::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_offered_by_name_and_track() {
        for offered in [
            "wasi:io/poll@0.2.0",
            "wasi:sockets/udp@0.2.99",
            "wasi:sockets/udp-create-socket@0.2.6",
        ] {
            assert!(is_offered(offered), "{offered}");
        }
        for unknown in ["wasi:http/types@0.2.0", "wasi:io/poll@0.3.0", "wasi:io/poll", "env"] {
            assert!(!is_offered(unknown), "{unknown}");
        }
    }
}
