//! How a report came out. An exit code alone proves nothing, and neither does a file that is there (facts/tracelens.md section 6):
//! a success is exit code 0 and every promised output, new and whole.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::HumanBytes;

use super::child::Ended;

/// How a report came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All that was promised is there.
    Success,
    /// There is no report to make, and why; nothing is wrong.
    Skipped(String),
    /// What is wrong.
    Failure(String),
}

/// What one run of TraceLens came to: `words` are the last that it said, `promised` what it should have written.
pub fn judge(ended: &Ended, time_limit: Option<Duration>, words: &str, promised: &[impl AsRef<Path>]) -> Outcome {
    if ended.status.success() {
        for output in promised.iter().map(AsRef::as_ref) {
            if let Err(error) = check(output) {
                let name = output.file_name().unwrap_or_default().display();
                return Outcome::Failure(format!("TraceLens exited with 0, but {name} is not usable: {error:#}"));
            }
        }
        return Outcome::Success;
    }
    if words.contains("No GPU events found in the trace") {
        return Outcome::Skipped(
            "no GPU activity in the trace (TraceLens: No GPU events found in the trace)".to_owned(),
        );
    }
    if words.contains("KeyError: 'collective_id'") {
        return Outcome::Skipped("no collective report: the traces hold no collective kernels".to_owned());
    }
    let last = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Outcome::Failure(match (last, ended.status.signal()) {
        _ if ended.timed_out => {
            let limit = humantime::format_duration(time_limit.unwrap_or_default());
            let last = last.map(|line| format!("; its last words: {line}")).unwrap_or_default();
            format!("ended after {limit}, the limit of --job-timeout{last}")
        }
        (_, Some(9)) => format!(
            "killed (signal 9), as the kernel does when memory runs out; it had {}: try --jobs 1, or a machine with more memory",
            HumanBytes(ended.peak)
        ),
        (_, Some(signal)) => format!("ended by signal {signal}"),
        (Some(line), None) => line.to_owned(),
        (None, None) => format!("exit code {}", ended.status.code().unwrap_or_default()),
    })
}

/// The end of what a program wrote to its log since byte `begin`, as text: at most 64 KiB.
///
/// # Errors
/// When the log cannot be read.
pub fn last_words(log: &mut File, begin: u64) -> io::Result<String> {
    const ENOUGH: u64 = 64 << 10;
    let end = log.metadata()?.len();
    log.seek(SeekFrom::Start(begin.max(end.saturating_sub(ENOUGH))))?;
    let mut words = Vec::new();
    log.take(ENOUGH).read_to_end(&mut words)?;
    Ok(String::from_utf8_lossy(&words).into_owned())
}

/// The last lines of `words` that say anything, at most ten.
pub fn last_lines(words: &str) -> Vec<String> {
    let said = words.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let mut last: Vec<String> = said.rev().take(10).map(str::to_owned).collect();
    last.reverse();
    last
}

/// An output is whole: a folder holds a CSV, a workbook is an archive whose directory and members are all there, any other file
/// is not empty.
///
/// # Errors
/// What is wrong with it.
pub fn check(output: &Path) -> Result<()> {
    if output.is_dir() {
        let mut entries = fs::read_dir(output)?.flatten();
        if !entries.any(|entry| entry.path().extension().is_some_and(|extension| extension == "csv")) {
            bail!("the folder holds no CSV");
        }
        return Ok(());
    }
    let file = File::open(output).map_err(|_| anyhow!("it is not there"))?;
    if file.metadata()?.len() == 0 {
        bail!("it is empty");
    }
    if output.extension().is_some_and(|extension| extension == "xlsx") {
        check_workbook(file).context("it is no whole workbook")?;
    }
    Ok(())
}

fn check_workbook(file: File) -> Result<()> {
    let mut archive = zip::ZipArchive::new(BufReader::new(file))?;
    for index in 0..archive.len() {
        archive.by_index_raw(index)?;
    }
    // ECMA-376 part 2: without it, nothing says what the parts of the package are.
    archive.by_name("[Content_Types].xml")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::ExitStatus;

    use super::*;

    fn ended(raw: i32) -> Ended {
        Ended {
            status: ExitStatus::from_raw(raw),
            timed_out: false,
            peak: 3 << 30,
        }
    }

    fn workbook(path: &Path) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
        for part in ["[Content_Types].xml", "xl/workbook.xml"] {
            archive
                .start_file(part, zip::write::SimpleFileOptions::default())
                .unwrap();
            archive.write_all(b"<xml/>").unwrap();
        }
        archive.finish().unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn exit_0_without_whole_outputs_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.xlsx");
        let failure = |path: &Path| match judge(&ended(0), None, "", &[path]) {
            Outcome::Failure(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(failure(&path).contains("r.xlsx is not usable: it is not there"));
        let whole = workbook(&path);
        assert_eq!(judge(&ended(0), None, "", &[&path]), Outcome::Success);
        for cut in [0, 10, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(failure(&path).contains("r.xlsx is not usable: it is"), "cut at {cut}");
        }
        // An end of archive, and nothing of what it lists.
        fs::write(
            &path,
            [&vec![b'x'; whole.len() - 22], &whole[whole.len() - 22..]].concat(),
        )
        .unwrap();
        assert!(failure(&path).contains("no whole workbook"));
        assert!(failure(folder.path()).contains("holds no CSV"));
    }

    #[test]
    fn failures_are_told_in_the_programs_own_words() {
        let of = |raw, words: &str| judge(&ended(raw), None, words, &[""; 0]);
        let failure = |why: &str| Outcome::Failure(why.to_owned());
        assert_eq!(
            of(0x100, "Traceback\n  KeyError: 'name'\n\n"),
            failure("KeyError: 'name'")
        );
        assert_eq!(of(0x200, ""), failure("exit code 2"));
        assert_eq!(of(15, "x"), failure("ended by signal 15"));
        assert!(matches!(of(9, "x"), Outcome::Failure(why) if why.contains("it had 3.00 GiB")));
        assert!(matches!(
            of(0x100, "ValueError: No GPU events found in the trace"),
            Outcome::Skipped(_)
        ));
        let timed_out = Ended {
            timed_out: true,
            ..ended(15)
        };
        assert_eq!(
            judge(&timed_out, Some(Duration::from_secs(90)), "loading\n", &[""; 0]),
            failure("ended after 1m 30s, the limit of --job-timeout; its last words: loading")
        );
    }
}
