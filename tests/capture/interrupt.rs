//! Ctrl-C in each phase.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;

use super::world::*;
use crate::util::fixture;

/// `tracemend capture ARGUMENTS` as a process that can be sent signals. Without a port, it finds one of its own.
fn spawn(world: &World, arguments: &[&str], port: Option<u16>) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracemend"));
    command
        .arg("capture")
        .args(arguments)
        .envs(world.environment())
        .env_remove("XDG_RUNTIME_DIR");
    match port {
        Some(port) => command.env("DYNOLOG_PORT", port.to_string()),
        None => command.env_remove("KINETO_IPC_SOCKET_DIR"),
    };
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Signals are watched for from the first moment of a command on.
fn watches_for_interrupts(running: &Running) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", running.0.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (2 - 1)) != 0
}

#[test]
fn an_interrupt_in_any_phase_leaves_nothing_behind() {
    let world = World::new();
    let (out, deaf) = (world.path("out").display().to_string(), world.path("deaf"));
    write_script(
        &deaf,
        &format!("touch {}\nexec sleep 600", world.path("started").display()),
    );
    let elsewhere = json!({
        "tracemend_manifest": 1, "host": "elsewhere", "captured_at": 1.0, "local": false,
        "processes": [{"pid": 1, "trace": "x_1.json", "trace_path": world.path("out/x_1.json")}],
    });
    let manifest = "tracemend-manifest-elsewhere.json";
    fs::write(world.path("out").join(manifest), elsewhere.to_string()).unwrap();
    let asked_twice = || world.requests().len() > 1;
    let trigger = ["trigger", "--via", "rpc", "-o", &out, "--warmup"];
    let start = [
        "start",
        "--via",
        "rpc",
        "-o",
        &out,
        "--ready-within",
        "600",
        "--dynolog",
    ];
    type Phase<'a> = (&'a str, Vec<&'a str>, Box<dyn Fn() -> bool + 'a>);
    let daemonless: [Phase; 4] = [
        (
            "warm-up",
            [&trigger[..], &["600"]].concat(),
            Box::new(|| world.path("state/tracemend").exists()),
        ),
        (
            "between attempts",
            [&trigger[..], &["0", "--retry-interval", "600"]].concat(),
            Box::new(|| !world.attempts().is_empty()),
        ),
        (
            "start",
            [&start[..], &[deaf.to_str().unwrap()]].concat(),
            Box::new(|| world.path("started").exists()),
        ),
        ("wait", vec!["wait", &out, "--deadline", "600"], Box::new(|| true)),
    ];
    let interrupt = |(phase, arguments, reached): &Phase, left_running: usize| {
        let mut running = spawn(&world, arguments, Some(world.port));
        until(phase, reached);
        until("signals are watched for", || watches_for_interrupts(&running));
        signal(&running.0, "INT");
        assert_eq!(running.0.wait().unwrap().code(), Some(130), "{phase}");
        until("no process is left", || world.processes().len() == left_running);
        let left = names(&world.path("out"));
        let known = |name: &String| name == manifest || name.starts_with("tracemend-attempts-");
        assert!(left.iter().all(known), "{phase}: {left:?}");
    };
    for phase in &daemonless {
        interrupt(phase, 0);
    }
    // One rank of two has registered; the other is waited for.
    let _daemon = world.daemon();
    let _job = world.job(&["--ranks", "2", "--late", "1=never"]);
    let mustering: Phase = (
        "waiting for ranks",
        [&trigger[..], &["0", "--stable", "600", "--retry-interval", "0.01"]].concat(),
        Box::new(asked_twice),
    );
    until("the job", || world.processes().len() == 4);
    interrupt(&mustering, 4);
    assert!(
        world
            .requests()
            .iter()
            .all(|one| one["reply"]["activityProfilersTriggered"] == json!([]))
    );
}

#[test]
fn an_interrupt_of_run_reaches_its_command_and_leaves_nothing_behind() {
    let dynolog = fixture("dynolog/dynolog");
    let dynolog = dynolog.to_str().unwrap();
    let job = fixture("dynolog/job.py");
    let job = job.to_str().unwrap();
    let started = |world: &World| !names(&world.path("marks")).is_empty();
    for (phase, daemon, warmup, command) in [
        // Nothing runs yet: it ends by the signal's own code.
        ("the daemon starts", "deaf", "0", vec!["true"]),
        (
            "warm-up",
            dynolog,
            "600",
            vec!["sh", "-c", "touch marks/x; exec sleep 600"],
        ),
        ("waiting for files", dynolog, "0", vec![job, "--ranks", "1", "--linger"]),
    ] {
        let world = World::new();
        let out = world.path("out").display().to_string();
        fs::create_dir(world.path("marks")).unwrap();
        write_script(
            &world.path("deaf"),
            &format!("touch {}/x\nexec sleep 600", world.path("marks").display()),
        );
        let deaf = world.path("deaf").display().to_string();
        let daemon = if daemon == "deaf" { &deaf } else { daemon };
        let mut arguments = vec![
            "run",
            "--via",
            "rpc",
            "-o",
            &out,
            "--warmup",
            warmup,
            "--retry-interval",
            "0.1",
        ];
        arguments.extend(["--max-attempts", "1000", "--dynolog", daemon, "--"]);
        let command: Vec<String> = command
            .iter()
            .map(|word| word.replace("marks", &format!("{}/marks", world.path("").display())))
            .collect();
        arguments.extend(command.iter().map(String::as_str));
        let mut running = spawn(&world, &arguments, None);
        until(phase, || match phase {
            "waiting for files" => !world.manifests().is_empty(),
            _ => started(&world),
        });
        signal(&running.0, "INT");
        assert_eq!(running.0.wait().unwrap().code(), Some(130), "{phase}");
        world.leaves_nothing();
    }
}
