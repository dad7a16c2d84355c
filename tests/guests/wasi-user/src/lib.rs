//! A naming policy that tries all that WASI has. The first path of the batch that holds one of the words below says what; the
//! first label tells what came of it.

wit_bindgen::generate!({ path: ["../../../wit/0.1.0", "wit"], world: "tests:wasi-user/wasi-naming", generate_all });

use exports::tracemend::plugin::naming::{Guest, Label, Trace};
use tracemend::plugin::types::Description;
use wasi::cli::environment::{get_arguments, get_environment, initial_cwd};
use wasi::cli::{exit::exit, stderr::get_stderr, stdin::get_stdin, stdout::get_stdout};
use wasi::clocks::monotonic_clock::subscribe_duration;
use wasi::clocks::{monotonic_clock, wall_clock};
use wasi::filesystem::preopens::get_directories;
use wasi::io::poll::poll;
use wasi::random::random::get_random_bytes;
use wasi::sockets::instance_network::instance_network;
use wasi::sockets::ip_name_lookup::resolve_addresses;
use wasi::sockets::network::IpAddressFamily;
use wasi::sockets::tcp_create_socket::create_tcp_socket;

const SECOND: u64 = 1_000_000_000;

struct WasiUser;

impl Guest for WasiUser {
    fn describe() -> Description {
        Description {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            summary: "tries all that WASI has".into(),
            settings: Vec::new(),
        }
    }

    fn label_all(traces: Vec<Trace>, _settings: Vec<(String, String)>) -> Result<Vec<Label>, String> {
        let words = [
            "look", "nap", "sleep", "doze", "wait", "print", "chatter", "exit", "random", "panic",
        ];
        let word = traces
            .iter()
            .find_map(|trace| words.iter().find(|word| trace.path.contains(**word)));
        let told = match word.copied() {
            Some("look") => look(),
            Some("nap") => nap(),
            Some("sleep") => sleep(60),
            Some("doze") => loop {
                sleep(1);
            },
            Some("wait") => {
                subscribe_duration(u64::MAX).block();
                "back".into()
            }
            Some("print") => print(),
            Some("chatter") => chatter(),
            Some("exit") => {
                exit(Err(()));
                String::new()
            }
            Some("random") => get_random_bytes(1 << 40).len().to_string(),
            Some("panic") => {
                let _ = get_stderr()
                    .blocking_write_and_flush(b"\nthread 'main' panicked at src/lib.rs:1:2:\nno such rank\n");
                std::process::abort()
            }
            _ => String::new(),
        };
        let rest = traces.iter().skip(1).map(|_| Label::Unknown(String::new()));
        Ok(std::iter::once(Label::Unknown(told)).chain(rest).collect())
    }
}

/// All that a guest could learn of the machine.
fn look() -> String {
    let socket = create_tcp_socket(IpAddressFamily::Ipv4).err();
    let name = resolve_addresses(&instance_network(), "localhost").err();
    let input = get_stdin();
    poll(&[&input.subscribe()]);
    let random = get_random_bytes(4);
    format!(
        "variables {:?}, arguments {:?}, folder {:?}, folders {}, socket {socket:?}, name {name:?}, input {:?}, clocks {} {}, random {random:02x?}",
        get_environment(),
        get_arguments(),
        initial_cwd(),
        get_directories().len(),
        input.blocking_read(10).map_err(|_| "closed"),
        monotonic_clock::now(),
        wall_clock::now().seconds,
    )
}

fn sleep(seconds: u64) -> String {
    subscribe_duration(seconds * SECOND).block();
    "awake".into()
}

/// Two timers at once: the shorter one ends the wait.
fn nap() -> String {
    let (long, short) = (subscribe_duration(20 * SECOND), subscribe_duration(SECOND / 4));
    let ready = poll(&[&long, &short]);
    format!("timer {ready:?} after {} ms", monotonic_clock::now() / 1_000_000)
}

fn print() -> String {
    let out = get_stdout();
    let _ = out.blocking_write_and_flush(b"first\nsecond \x1b[2J");
    let _ = get_stderr().blocking_write_and_flush(b"a warning");
    format!("may write {:?}", out.check_write().is_ok_and(|bytes| bytes > 0))
}

fn chatter() -> String {
    let out = get_stderr();
    for _ in 0..10_000 {
        let _ = out.write("blah ".repeat(1000).as_bytes());
        let _ = out.write(b"\n");
    }
    "hoarse".into()
}

export!(WasiUser);
