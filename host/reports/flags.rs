//! The flags that a generator knows, as its own `--help` has them.
//!
//! An unknown flag costs the whole report (facts/tracelens.md section 1), and TraceLens's flags change from commit to commit.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The flags of one generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flags {
    flags: BTreeSet<String>,
    /// The names that `--gpu_arch_platform` takes, as far as the help lists them.
    pub platforms: Vec<String>,
}

impl Flags {
    /// Reads argparse's help. None if it is no such help.
    pub fn of_help(help: &str) -> Option<Self> {
        let mut flags = BTreeSet::new();
        let mut in_usage = false;
        for line in help.lines() {
            in_usage = line.starts_with("usage:") || (in_usage && line.starts_with(' '));
            // Options begin two spaces in; examples at the end may hold flags too, further in.
            let is_option = line.starts_with("  -");
            let names = match (in_usage, is_option) {
                (true, _) => line,
                // What the option does follows in a column of its own.
                (false, true) => line[2..].split("  ").next().unwrap_or_default(),
                (false, false) => continue,
            };
            let words = names.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')));
            flags.extend(words.filter(|word| is_flag(word)).map(str::to_owned));
        }
        flags.contains("-h").then(|| Flags {
            flags,
            platforms: platforms(help),
        })
    }

    /// The flag that argparse takes `word` for: itself, or the only one that it begins.
    ///
    /// # Errors
    /// The flags that it could be, or none.
    pub fn resolve(&self, word: &str) -> Result<&str, Vec<&str>> {
        if let Some(flag) = self.flags.get(word) {
            return Ok(flag);
        }
        let begun: Vec<&str> = match word.starts_with("--") {
            true => self
                .flags
                .iter()
                .map(String::as_str)
                .filter(|flag| flag.starts_with(word))
                .collect(),
            false => Vec::new(),
        };
        match begun[..] {
            [only] => Ok(only),
            _ => Err(begun),
        }
    }

    /// Whether the generator knows exactly this flag.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(flag)
    }

    /// All flags.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.flags.iter().map(String::as_str)
    }
}

fn is_flag(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// `(available: MI300X, MI325X)` in the help of `--gpu_arch_platform`, wherever the line breaks fall.
fn platforms(help: &str) -> Vec<String> {
    let words: Vec<&str> = help.split_whitespace().collect();
    let Some(begin) = words.iter().position(|word| *word == "(available:") else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for word in &words[begin + 1..] {
        let (word, last) = match word.strip_suffix(')') {
            Some(word) => (word, true),
            None => (*word, false),
        };
        names.push(word.trim_end_matches(',').to_owned());
        if last {
            return names;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
usage: report [-h] --profile_json_path PROFILE_JSON_PATH [-o OUTPUT]
              [--gpu_arch_json_path FILE | --gpu_arch_platform PLATFORM]
              [--enable-origami] [--names [NAMES ...]]

Process a profile; see --elsewhere

options:
  -h, --help            show this help message and exit
  --profile_json_path PROFILE_JSON_PATH
                        Path, required by --not_here
  -o OUTPUT, --output OUTPUT
  --gpu_arch_platform PLATFORM
                        Bundled platform name (available: MI300X,
                        MI325X)
  --top N               use with --neither

Examples:
  TraceLens_generate_perf_report_rocprof --example a \\
      --output_xlsx_path b.xlsx
";

    #[test]
    fn flags_are_those_of_usage_and_options_alone() {
        let flags = Flags::of_help(HELP).unwrap();
        let all: Vec<&str> = flags.iter().collect();
        assert_eq!(
            all,
            [
                "--enable-origami",
                "--gpu_arch_json_path",
                "--gpu_arch_platform",
                "--help",
                "--names",
                "--output",
                "--profile_json_path",
                "--top",
                "-h",
                "-o"
            ]
        );
        assert_eq!(flags.platforms, ["MI300X", "MI325X"]);
        assert_eq!(Flags::of_help("Traceback (most recent call last):"), None);
    }

    #[test]
    fn beginnings_count_where_they_are_of_one_flag() {
        let flags = Flags::of_help(HELP).unwrap();
        assert_eq!(flags.resolve("--prof"), Ok("--profile_json_path"));
        assert_eq!(
            flags.resolve("--gpu_arch"),
            Err(vec!["--gpu_arch_json_path", "--gpu_arch_platform"])
        );
        assert_eq!(flags.resolve("--topk"), Err(vec![]));
    }
}
