//! Words for TraceLens that the user gives after `--`: each generator gets those options of them that it knows.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use anyhow::{Result, bail};

use super::flags::Flags;
use super::generator::Generator;

/// Options in the order given.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    options: Vec<ExtraOption>,
    /// The generators that they are for; none: all.
    only_for: Vec<Generator>,
}

#[derive(Debug, Clone)]
struct ExtraOption {
    flag: String,
    /// `--flag=value`, in one word.
    joined: Option<OsString>,
    values: Vec<OsString>,
}

/// Flags that tracemend sets itself, and what to give instead.
const OURS: [(&str, &str); 16] = [
    ("--help", "see the generator's own"),
    ("-h", "see the generator's own"),
    ("--profile_json_path", "tracemend chooses the trace"),
    ("--profile_path", "tracemend chooses the trace"),
    ("--trace_path", "tracemend chooses the trace"),
    ("--trace_dir", "tracemend chooses the traces"),
    ("--trace_pattern", "tracemend chooses the traces"),
    ("--trace_glob", "tracemend chooses the traces"),
    ("--rank_regex", "tracemend chooses the traces"),
    ("--world_size", "give --world-size, before the --"),
    ("--output_xlsx_path", "give --output-dir, before the --"),
    ("--output_csvs_dir", "give --output-dir, before the --"),
    ("--output_md_path", "give --output-dir, before the --"),
    ("--write_md", "the activity report has its Markdown anyway"),
    ("--traceconv", "give --traceconv, before the --"),
    ("--gpu_arch_platform", "give --gpu-arch, before the --"),
];

impl Extra {
    /// Reads the words after `--`. Paths are made absolute: TraceLens runs in a folder of its own.
    ///
    /// # Errors
    /// When they do not begin with a flag, or a flag is one that tracemend sets itself.
    pub fn parse(words: &[OsString], only_for: Vec<Generator>) -> Result<Self> {
        let mut options: Vec<ExtraOption> = Vec::new();
        for word in words {
            if let Some((flag, joined)) = flag_of(word) {
                let flag = String::from_utf8_lossy(flag).into_owned();
                if let Some((_, instead)) = OURS.iter().find(|(ours, _)| *ours == flag) {
                    bail!("{flag} is not to be given after --: {instead}");
                }
                let joined = joined.map(|value| absolute(&flag, OsStr::from_bytes(value)));
                options.push(ExtraOption {
                    flag,
                    joined,
                    values: Vec::new(),
                });
            } else if let Some(option) = options.last_mut() {
                let value = absolute(&option.flag, word);
                option.values.push(value);
            } else {
                bail!(
                    "the words after -- are options for TraceLens, such as -- --topk_ops 50; {} is none",
                    word.display()
                );
            }
        }
        Ok(Extra { options, only_for })
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.options.is_empty()
    }

    /// Whether `generator` is to get any.
    pub fn is_for(&self, generator: Generator) -> bool {
        !self.is_empty() && (self.only_for.is_empty() || self.only_for.contains(&generator))
    }

    /// Checks every option against the generators that it is for: those named must know it, else at least one.
    ///
    /// # Errors
    /// When an option is known nowhere, or not where it was sent, or could be several.
    pub fn check(&self, known: &[(Generator, &Flags)]) -> Result<()> {
        for option in &self.options {
            let sent_to: Vec<_> = known.iter().filter(|(generator, _)| self.is_for(*generator)).collect();
            let unknown: Vec<_> = sent_to
                .iter()
                .filter(|(_, flags)| flags.resolve(&option.flag).is_err())
                .collect();
            let bad = if self.only_for.is_empty() {
                unknown.len() == sent_to.len() && !sent_to.is_empty()
            } else {
                !unknown.is_empty()
            };
            if !bad {
                continue;
            }
            if let Some(several) = unknown
                .iter()
                .find_map(|(_, flags)| flags.resolve(&option.flag).err().filter(|several| !several.is_empty()))
            {
                bail!(
                    "{} after -- may be {}; give the whole name",
                    option.flag,
                    several.join(" or ")
                );
            }
            let alike = closest(&option.flag, sent_to.iter().flat_map(|(_, flags)| flags.iter()));
            let alike = alike.map(|flag| format!("; {flag} is alike")).unwrap_or_default();
            let whom = match &unknown[..] {
                [(generator, _)] => generator.script(),
                _ => "any of TraceLens's generators",
            };
            let negation = if whom.starts_with("any") {
                "is not known to"
            } else {
                "is unknown to"
            };
            bail!("{} after -- {negation} {whom}{alike}", option.flag);
        }
        Ok(())
    }

    /// The words for `generator`, which has `flags` if that is known.
    pub fn words_for(&self, generator: Generator, flags: Option<&Flags>) -> Vec<OsString> {
        let mut words = Vec::new();
        if !self.is_for(generator) {
            return words;
        }
        for option in &self.options {
            let flag = match flags.map(|flags| flags.resolve(&option.flag)) {
                Some(Ok(flag)) => flag,
                None => &option.flag,
                Some(Err(_)) => continue,
            };
            let mut word = OsString::from(flag);
            if let Some(joined) = &option.joined {
                word.push("=");
                word.push(joined);
            }
            words.push(word);
            words.extend(option.values.iter().cloned());
        }
        words
    }

    /// The flags, as given.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        self.options.iter().map(|option| option.flag.as_str())
    }
}

/// The flag that a word is, and its value if that is joined to it. A negative number is a value.
fn flag_of(word: &OsStr) -> Option<(&[u8], Option<&[u8]>)> {
    let bytes = word.as_bytes();
    if !bytes.starts_with(b"-") || bytes.len() < 2 || bytes[1].is_ascii_digit() || bytes[1] == b'.' {
        return None;
    }
    Some(match memchr::memchr(b'=', bytes) {
        Some(at) if bytes.starts_with(b"--") => (&bytes[..at], Some(&bytes[at + 1..])),
        _ => (bytes, None),
    })
}

/// The value of a flag for a path, if it names something seen from here, as an absolute path.
fn absolute(flag: &str, value: &OsStr) -> OsString {
    let is_path = ["_path", "_file", "_dir"].iter().any(|ending| flag.ends_with(ending));
    match std::path::absolute(value) {
        Ok(path) if is_path && path.exists() => path.into_os_string(),
        _ => OsString::from_vec(value.as_bytes().to_vec()),
    }
}

fn closest<'a>(flag: &str, flags: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    flags
        .map(|known| (strsim::damerau_levenshtein(flag, known), known))
        .filter(|(distance, _)| *distance <= 3)
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extra(words: &[&str], only_for: &[Generator]) -> Result<Extra> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        Extra::parse(&words, only_for.to_vec())
    }

    fn flags(names: &str) -> Flags {
        Flags::of_help(&format!("usage: x [-h] {names}\n")).unwrap()
    }

    #[test]
    fn each_generator_gets_what_it_knows() {
        let extra = extra(&["--topk_ops", "50", "--min_tid", "-5", "--disable=a"], &[]).unwrap();
        let (pytorch, activity) = (flags("[--topk_ops N] [--disable_coll X]"), flags("[--min_tid N]"));
        assert_eq!(
            extra.words_for(Generator::Pytorch, Some(&pytorch)),
            ["--topk_ops", "50", "--disable_coll=a"]
        );
        assert_eq!(
            extra.words_for(Generator::HipActivity, Some(&activity)),
            ["--min_tid", "-5"]
        );
        let known = [(Generator::Pytorch, &pytorch), (Generator::HipActivity, &activity)];
        assert!(extra.check(&known).is_ok());
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        let pytorch = flags("[--topk_ops N] [--topk_short N]");
        let rocprof = flags("[--topk_kernels N]");
        let known = [(Generator::Pytorch, &pytorch), (Generator::Rocprof, &rocprof)];
        let refused = |words: &[&str], only_for: &[Generator]| {
            extra(words, only_for)
                .and_then(|extra| extra.check(&known))
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&["--topk_opps"], &[]).contains("--topk_ops is alike"));
        assert!(
            refused(&["--topk_ops"], &[Generator::Rocprof])
                .contains("unknown to TraceLens_generate_perf_report_rocprof")
        );
        assert!(refused(&["--topk"], &[Generator::Pytorch]).contains("may be --topk_ops or --topk_short"));
        assert!(refused(&["50"], &[]).contains("50 is none"));
        assert!(refused(&["--output_csvs_dir", "x"], &[]).contains("give --output-dir"));
    }
}
