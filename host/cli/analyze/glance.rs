//! The page of the run, and the same in a few lines.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;

use super::Analyze;
use crate::cli::gather::Gathered;
use crate::cli::one_line;
use crate::cli::text::printable;
use crate::reports::html::{self, Glance, Source};
use crate::reports::{Plan, Report, Reporter, figures};
use crate::scratch::Scratch;

/// Groups and complaints that get a line; the page has the others.
const GROUPS: usize = 4;
const COMPLAINTS: usize = 3;

/// What was written where.
pub(super) struct Told {
    glance: Glance,
    /// The page as the user names it; none if none was wanted, or it could not be written.
    page: Option<PathBuf>,
    /// Why it could not be written.
    pub(super) failed: bool,
}

impl Analyze {
    /// Writes the page. A page that cannot be written is told on standard error: the reports are made all the same.
    pub(super) fn write_page(
        &self,
        gathered: &Gathered,
        plan: &Plan,
        report: &Report,
        reporter: &Reporter,
        output: &Path,
        scratch: &Scratch,
    ) -> Told {
        let counted = match (&report.embedded, self.no_html) {
            (None, false) => Some(figures(&gathered.run, &plan.jobs, scratch)),
            _ => None,
        };
        let source = Source {
            run: &gathered.run,
            named: self.run_folder(),
            assignment: &gathered.assignment,
            jobs: &plan.jobs,
            rows: &report.rows,
            figures: report.embedded.as_ref().or(counted.as_ref()),
            reporter: &of_whom(reporter),
            output,
            made_at: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        };
        let glance = Glance::of(&source);
        if self.no_html {
            return Told {
                glance,
                page: None,
                failed: false,
            };
        }
        let page = self.html.clone().unwrap_or_else(|| self.output_dir.join("index.html"));
        let written = std::path::absolute(&page).map_err(Into::into).and_then(|file| {
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            }
            html::write(&source, &file)
        });
        match written {
            Ok(()) => Told {
                glance,
                page: Some(page),
                failed: false,
            },
            Err(error) => {
                eprintln!(
                    "tracemend: {}; the reports are made, the page is not",
                    one_line(&format!("{error:#}"))
                );
                Told {
                    glance,
                    page: None,
                    failed: true,
                }
            }
        }
    }
}

fn of_whom(reporter: &Reporter) -> String {
    match reporter {
        Reporter::BuiltIn => "tracemend’s embedded reporter".to_owned(),
        Reporter::TraceLens(driver) => {
            let version = driver
                .interpreter
                .tracelens
                .distribution
                .as_deref()
                .unwrap_or("version unknown");
            format!("TraceLens ({version})")
        }
    }
}

impl Told {
    /// The run in a sentence, its ranks as characters, and what needs attention.
    pub(super) fn glance(&self, out: &mut dyn Write) -> io::Result<()> {
        let glance = &self.glance;
        writeln!(out, "{}", printable(&glance.sentence))?;
        let shown = &glance.ranks[..glance.ranks.len().min(GROUPS)];
        let width = shown
            .iter()
            .map(|group| printable(&group.group).chars().count())
            .max()
            .unwrap_or(0)
            .min(40);
        for group in shown {
            let name: String = printable(&group.group).chars().take(40).collect();
            let share = if group.share > 1 {
                format!(", {} a character", group.share)
            } else {
                String::new()
            };
            writeln!(
                out,
                "  {name:width$} [{}] {}{share}{}",
                group.line,
                group.summary,
                legend(&group.line)
            )?;
        }
        if glance.ranks.len() > GROUPS {
            writeln!(out, "  and {} more groups", glance.ranks.len() - GROUPS)?;
        }
        for (what, command) in glance.attention.iter().take(COMPLAINTS) {
            match command {
                Some(command) => writeln!(out, "  {}: {}", one_line(what), printable(command))?,
                None => writeln!(out, "  {}", one_line(what))?,
            }
        }
        if glance.attention.len() > COMPLAINTS {
            writeln!(out, "  and {} more to look at", glance.attention.len() - COMPLAINTS)?;
        }
        Ok(())
    }

    /// Where the page is.
    pub(super) fn page(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.page {
            Some(page) => writeln!(out, "At a glance: {}", printable(&page.to_string_lossy())),
            None => Ok(()),
        }
    }
}

/// ` (m mended)`: the characters of `line` that are not plain presence.
fn legend(line: &str) -> String {
    let mut odd: Vec<char> = line.chars().filter(|&c| c != '=').collect();
    odd.sort_unstable();
    odd.dedup();
    let meanings: Vec<String> = odd
        .iter()
        .filter_map(|&c| Some(format!("{c} {}", html::meaning(c)?)))
        .collect();
    if meanings.is_empty() {
        String::new()
    } else {
        format!(" ({})", meanings.join(", "))
    }
}
