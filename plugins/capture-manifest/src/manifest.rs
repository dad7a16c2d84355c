//! The manifest that the capturing side writes: `README.md` beside this crate has the format.

use serde_json::{Map, Value};

/// Version of the format that is read here.
const VERSION: u64 = 1;

/// Numbers that some launchers set instead of a rank, each with its size: Slurm, Open MPI, PMI.
pub const SUBSTITUTES: [(&str, &str); 3] = [
    ("slurm_procid", "slurm_ntasks"),
    ("ompi_comm_world_rank", "ompi_comm_world_size"),
    ("pmi_rank", "pmi_size"),
];

/// What one host's processes were.
#[derive(Debug, Default, PartialEq)]
pub struct Manifest {
    /// The host's name, if it is given.
    pub host: Option<String>,
    /// Its processes.
    pub processes: Vec<Process>,
}

/// What one process was.
#[derive(Debug, Default, PartialEq)]
pub struct Process {
    /// Its id, then those in nested namespaces, each once.
    pub pids: Vec<u32>,
    pub rank: Option<u32>,
    pub world_size: Option<u32>,
    /// Number and size of each of `SUBSTITUTES`.
    pub substitutes: [(Option<u32>, Option<u32>); SUBSTITUTES.len()],
    /// In seconds.
    pub start_time: Option<f64>,
    pub has_gpu: Option<bool>,
    /// File name of its trace, without folders.
    pub trace: Option<String>,
}

/// Reads the JSON texts of a manifest's members and says in `warnings` what of it makes no sense.
///
/// # Errors
/// Why nothing of it can be used.
pub fn read(
    version: &str,
    host: Option<&str>,
    processes: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Manifest, String> {
    let version = json(version);
    if version.as_u64() != Some(VERSION) {
        return Err(format!(
            "its format is version {version}, this tracemend reads version {VERSION}"
        ));
    }
    let processes = processes.ok_or("it has no `processes`, or they are longer than 64 KiB")?;
    let Value::Array(processes) = json(processes) else {
        return Err("its `processes` are no array".into());
    };
    let host = host.map(json).filter(|host| !host.is_null());
    let host = match host {
        Some(Value::String(host)) if !host.is_empty() => Some(host),
        other => {
            let found = other.map_or("absent".to_owned(), |other| other.to_string());
            warnings.push(format!("its `host` should be a name, it is {found}"));
            None
        }
    };
    let mut manifest = Manifest {
        host,
        processes: Vec::new(),
    };
    for (position, process) in (1..).zip(&processes) {
        let mut warn = |what: String| warnings.push(format!("process {position}: {what}"));
        match process.as_object() {
            Some(process) => match Process::read(process, &mut warn) {
                Some(process) => manifest.processes.push(process),
                None => warn("left out, it has no `pid`".into()),
            },
            None => warn("left out, it is no object".into()),
        }
    }
    Ok(manifest)
}

/// What the host found as JSON and hands over as text.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

impl Process {
    fn read(process: &Map<String, Value>, warn: &mut impl FnMut(String)) -> Option<Self> {
        let pid = member(process, "pid", warn, small_integer)?;
        let mut pids = vec![pid];
        let nested = member(process, "ns_pids", warn, |value| {
            value.as_array()?.iter().map(small_integer).collect::<Option<Vec<_>>>()
        });
        for pid in nested.unwrap_or_default() {
            if !pids.contains(&pid) {
                pids.push(pid);
            }
        }
        let trace = member(process, "trace", warn, |value| value.as_str().map(str::to_owned));
        let trace = trace.and_then(|path| path.rsplit('/').next().map(str::to_owned));
        Some(Process {
            pids,
            rank: member(process, "rank", warn, small_integer),
            world_size: member(process, "world_size", warn, small_integer),
            substitutes: SUBSTITUTES.map(|(number, size)| {
                let number = member(process, number, warn, small_integer);
                (number, member(process, size, warn, small_integer))
            }),
            start_time: member(process, "start_time", warn, Value::as_f64),
            has_gpu: member(process, "has_gpu", warn, Value::as_bool),
            trace: trace.filter(|name| !name.is_empty()),
        })
    }

    /// The id by which the capturing side knows it.
    pub fn pid(&self) -> u32 {
        self.pids[0]
    }
}

/// A member that may be absent or null; of another type than `take` takes, it is told and counts as absent.
fn member<T>(
    process: &Map<String, Value>,
    key: &str,
    warn: &mut impl FnMut(String),
    take: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let value = process.get(key).filter(|value| !value.is_null())?;
    let taken = take(value);
    if taken.is_none() {
        warn(format!("`{key}` cannot be {value}"));
    }
    taken
}

fn small_integer(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|n| u32::try_from(n).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(version: &str, host: Option<&str>, processes: Option<&str>) -> (Result<Manifest, String>, Vec<String>) {
        let mut warnings = Vec::new();
        let manifest = read(version, host, processes, &mut warnings);
        (manifest, warnings)
    }

    #[test]
    fn a_whole_manifest_is_read() {
        let processes = r#"[{"pid": 4711, "ns_pids": [4711, 7], "rank": 3, "local_rank": 3, "world_size": 8,
            "slurm_procid": 3, "slurm_ntasks": 8, "pmi_rank": null, "start_time": 1724300000.25, "has_gpu": true,
            "trace": "/tmp/x/libkineto_trace_4711.json", "later": {"a": []}}, {"pid": 1}]"#;
        let (manifest, warnings) = read_all("1", Some("\"n01\""), Some(processes));
        let expected = Process {
            pids: vec![4711, 7],
            rank: Some(3),
            world_size: Some(8),
            substitutes: [(Some(3), Some(8)), (None, None), (None, None)],
            start_time: Some(1_724_300_000.25),
            has_gpu: Some(true),
            trace: Some("libkineto_trace_4711.json".into()),
        };
        let bare = Process {
            pids: vec![1],
            ..Process::default()
        };
        let host = Some("n01".into());
        assert_eq!(
            manifest,
            Ok(Manifest {
                host,
                processes: vec![expected, bare]
            })
        );
        assert_eq!(warnings, [""; 0]);
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let refused = |version, processes| read_all(version, Some("\"n\""), processes).0.unwrap_err();
        assert_eq!(
            refused("2", Some("[]")),
            "its format is version 2, this tracemend reads version 1"
        );
        assert_eq!(
            refused("\"1\"", Some("[]")),
            "its format is version \"1\", this tracemend reads version 1"
        );
        assert_eq!(
            refused("1", None),
            "it has no `processes`, or they are longer than 64 KiB"
        );
        assert_eq!(refused("1", Some("{}")), "its `processes` are no array");
    }

    #[test]
    fn a_wrong_type_is_not_known_and_told() {
        let processes = r#"[7, {"rank": 1}, {"pid": "4711"}, {"pid": -1}, {"pid": 5, "rank": "3", "world_size": -8, "ns_pids": [1, "x"],
            "has_gpu": 1, "trace": 3}]"#;
        let (manifest, warnings) = read_all("1", None, Some(processes));
        let known = Process {
            pids: vec![5],
            ..Process::default()
        };
        assert_eq!(manifest.unwrap().processes, [known]);
        assert_eq!(
            warnings,
            [
                "its `host` should be a name, it is absent",
                "process 1: left out, it is no object",
                "process 2: left out, it has no `pid`",
                "process 3: `pid` cannot be \"4711\"",
                "process 3: left out, it has no `pid`",
                "process 4: `pid` cannot be -1",
                "process 4: left out, it has no `pid`",
                "process 5: `ns_pids` cannot be [1,\"x\"]",
                "process 5: `trace` cannot be 3",
                "process 5: `rank` cannot be \"3\"",
                "process 5: `world_size` cannot be -8",
                "process 5: `has_gpu` cannot be 1",
            ]
        );
    }
}
