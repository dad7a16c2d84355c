//! TraceLens in an interpreter's environment, and how it is to be used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};

use super::child;
use super::extra::Extra;
use super::flags::Flags;
use super::generator::Generator;
use super::help_cache::HelpCache;
use super::interpreter::Interpreter;
use super::outcome::last_words;

/// A generator that has not printed its help by then does not count on being asked: its imports take a second, or some ten from a
/// slow file system.
const HELP_TIME: Duration = Duration::from_secs(120);

/// What the user wants of TraceLens.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The GPU that rooflines are drawn for, by the name that TraceLens gives it.
    pub gpu_arch: Option<String>,
    /// Whether the report on a Kineto trace has a study of short kernels. The one on a rocprofv3 trace always has.
    pub short_kernel_study: bool,
    /// Options that the user hands on.
    pub extra: Extra,
    /// Perfetto's traceconv, if there is one.
    pub traceconv: Option<PathBuf>,
}

/// TraceLens in an interpreter's environment, and how it is to be used.
#[derive(Debug, Clone)]
pub struct Driver {
    /// The interpreter.
    pub interpreter: Interpreter,
    /// What the user wants of it.
    pub settings: Settings,
    /// The flags of the generators that were asked for theirs, by script.
    known: BTreeMap<String, Flags>,
}

impl Driver {
    /// A driver that knows nothing of flags yet.
    pub fn new(interpreter: Interpreter, settings: Settings) -> Self {
        Driver {
            interpreter,
            settings,
            known: BTreeMap::new(),
        }
    }

    /// Finds out which flags `generators` know, from the cache in `cache_folder` or from their `--help`. One that does not answer
    /// is taken to know every flag that tracemend uses; it will say itself what is wrong with it.
    pub fn learn(&mut self, generators: &[Generator], cache_folder: Option<&Path>, scratch: &Path) {
        let is_new = |generator: &Generator, known: &BTreeMap<String, Flags>| !known.contains_key(generator.script());
        if !generators.iter().any(|generator| is_new(generator, &self.known)) {
            return;
        }
        let cache = HelpCache::of(&self.interpreter, cache_folder);
        let mut cached = cache.read();
        let mut asked: Vec<Generator> = generators.iter().copied().filter(|one| is_new(one, &cached)).collect();
        asked.sort_unstable();
        asked.dedup();
        if !asked.is_empty() {
            cached.extend(self.ask(&asked, scratch));
            cache.write(&cached);
        }
        // No others: what is known shapes command lines, and whether a run is the same as an earlier one (--resume).
        let wanted = generators.iter().map(|generator| generator.script());
        self.known
            .extend(wanted.filter_map(|script| cached.remove_entry(script)));
    }

    fn ask(&self, generators: &[Generator], scratch: &Path) -> Vec<(String, Flags)> {
        let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..workers.min(generators.len()) {
                scope.spawn(|| {
                    while let Some(&generator) = generators.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let help = self.help(generator, scratch);
                        if let Some(flags) = help.and_then(|help| Flags::of_help(&help))
                            && let Ok(mut answers) = answers.lock()
                        {
                            answers.push((generator.script().to_owned(), flags));
                        }
                    }
                });
            }
        });
        answers.into_inner().unwrap_or_default()
    }

    fn help(&self, generator: Generator, scratch: &Path) -> Option<String> {
        let mut answer = tempfile::tempfile_in(scratch).ok()?;
        let mut command = self.interpreter.command(generator, scratch);
        command
            .arg("--help")
            .stdout(answer.try_clone().ok()?)
            .stderr(Stdio::null());
        // No colours and no narrow terminal's line breaks.
        command
            .env("NO_COLOR", "1")
            .env_remove("FORCE_COLOR")
            .env("COLUMNS", "200");
        let ended = child::run(&mut command, Some(HELP_TIME)).ok()?;
        let help = last_words(&mut answer, 0).ok()?;
        ended.status.success().then_some(help)
    }

    /// What `generator` knows, if it was asked and answered.
    pub fn flags(&self, generator: Generator) -> Option<&Flags> {
        self.known.get(generator.script())
    }

    /// Whether `generator` may be given `flag`.
    pub fn knows(&self, generator: Generator, flag: &str) -> bool {
        self.flags(generator).is_none_or(|flags| flags.has(flag))
    }

    /// The options handed on that some of `generators` do not know: each with those that get it and those that do not.
    pub fn not_for_all(&self, generators: &[Generator]) -> Vec<(&str, Vec<Generator>, Vec<Generator>)> {
        let extra = &self.settings.extra;
        let with_flags = generators.iter().filter_map(|&one| Some((one, self.flags(one)?)));
        let with_flags: Vec<_> = with_flags.filter(|(generator, _)| extra.is_for(*generator)).collect();
        let split = extra.flags().map(|flag| {
            let (get, lack): (Vec<_>, Vec<_>) = with_flags.iter().partition(|(_, flags)| flags.resolve(flag).is_ok());
            let names = |list: Vec<&(Generator, &Flags)>| list.into_iter().map(|(generator, _)| *generator).collect();
            (flag, names(get), names(lack))
        });
        split.filter(|(_, _, lack): &(_, _, Vec<_>)| !lack.is_empty()).collect()
    }

    /// Checks the settings against what `generators` know: the architecture's name, and the options handed on.
    ///
    /// # Errors
    /// When a report would be lost to them.
    pub fn check(&self, generators: &[Generator]) -> Result<()> {
        if let Some(wanted) = &self.settings.gpu_arch {
            self.check_gpu_arch(wanted, generators)?;
        }
        let known: Vec<(Generator, &Flags)> = generators
            .iter()
            .filter_map(|&generator| Some((generator, self.flags(generator)?)))
            .collect();
        self.settings.extra.check(&known)
    }

    fn check_gpu_arch(&self, wanted: &str, generators: &[Generator]) -> Result<()> {
        let takers = [Generator::Pytorch, Generator::Jax];
        let takers = takers.into_iter().filter(|taker| generators.contains(taker));
        let takers: Vec<&Flags> = takers.filter_map(|generator| self.flags(generator)).collect();
        if takers.iter().any(|flags| !flags.has(GPU_ARCH)) {
            bail!("this TraceLens has no {GPU_ARCH}; leave out --gpu-arch, or update TraceLens");
        }
        let platforms: Vec<&String> = takers.iter().flat_map(|flags| &flags.platforms).collect();
        if platforms.is_empty() || platforms.iter().any(|platform| *platform == wanted) {
            return Ok(());
        }
        if let Some(meant) = platforms.iter().find(|platform| platform.eq_ignore_ascii_case(wanted)) {
            bail!("TraceLens knows no GPU {wanted}; it writes {meant}: give --gpu-arch {meant}");
        }
        let mut names: Vec<&str> = platforms.iter().map(|name| name.as_str()).collect();
        names.dedup();
        bail!(
            "TraceLens knows no GPU {wanted}, only {}; leave out --gpu-arch, or hand over a description of yours: -- --gpu_arch_json_path FILE",
            names.join(", ")
        );
    }
}

/// The flag that `--gpu-arch` becomes.
pub(super) const GPU_ARCH: &str = "--gpu_arch_platform";
