//! Perfetto protobufs become JSON through Perfetto's own traceconv, once a trace.
//!
//! TraceLens would convert such a trace itself, once for each of its three reports: beside the original, over a file of that name
//! if there is one, and with a traceconv from the network where it finds none (facts/tracelens.md section 6). So it never sees one.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::child;
use super::interpreter::{find_program, is_executable};
use super::outcome::last_words;
use crate::bytes::{Options, Verdict, mend, scan};

/// Finds traceconv: the one `given` (a bare name is looked up on PATH), else the one beside `interpreter`, else the one on PATH,
/// where TraceLens would find it.
///
/// # Errors
/// When the one given is no program.
pub fn find_traceconv(given: Option<&Path>, interpreter: &Path) -> Result<Option<PathBuf>> {
    if let Some(given) = given {
        return match find_program(given) {
            Some(program) => Ok(Some(program)),
            None => bail!(
                "no program at {}; traceconv is at https://get.perfetto.dev/traceconv (chmod +x)",
                given.display()
            ),
        };
    }
    let beside = interpreter.with_file_name("traceconv");
    Ok(Some(beside)
        .filter(|path| is_executable(path))
        .or_else(|| find_program(Path::new("traceconv"))))
}

/// About how many bytes the JSON of a Perfetto trace of `size` bytes has: a packet of some thirty bytes becomes an event of some
/// three hundred.
pub fn json_size(size: u64) -> u64 {
    size.saturating_mul(12)
}

/// Writes the Perfetto trace `original` as JSON to the new file `json`, whole and mended.
///
/// # Errors
/// When traceconv fails, or writes what cannot be mended.
pub fn to_json(traceconv: &Path, original: &Path, json: &Path) -> Result<()> {
    let raw = json.with_extension("traceconv.json");
    let made = run(traceconv, original, &raw).and_then(|()| {
        let findings = scan(
            File::open(&raw).context("traceconv wrote no JSON")?,
            &Options::default(),
            &mut (),
        )?;
        match findings.verdict {
            Verdict::Clean => std::fs::rename(&raw, json)?,
            Verdict::Damaged => {
                let mut out = std::io::BufWriter::with_capacity(1 << 20, File::create_new(json)?);
                mend(File::open(&raw)?, &findings, &mut out, &mut |_| {})?;
                std::io::Write::flush(&mut out)?;
            }
            Verdict::Refused => bail!(
                "traceconv wrote JSON that cannot be mended: {}",
                findings.reason.unwrap_or_default()
            ),
        }
        Ok(())
    });
    let _ = std::fs::remove_file(&raw);
    made
}

fn run(traceconv: &Path, original: &Path, json: &Path) -> Result<()> {
    let mut words = tempfile::tempfile().context("cannot keep what traceconv says (set TMPDIR to another place)")?;
    let mut command = Command::new(traceconv);
    command.arg("json").arg(original).arg(json);
    command
        .stdin(Stdio::null())
        .stdout(words.try_clone()?)
        .stderr(words.try_clone()?);
    if let Some(folder) = json.parent() {
        command.current_dir(folder);
    }
    let ended = child::run(&mut command, None).with_context(|| format!("{} does not start", traceconv.display()))?;
    if !ended.status.success() {
        let words = last_words(&mut words, 0)?;
        let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
        bail!("traceconv failed: {}", last.unwrap_or("it says nothing"));
    }
    Ok(())
}
