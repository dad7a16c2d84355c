//! `tracemend repair`

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::checks::Checks;
use super::findings::{FileFindings, by_kind, describe};
use super::text::{one_line, printable};
use super::{Global, Outcome};
use crate::bytes::{Container, Findings, Verdict, mend, mend_logged, scan, scan_and_mend, verify, verify_whole};
use crate::scratch::Scratch;
use crate::traces::{KindObserver, check_suffix};

#[derive(Debug, Args)]
pub struct Repair {
    /// The trace
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where the mended copy goes; it is replaced whole, or not touched. A name that ends in .gz makes it a compressed copy
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Write a log of all edits, from which `tracemend restore` makes the original again
    #[arg(long, value_name = "FILE.jsonl")]
    log: Option<PathBuf>,
    #[command(flatten)]
    checks: Checks,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Repaired<'a> {
    #[serde(flatten)]
    findings: FileFindings<'a>,
    output: Option<String>,
    log: Option<String>,
}

impl Repair {
    pub(super) fn run(self, global: &Global) -> Result<Outcome> {
        let shown = self.input.display();
        let mut input = File::open(&self.input).with_context(|| format!("cannot read {shown}"))?;
        let meta = input.metadata().with_context(|| format!("cannot read {shown}"))?;
        if !meta.is_file() {
            bail!("{shown} is no regular file; `tracemend scan` looks into folders");
        }
        for target in [Some(&self.output), self.log.as_ref()].into_iter().flatten() {
            let there = std::fs::metadata(target);
            if there.is_ok_and(|there| (there.dev(), there.ino()) == (meta.dev(), meta.ino())) {
                bail!(
                    "{} is the original; originals are never changed, give the copy another name",
                    target.display()
                );
            }
        }
        let mut observer = KindObserver::default();
        let mut findings = self.write(&mut input, &mut observer)?;
        let refused = findings.verdict == Verdict::Refused;
        check_suffix(&self.input, &mut findings);

        let mut out = io::stdout().lock();
        let log = self.log.as_deref().filter(|_| !refused);
        if self.json {
            let document = Repaired {
                findings: FileFindings::new(&self.input, observer.kind(), meta.len(), &findings),
                output: (!refused).then(|| self.output.to_string_lossy().into_owned()),
                log: log.map(|log| log.to_string_lossy().into_owned()),
            };
            serde_json::to_writer(&mut out, &document)?;
            writeln!(out)?;
        } else if !global.quiet || refused {
            let output = printable(&self.output.to_string_lossy());
            match findings.verdict {
                Verdict::Refused => describe(&mut out, &self.input, observer.kind(), &findings, self.checks.list)?,
                Verdict::Damaged => writeln!(out, "{output}: mended: {}", by_kind(&findings))?,
                Verdict::Clean => writeln!(out, "{output}: a plain copy, there was nothing to mend")?,
            }
            for warning in &findings.warnings {
                writeln!(out, "    warning: {}", one_line(warning))?;
            }
        }
        Ok(Outcome::bad_news_if(refused))
    }

    /// Writes the copy, and the log, and puts both in place once the copy has proved clean. If the input is refused, nothing is
    /// written.
    fn write(&self, input: &mut File, observer: &mut KindObserver) -> Result<Findings> {
        let cannot_read = || format!("cannot read {}", self.input.display());
        let cannot_write = || format!("cannot write {}", self.output.display());
        let options = self.checks.options();
        let (mut file, copy) = Scratch::file_beside(&self.output).with_context(cannot_write)?;
        let compressed = has_gzip_name(&self.output);
        let (mut findings, written) = if compressed || self.log.is_some() {
            (scan(&*input, &options, observer).with_context(cannot_read)?, false)
        } else {
            scan_and_mend(&*input, &file, &options, observer)
                .with_context(|| format!("cannot copy {} to {}", self.input.display(), self.output.display()))?
        };
        if findings.verdict == Verdict::Refused {
            return Ok(findings);
        }
        input.rewind().with_context(cannot_read)?;
        let log = match &self.log {
            Some(path) => {
                let (file, scratch) =
                    Scratch::file_beside(path).with_context(|| format!("cannot write {}", path.display()))?;
                Some((file, scratch, path))
            }
            None => None,
        };
        if !written {
            let log = log.as_ref().map(|(file, ..)| file);
            write_copy(input, &findings, &mut file, compressed, log).with_context(cannot_write)?;
        }
        let wrong = if compressed {
            file.rewind().and_then(|()| verify_whole(&file, &options))
        } else {
            verify(&file, &findings)
        };
        if let Some(wrong) = wrong.with_context(cannot_write)? {
            // A mistake of ours, found before it could do harm.
            findings.reason = Some(format!(
                "the mended copy would not be clean: {wrong}; please report this"
            ));
            findings.verdict = Verdict::Refused;
            return Ok(findings);
        }
        if let Some((_, scratch, path)) = log {
            scratch
                .persist(path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        copy.persist(&self.output).with_context(cannot_write)?;
        Ok(findings)
    }
}

/// Writes the mended copy of a scanned input in a second pass.
fn write_copy(
    input: &mut File,
    findings: &Findings,
    file: &mut File,
    compressed: bool,
    log: Option<&File>,
) -> io::Result<()> {
    let as_it_is = findings.verdict == Verdict::Clean && compressed == (findings.container == Container::Gzip);
    if as_it_is && log.is_none() {
        // Between files io::copy lets the kernel do it, sharing blocks where the file system can.
        io::copy(input, file)?;
        return Ok(());
    }
    let mut sink = BufWriter::with_capacity(1 << 20, file);
    let log = log.map(BufWriter::new);
    if compressed {
        // The fastest level: the copy is read a few times at most.
        let mut sink = GzEncoder::new(&mut sink, Compression::fast());
        mend_into(input, findings, &mut sink, log)?;
        sink.try_finish()?;
    } else {
        mend_into(input, findings, &mut sink, log)?;
    }
    sink.flush()
}

fn mend_into(input: &File, findings: &Findings, out: &mut dyn Write, log: Option<impl Write>) -> io::Result<()> {
    match log {
        Some(log) => mend_logged(input, findings, out, log)?,
        None => mend(input, findings, out, &mut |_| {})?,
    };
    Ok(())
}

fn has_gzip_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "gz")
}
