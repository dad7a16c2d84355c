//! Perfetto protobufs become JSON through Perfetto's own traceconv, once a trace.
//!
//! TraceLens would convert such a trace itself, once for each of its three reports: beside the original, over a file of that name
//! if there is one, and with a traceconv from the network where it finds none (facts/tracelens.md section 6). So it never sees one.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::interpreter::{find_program, is_executable};
use crate::bytes::{Options, Verdict, mend, scan};
use crate::scratch::ProcessGroup;

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
    let shown = traceconv.display();
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
    command.process_group(0);
    let (mut child, group) = ProcessGroup::of(|| command.spawn()).with_context(|| format!("{shown} does not start"))?;
    let status = child.wait()?;
    drop(group);
    if !status.success() {
        let length = words.seek(SeekFrom::End(0))?;
        words.seek(SeekFrom::Start(length.saturating_sub(4096)))?;
        let mut said = Vec::new();
        words.take(4096).read_to_end(&mut said)?;
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
        bail!("traceconv failed: {}", last.unwrap_or("it says nothing"));
    }
    Ok(())
}
