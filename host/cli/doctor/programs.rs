//! The programs of others: TraceLens with what it needs, traceconv, dyno and dynolog.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use super::Check;
use crate::capture::answers;
use crate::cli::tracelens::TraceLensOptions;
use crate::reports::{Driver, Generator, Interpreter, Settings, find_program, find_traceconv};

/// A daemon of this machine answers in far less.
const DAEMON_TIME: Duration = Duration::from_secs(3);
const DEFAULT_PORT: u16 = 1778;

/// The interpreter, TraceLens, its two libraries that reports are lost without, and traceconv.
pub(super) fn tracelens(checks: &mut Vec<Check>, options: &TraceLensOptions, traceconv: Option<&Path>, scratch: &Path) {
    let Some(named) = options.python() else {
        checks.push(Check::note(
            "tracelens",
            "no interpreter is named; reports come from the embedded reporter",
            "for TraceLens's give --python VENV/bin/python, or set TRACELENS_VENV",
        ));
        traceconv_for(checks, traceconv, Path::new("/"), false);
        return;
    };
    let interpreter = match options.interpreter(scratch) {
        Ok(interpreter) => interpreter,
        Err(error) => {
            checks.push(Check::bad(
                "interpreter",
                format!("{error:#}"),
                "give --python the interpreter of the environment that TraceLens is installed in",
            ));
            return;
        }
    };
    let python = interpreter.python.display().to_string();
    checks.push(Check::ok(
        "interpreter",
        format!("Python {} at {python}", interpreter.version),
    ));
    checks.push(installation(&interpreter, scratch));
    for (module, why) in [
        ("orjson", "TraceLens reads no trace without it"),
        ("openpyxl", "TraceLens writes no workbook without it"),
    ] {
        checks.push(match interpreter.import(module, scratch) {
            Ok(version) => Check::ok(module, version),
            Err(error) => Check::bad(
                module,
                format!("{error:#}; {why}"),
                format!("{} -m pip install {module}", named.display()),
            ),
        });
    }
    checks.push(generators(interpreter.clone(), options, scratch));
    traceconv_for(checks, traceconv, &interpreter.python, true);
}

fn installation(interpreter: &Interpreter, scratch: &Path) -> Check {
    let found = &interpreter.tracelens;
    let version = found.distribution.as_deref().unwrap_or("version unknown");
    let commit = found.commit.as_ref().map(|commit| format!(", commit {commit}"));
    let shown = format!("{version}{} in {}", commit.unwrap_or_default(), found.path);
    match interpreter.import("TraceLens", scratch) {
        Ok(_) => Check::ok("tracelens", shown),
        Err(error) => Check::bad(
            "tracelens",
            format!("{shown} cannot be imported: {error:#}"),
            "install TraceLens again, with all that it depends on",
        ),
    }
}

fn generators(interpreter: Interpreter, options: &TraceLensOptions, scratch: &Path) -> Check {
    let mut driver = Driver::new(interpreter, Settings::default());
    options.learn(&mut driver, &Generator::ALL, scratch);
    let silent = Generator::ALL
        .iter()
        .filter(|generator| driver.flags(**generator).is_none());
    let silent: Vec<&str> = silent.map(|generator| generator.short_name()).collect();
    let all = Generator::ALL.len();
    if silent.is_empty() {
        return Check::ok("generators", format!("all {all} answer"));
    }
    Check::note(
        "generators",
        format!("{} of {all} answer; not: {}", all - silent.len(), silent.join(", ")),
        "their reports will fail; this TraceLens may be older than they are, or something that they need is not installed",
    )
}

fn traceconv_for(checks: &mut Vec<Check>, given: Option<&Path>, interpreter: &Path, is_used: bool) {
    const NAME: &str = "traceconv";
    checks.push(match find_traceconv(given, interpreter) {
        Ok(Some(program)) if is_script(&program) => Check::note(
            NAME,
            format!("{}, a script", program.display()),
            "Perfetto's script fetches the program itself when it first runs; run it once where there is a network",
        ),
        Ok(Some(program)) => Check::ok(NAME, program.display().to_string()),
        Ok(None) if is_used => Check::note(
            NAME,
            "not found beside the interpreter or on PATH; Perfetto traces get no reports",
            "get https://get.perfetto.dev/traceconv, chmod +x, and give --traceconv PATH",
        ),
        Ok(None) => Check::note(
            NAME,
            "not found; only TraceLens would need it",
            "for TraceLens give --python first",
        ),
        Err(error) => Check::bad(NAME, format!("{error:#}"), "give --traceconv the path of the program"),
    });
}

fn is_script(program: &Path) -> bool {
    let mut head = [0; 2];
    File::open(program).is_ok_and(|mut file| file.read_exact(&mut head).is_ok() && head == *b"#!")
}

/// dyno, and the daemon that it would ask.
pub(super) fn dynolog(checks: &mut Vec<Check>, port: Option<u16>) {
    checks.push(match find_program(Path::new("dyno")) {
        Some(program) => Check::ok("dyno", program.display().to_string()),
        None => Check::note(
            "dyno",
            "not on PATH",
            "captures do without it: tracemend capture trigger --via rpc",
        ),
    });
    let variable = std::env::var("DYNOLOG_PORT").ok().filter(|port| !port.is_empty());
    let port = match (port, variable) {
        (Some(port), _) => Ok(port),
        (None, Some(text)) => text.parse::<u16>().ok().filter(|port| *port > 0).ok_or(text),
        (None, None) => Ok(DEFAULT_PORT),
    };
    checks.push(match port {
        Ok(port) if answers(port, DAEMON_TIME) => Check::ok("dynolog", format!("answers at localhost:{port}")),
        Ok(port) => Check::note(
            "dynolog",
            format!("no answer at localhost:{port}"),
            "needed for captures only: tracemend capture start begins one",
        ),
        Err(text) => Check::bad(
            "dynolog",
            format!("DYNOLOG_PORT is {text:?}, which is no port"),
            "set it to a number from 1 to 65535, or unset it",
        ),
    });
}
