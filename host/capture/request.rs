//! One capture request, as Kineto's configuration, as the daemon's JSON and as dyno's arguments (facts/dynolog.md sections 1 and 4).

use serde_json::json;

use super::log_path::LogPath;

/// How much is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// That many training iterations, from the next iteration whose number `roundup` divides.
    Iterations {
        /// How many.
        count: u32,
        /// Where they may begin.
        roundup: u32,
    },
    /// A time in milliseconds.
    Duration(u32),
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The job: SLURM_JOB_ID of its processes, 0 outside of Slurm. The daemon matches nothing across jobs.
    pub job_id: i32,
    /// Only these processes and their descendants; empty: all.
    pub pids: Vec<i32>,
    /// How many processes may be triggered at most.
    pub process_limit: i32,
    /// How much.
    pub window: Window,
    /// When to begin, in milliseconds since 1970; 0: as soon as possible. Only of use for a duration.
    pub start_time_ms: u64,
    /// Input shapes of operators.
    pub record_shapes: bool,
    /// Python stacks.
    pub with_stacks: bool,
    /// Analytical flops.
    pub with_flops: bool,
    /// PyTorch modules.
    pub with_modules: bool,
    /// Memory; with a duration only.
    pub profile_memory: bool,
}

/// Process ids as `--pids` has them: digits, separated by commas.
///
/// # Errors
/// In one sentence.
pub fn parse_pids(text: &str) -> Result<Vec<i32>, String> {
    let pid = |word: &str| match word.trim().parse::<i32>() {
        Ok(pid) if pid > 0 && word.trim().bytes().all(|b| b.is_ascii_digit()) => Ok(pid),
        _ => Err(format!(
            "{word:?} is no process id: digits from 1 to 2147483647, separated by commas, are wanted"
        )),
    };
    text.split(',').map(pid).collect()
}

/// A job id that the daemon can match: it keeps 32 bits, and knows no job arrays.
///
/// # Errors
/// In one sentence.
pub fn parse_job_id(text: &str) -> Result<i32, String> {
    match text.parse::<i32>() {
        Ok(id) if id >= 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(id),
        _ => Err(format!(
            "{text:?} is no job id that dynolog can match: digits up to 2147483647 are wanted (of an array job, the task's own SLURM_JOB_ID)"
        )),
    }
}

impl Request {
    /// Kineto's configuration, as dyno's newest version writes it.
    pub fn config(&self, log_path: &LogPath) -> String {
        let mut lines = vec![format!("ACTIVITIES_LOG_FILE={}", log_path.as_str())];
        match self.window {
            Window::Iterations { count, roundup } => lines.extend([
                "PROFILE_START_ITERATION=0".to_owned(),
                format!("PROFILE_START_ITERATION_ROUNDUP={roundup}"),
                format!("ACTIVITIES_ITERATIONS={count}"),
            ]),
            Window::Duration(ms) => lines.extend([
                format!("PROFILE_START_TIME={}", self.start_time_ms),
                format!("ACTIVITIES_DURATION_MSECS={ms}"),
            ]),
        }
        lines.push(format!("PROFILE_REPORT_INPUT_SHAPES={}", self.record_shapes));
        if let (true, Window::Duration(ms)) = (self.profile_memory, self.window) {
            lines.extend([
                "PROFILE_PROFILE_MEMORY=true".to_owned(),
                "PROFILE_MEMORY=true".to_owned(),
                format!("PROFILE_MEMORY_DURATION_MSECS={ms}"),
            ]);
        }
        lines.push(format!("PROFILE_WITH_STACK={}", self.with_stacks));
        lines.push(format!("PROFILE_WITH_FLOPS={}", self.with_flops));
        lines.push(format!("PROFILE_WITH_MODULES={}", self.with_modules));
        lines.join("\n")
    }

    /// The daemon's JSON for asking which processes would match: with a limit of 0 none is triggered (facts/dynolog.md section 2).
    pub fn census(&self) -> String {
        self.document("", 0)
    }

    /// The daemon's JSON.
    pub fn json(&self, log_path: &LogPath) -> String {
        self.document(&self.config(log_path), self.process_limit)
    }

    fn document(&self, config: &str, process_limit: i32) -> String {
        let everyone = [0];
        let pids: &[i32] = if self.pids.is_empty() { &everyone } else { &self.pids };
        json!({
            "fn": "setKinetOnDemandRequest", "config": config, "job_id": self.job_id,
            "pids": pids, "process_limit": process_limit,
        })
        .to_string()
    }

    /// The arguments of `dyno gputrace`, options and values as words of their own. `has` says whether this dyno knows a flag.
    pub fn dyno_arguments(&self, log_path: &LogPath, has: impl Fn(&str) -> bool) -> Vec<String> {
        let mut words = vec!["--job-id".to_owned(), self.job_id.to_string()];
        words.extend(["--log-file".to_owned(), log_path.as_str().to_owned()]);
        words.extend(["--process-limit".to_owned(), self.process_limit.to_string()]);
        if !self.pids.is_empty() {
            let pids: Vec<String> = self.pids.iter().map(i32::to_string).collect();
            words.extend(["--pids".to_owned(), pids.join(",")]);
        }
        match self.window {
            Window::Iterations { count, roundup } => {
                words.extend(["--iterations".to_owned(), count.to_string()]);
                if roundup != 1 {
                    words.extend(["--profile-start-iteration-roundup".to_owned(), roundup.to_string()]);
                }
            }
            Window::Duration(ms) => {
                words.extend(["--duration-ms".to_owned(), ms.to_string()]);
                if self.start_time_ms > 0 {
                    words.extend(["--profile-start-time".to_owned(), self.start_time_ms.to_string()]);
                }
            }
        }
        let wanted = self.optional_flags();
        words.extend(wanted.into_iter().filter(|flag| has(flag)).map(str::to_owned));
        words
    }

    /// The flags wanted that dyno before 0.3.1 does not know.
    pub fn optional_flags(&self) -> Vec<&'static str> {
        [
            (self.record_shapes, "--record-shapes"),
            (self.with_stacks, "--with-stacks"),
            (self.with_modules, "--with-modules"),
            (self.with_flops, "--with-flops"),
            (self.profile_memory, "--profile-memory"),
        ]
        .into_iter()
        .filter_map(|(wanted, flag)| wanted.then_some(flag))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn request(window: Window) -> Request {
        Request {
            job_id: 77,
            pids: vec![1, 2],
            process_limit: 3,
            window,
            start_time_ms: 0,
            record_shapes: false,
            with_stacks: false,
            with_flops: false,
            with_modules: false,
            profile_memory: false,
        }
    }

    #[test]
    fn the_configuration_is_the_one_that_dyno_sends() {
        let log = LogPath::new(Path::new("/tmp"), "trace.json").unwrap();
        // The two recorded requests of dyno HEAD, facts/dynolog.md section 4.
        let flags = "PROFILE_REPORT_INPUT_SHAPES=false\nPROFILE_WITH_STACK=false\nPROFILE_WITH_FLOPS=false\nPROFILE_WITH_MODULES=false";
        assert_eq!(
            request(Window::Duration(500)).config(&log),
            format!(
                "ACTIVITIES_LOG_FILE=/tmp/trace.json\nPROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=500\n{flags}"
            )
        );
        let iterations = request(Window::Iterations { count: 3, roundup: 1 });
        assert_eq!(
            iterations.config(&log),
            format!(
                "ACTIVITIES_LOG_FILE=/tmp/trace.json\nPROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\n\
                 ACTIVITIES_ITERATIONS=3\n{flags}"
            )
        );
        let sent: serde_json::Value = serde_json::from_str(&iterations.json(&log)).unwrap();
        assert_eq!((&sent["pids"], &sent["job_id"]), (&json!([1, 2]), &json!(77)));
    }

    #[test]
    fn numbers_that_the_daemon_would_narrow_are_refused() {
        assert_eq!(parse_pids("1, 2,2147483647"), Ok(vec![1, 2, i32::MAX]));
        for bad in ["", "0", "-5", "+5", "4101.9", "4294971397", "abc", "1,,2", "\"4101\""] {
            assert!(parse_pids(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_job_id("0"), Ok(0));
        for bad in ["", "123_4", "4294967373", "-1", "+1"] {
            assert!(parse_job_id(bad).is_err(), "{bad}");
        }
    }
}
