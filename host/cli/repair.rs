//! `tracemend repair`

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use super::findings::{FileFindings, by_kind, describe};
use super::scan::Checks;
use super::text::printable;
use super::{Global, Outcome};
use crate::bytes::{Verdict, mend, scan};
use crate::scratch::Scratch;
use crate::traces::KindObserver;

#[derive(Debug, Args)]
pub struct Repair {
    /// The trace
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where the mended copy goes; it is replaced whole, or not touched
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
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
        let there = std::fs::metadata(&self.output);
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (meta.dev(), meta.ino())) {
            bail!(
                "{} is the original; originals are never changed, give the copy another name",
                self.output.display()
            );
        }
        let mut observer = KindObserver::default();
        let findings =
            scan(&input, &self.checks.options(), &mut observer).with_context(|| format!("cannot read {shown}"))?;
        if findings.verdict != Verdict::Refused {
            let mut write = || -> io::Result<()> {
                input.rewind()?;
                let (file, scratch) = Scratch::file_beside(&self.output)?;
                if findings.verdict == Verdict::Clean {
                    // Between files io::copy lets the kernel do it, sharing blocks where the file system can.
                    io::copy(&mut input, &mut &file)?;
                } else {
                    let mut out = BufWriter::with_capacity(1 << 20, &file);
                    mend(&input, &findings, &mut out, &mut |_| {})?;
                    out.flush()?;
                }
                scratch.persist(&self.output)
            };
            write().with_context(|| format!("cannot write {}", self.output.display()))?;
        }

        let mut out = io::stdout().lock();
        let refused = findings.verdict == Verdict::Refused;
        if self.json {
            let document = Repaired {
                findings: FileFindings::new(&self.input, observer.kind(), meta.len(), &findings),
                output: (!refused).then(|| self.output.to_string_lossy().into_owned()),
                log: None,
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
        }
        Ok(Outcome::bad_news_if(refused))
    }
}
