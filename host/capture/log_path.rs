//! Where Kineto writes: facts/dynolog.md sections 3 and 6.

use std::path::{Path, PathBuf};

/// Where Kineto may write unless the job's KINETO_ONDEMAND_TRACE_DIR says otherwise (kineto PR 1426).
const DEFAULT_ALLOWED: &str = "/tmp";

/// A path that dyno, the daemon and Kineto all take as it stands: absolute, of `[A-Za-z0-9._/-]`, one `.json`, at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPath(String);

impl LogPath {
    /// `folder/name`, if that is such a path.
    ///
    /// # Errors
    /// In one sentence, what is wrong with it and what to do.
    pub fn new(folder: &Path, name: &str) -> Result<LogPath, String> {
        let path = folder.join(name);
        let Some(text) = path.to_str() else {
            return Err(format!(
                "{} is not UTF-8, and dyno takes nothing else: choose another folder",
                path.display()
            ));
        };
        if name.contains('/') || name.is_empty() {
            return Err(format!(
                "the log file {name:?} must be a bare name: the folder is an option of its own"
            ));
        }
        if !text.starts_with('/') {
            return Err(format!("the log path {text:?} must be absolute"));
        }
        if let Some(odd) = text
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || "._/-".contains(*c)))
        {
            return Err(format!(
                "the log path {text:?} holds {odd:?}: dyno pastes it unescaped into JSON, and Kineto cuts it at # and refuses =; \
                 use letters, digits, and . _ - /"
            ));
        }
        if text.split('/').any(|part| part == "..") || text.contains("..") {
            return Err(format!(
                "the log path {text:?} holds \"..\", which Kineto ignores together with the whole path"
            ));
        }
        if !text.ends_with(".json") {
            return Err(format!(
                "the log path {text:?} must end in .json: otherwise all processes write one file, or plain JSON under a .gz name"
            ));
        }
        if text.matches(".json").count() != 1 {
            return Err(format!(
                "the log path {text:?} holds .json more than once, and Kineto puts the pid at the first one"
            ));
        }
        Ok(LogPath(text.to_owned()))
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether Kineto writes here: below `allowed`, the job's KINETO_ONDEMAND_TRACE_DIR, or below /tmp.
    pub fn is_allowed(&self, allowed: Option<&Path>) -> bool {
        let allowed = allowed.unwrap_or(Path::new(DEFAULT_ALLOWED));
        Path::new(&self.0)
            .parent()
            .is_some_and(|folder| folder.starts_with(allowed))
    }
}

/// The file that Kineto really writes for `pid`: the id goes before the first `.pt.trace.json`, else before the first `.json`.
pub fn trace_file(log_path: &str, pid: i64) -> String {
    let at = log_path.find(".pt.trace.json").or_else(|| log_path.find(".json"));
    match at {
        Some(at) => format!("{}_{pid}{}", &log_path[..at], &log_path[at..]),
        None => log_path.to_owned(),
    }
}

/// Where Kineto writes instead if it does not like the path that was asked for.
pub fn redirected_file(pid: i64) -> PathBuf {
    PathBuf::from(format!("/tmp/libkineto_activities_{pid}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kinetos() {
        for (log, file) in [
            ("/t/x.json", "/t/x_7.json"),
            ("/t/x.pt.trace.json", "/t/x_7.pt.trace.json"),
            ("/t/run.json.d/t.json", "/t/run_7.json.d/t.json"),
            ("/t/x.out", "/t/x.out"),
        ] {
            assert_eq!(trace_file(log, 7), file);
        }
    }

    #[test]
    fn what_would_go_astray_is_refused() {
        for (folder, name, word) in [
            ("/t", "a\"b.json", "'\"'"),
            ("/t", "a\nb.json", "'\\n'"),
            ("/t", "a#b.json", "'#'"),
            ("/t", "a=b.json", "'='"),
            ("/t", "a b.json", "' '"),
            ("/t", "a\\b.json", "'\\\\'"),
            ("/t/../u", "a.json", "\"..\""),
            ("t", "a.json", "absolute"),
            ("/t", "a.json.gz", "must end in .json"),
            ("/t/x.json", "a.json", "more than once"),
            ("/t", "u/a.json", "bare name"),
            ("/t", "", "bare name"),
        ] {
            let error = LogPath::new(Path::new(folder), name).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
        assert!(LogPath::new(Path::new("/t-1/x_2"), "a.pt.trace.json").is_ok());
    }

    #[test]
    fn folders_are_compared_by_their_parts() {
        let allowed = |folder: &str, allowed| LogPath::new(Path::new(folder), "a.json").unwrap().is_allowed(allowed);
        assert!(allowed("/tmp/x", None));
        assert!(!allowed("/tmpfoo", None));
        assert!(!allowed("/var/tmp", None));
        assert!(allowed("/scratch/run", Some(Path::new("/scratch/"))));
        assert!(!allowed("/tmp/x", Some(Path::new("/scratch"))));
    }
}
