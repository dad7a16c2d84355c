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
use crate::bytes::{Container, Findings, Options, Verdict, mend, mend_logged, scan};
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
        let options = self.checks.options();
        let mut observer = KindObserver::default();
        let mut findings = scan(&input, &options, &mut observer).with_context(|| format!("cannot read {shown}"))?;
        check_suffix(&self.input, &mut findings);
        let mut refused = findings.verdict == Verdict::Refused;
        if !refused {
            input.rewind().with_context(|| format!("cannot read {shown}"))?;
            let written = self.write(&mut input, &findings, &options);
            if let Some(flaw) = written.with_context(|| format!("cannot write {}", self.output.display()))? {
                // A mistake of ours, found before it could do harm.
                refused = true;
                findings.reason = Some(format!(
                    "the mended copy would not be clean: {flaw}; please report this"
                ));
                findings.verdict = Verdict::Refused;
            }
        }

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

    /// Writes the copy, and the log, and puts both in place once the copy has proved clean. What is still wrong with it, if anything.
    fn write(&self, input: &mut File, findings: &Findings, options: &Options) -> io::Result<Option<String>> {
        let (mut file, copy) = Scratch::file_beside(&self.output)?;
        let compressed = has_gzip_name(&self.output);
        let as_it_is = findings.verdict == Verdict::Clean && compressed == (findings.container == Container::Gzip);
        let log = match &self.log {
            Some(log) => Some(Scratch::file_beside(log)?),
            None => None,
        };
        if as_it_is && log.is_none() {
            // Between files io::copy lets the kernel do it, sharing blocks where the file system can.
            io::copy(input, &mut &file)?;
        } else {
            let mut sink = BufWriter::with_capacity(1 << 20, &file);
            let logged = log.as_ref().map(|(file, _)| BufWriter::new(file));
            if compressed {
                // The fastest level: the copy is read a few times at most.
                let mut sink = GzEncoder::new(&mut sink, Compression::fast());
                mend_into(input, findings, &mut sink, logged)?;
                sink.try_finish()?;
            } else {
                mend_into(input, findings, &mut sink, logged)?;
            }
            sink.flush()?;
            drop(sink);
            file.rewind()?;
            let mended = scan(
                &file,
                &Options {
                    listed: 1,
                    ..options.clone()
                },
                &mut (),
            )?;
            if mended.verdict != Verdict::Clean {
                return Ok(Some(mended.reason.clone().unwrap_or_else(|| by_kind(&mended))));
            }
        }
        if let (Some((_, scratch)), Some(path)) = (log, &self.log) {
            scratch.persist(path)?;
        }
        copy.persist(&self.output)?;
        Ok(None)
    }
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
