//! Which process wrote which trace.

use std::collections::HashMap;

use crate::manifest::Manifest;
use crate::verdict::{self, Verdict};

/// A manifest's process as a trace's owner.
#[derive(Debug, PartialEq)]
pub enum Owner<'m> {
    /// This one, on that host.
    Process(&'m Verdict, Option<&'m str>),
    /// One of several; the text says which.
    Several(String),
    /// None that a manifest knows.
    Nobody,
}

/// The manifests of a run by folder.
#[derive(Debug, Default)]
pub struct Folders<'p> {
    folders: HashMap<&'p str, Folder>,
}

/// What the manifests of one folder say.
#[derive(Debug)]
struct Folder {
    verdicts: Vec<Verdict>,
    hosts: Vec<Option<String>>,
    /// Positions in `verdicts`.
    by_trace: HashMap<String, Vec<usize>>,
    by_pid: HashMap<u32, Vec<usize>>,
}

impl<'p> Folders<'p> {
    /// Takes the manifests with the paths of their files.
    pub fn new(manifests: Vec<(&'p str, Manifest)>) -> Self {
        let mut by_folder: HashMap<&str, Vec<Manifest>> = HashMap::new();
        for (path, manifest) in manifests {
            by_folder.entry(parent(path)).or_default().push(manifest);
        }
        let folders = by_folder
            .into_iter()
            .map(|(name, manifests)| (name, Folder::new(&manifests)));
        Folders {
            folders: folders.collect(),
        }
    }

    /// Who wrote the trace at `path`, by the nearest manifests that know it.
    pub fn owner(&self, path: &str) -> Owner<'_> {
        let file = path.rsplit('/').next().unwrap_or(path);
        let mut below = path;
        while !below.is_empty() && !self.folders.is_empty() {
            below = parent(below);
            match self.folders.get(below).map(|folder| folder.owner(file)) {
                None | Some(Owner::Nobody) => {}
                Some(owner) => return owner,
            }
        }
        Owner::Nobody
    }

    /// Whether there is no manifest in the run.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }
}

impl Folder {
    fn new(manifests: &[Manifest]) -> Self {
        let mut folder = Folder {
            verdicts: verdict::all(manifests),
            hosts: Vec::new(),
            by_trace: HashMap::new(),
            by_pid: HashMap::new(),
        };
        for manifest in manifests {
            for process in &manifest.processes {
                let position = folder.hosts.len();
                folder.hosts.push(manifest.host.clone());
                if let Some(trace) = &process.trace {
                    folder
                        .by_trace
                        .entry(stored(trace).to_owned())
                        .or_default()
                        .push(position);
                }
                for pid in &process.pids {
                    folder.by_pid.entry(*pid).or_default().push(position);
                }
            }
        }
        folder
    }

    fn owner(&self, file: &str) -> Owner<'_> {
        let file = stored(file);
        let by_name = self.by_trace.get(file).map(|found| (found, format!("write {file}")));
        let found = by_name.or_else(|| {
            let pid = pid_in(file)?;
            Some((self.by_pid.get(&pid)?, format!("have pid {pid}")))
        });
        match found {
            None => Owner::Nobody,
            Some((positions, what)) => match positions[..] {
                [only] => Owner::Process(&self.verdicts[only], self.hosts[only].as_deref()),
                _ => Owner::Several(format!("{} processes of the manifests {what}", positions.len())),
            },
        }
    }
}

/// A file name as it was before somebody compressed the file.
fn stored(file: &str) -> &str {
    file.strip_suffix(".gz").unwrap_or(file)
}

/// The folder that holds what is at `path`; empty for the run itself.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The process id that Kineto puts before the ending: `x_4711.json`, `x_4711.pt.trace.json` (facts/traces.md, C8).
fn pid_in(file: &str) -> Option<u32> {
    let stem = file.strip_suffix(".json")?;
    let stem = stem.strip_suffix(".pt.trace").unwrap_or(stem);
    let (_, digits) = stem.rsplit_once('_')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Process;

    fn host(name: &str, processes: &[(&[u32], u32, Option<&str>)]) -> Manifest {
        let process = |(pids, rank, trace): &(&[u32], u32, Option<&str>)| Process {
            pids: pids.to_vec(),
            rank: Some(*rank),
            trace: trace.map(str::to_owned),
            ..Process::default()
        };
        Manifest {
            host: Some(name.into()),
            processes: processes.iter().map(process).collect(),
        }
    }

    fn rank(folders: &Folders, path: &str) -> Option<(u32, Option<String>)> {
        match folders.owner(path) {
            Owner::Process(Verdict::Rank { rank, .. }, host) => Some((*rank, host.map(str::to_owned))),
            _ => None,
        }
    }

    #[test]
    fn a_trace_is_found_by_its_name_then_by_its_pid() {
        let folders = Folders::new(vec![(
            "a/tracemend-manifest-n.json",
            host("n", &[(&[300, 7], 3, None), (&[301], 4, Some("x_300.json"))]),
        )]);
        let n = |rank| Some((rank, Some("n".to_owned())));
        assert_eq!(rank(&folders, "a/x_300.json"), n(4));
        assert_eq!(rank(&folders, "a/x_300.json.gz"), n(4));
        assert_eq!(rank(&folders, "a/y_300.json"), n(3));
        assert_eq!(rank(&folders, "a/y_7.pt.trace.json.gz"), n(3));
        assert_eq!(rank(&folders, "a/b/c/y_301.json"), n(4));
        for path in [
            "y_300.json",
            "b/y_300.json",
            "a/y_302.json",
            "a/y300.json",
            "a/300.json",
            "a/y_+7.json",
            "a/y_.json",
            "",
        ] {
            assert_eq!(folders.owner(path), Owner::Nobody, "{path}");
        }
    }

    #[test]
    fn the_nearest_manifest_that_knows_the_trace_counts() {
        let folders = Folders::new(vec![
            ("m.json", host("top", &[(&[300], 0, None), (&[301], 1, None)])),
            ("a/m.json", host("a", &[(&[300], 5, None)])),
        ]);
        assert_eq!(rank(&folders, "a/b/x_300.json"), Some((5, Some("a".into()))));
        assert_eq!(rank(&folders, "a/b/x_301.json"), Some((1, Some("top".into()))));
        assert_eq!(rank(&folders, "c/x_300.json"), Some((0, Some("top".into()))));
    }

    #[test]
    fn where_several_fit_none_does() {
        let folders = Folders::new(vec![
            ("m1.json", host("n1", &[(&[1], 0, Some("n1_1.json"))])),
            (
                "m2.json",
                host("n2", &[(&[1], 1, Some("n2_1.json")), (&[2], 2, Some("n1_1.json"))]),
            ),
        ]);
        assert_eq!(rank(&folders, "n2_1.json"), Some((1, Some("n2".into()))));
        assert_eq!(
            folders.owner("x_1.json"),
            Owner::Several("2 processes of the manifests have pid 1".into())
        );
        assert_eq!(
            folders.owner("n1_1.json"),
            Owner::Several("2 processes of the manifests write n1_1.json".into())
        );
    }

    #[test]
    fn a_run_without_manifests_has_no_owners() {
        assert!(Folders::default().is_empty());
        assert_eq!(Folders::default().owner(&"a/".repeat(2048)), Owner::Nobody);
    }
}
