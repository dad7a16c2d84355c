//! What each process of one folder's manifests was.

use std::collections::BTreeSet;

use crate::manifest::{Manifest, Process, SUBSTITUTES};

/// What a process was.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// A rank of the job.
    Rank {
        rank: u32,
        world_size: Option<u32>,
        certain: bool,
        evidence: String,
    },
    /// What started the ranks; the text says why.
    Launcher(String),
    /// Not to be told; the text says why.
    Unknown(String),
}

/// One verdict for each process, manifest by manifest.
pub fn all(manifests: &[Manifest]) -> Vec<Verdict> {
    let processes: Vec<&Process> = manifests.iter().flat_map(|manifest| &manifest.processes).collect();
    let has_ranks = processes.iter().any(|process| process.rank.is_some());
    let substitute = match has_ranks {
        true => None,
        false => (0..SUBSTITUTES.len()).find(|&which| is_consistent(&processes, which)),
    };
    let mut verdicts = Vec::with_capacity(processes.len());
    for manifest in manifests {
        let host = manifest.host.as_deref().unwrap_or("an unnamed host");
        for process in &manifest.processes {
            let told = |what: String| format!("manifest of {host}: pid {} {what}", process.pid());
            verdicts.push(match process.rank {
                Some(rank) => ranked(manifest, process, rank, told),
                None => unranked(process, has_ranks, substitute, told),
            });
        }
    }
    verdicts
}

fn ranked(manifest: &Manifest, process: &Process, rank: u32, told: impl Fn(String) -> String) -> Verdict {
    if let Some(size) = process.world_size.filter(|size| rank >= *size) {
        return Verdict::Unknown(told(format!("was rank {rank} of {size}, which cannot be")));
    }
    let others = manifest.processes.iter().filter(|other| other.rank == Some(rank));
    match others
        .filter(|other| !std::ptr::eq(*other, process))
        .find_map(|other| heir(process, other))
    {
        None => Verdict::Rank {
            rank,
            world_size: process.world_size,
            certain: true,
            evidence: told(format!("was rank {rank}")),
        },
        Some(Heir::Of(pid)) => Verdict::Unknown(told(format!("only inherited rank {rank} from pid {pid}"))),
        Some(Heir::Perhaps(pid)) => Verdict::Unknown(told(format!("and pid {pid} were both rank {rank}"))),
    }
}

enum Heir {
    Of(u32),
    Perhaps(u32),
}

/// Whether a process has its rank from `other` of the same rank. DataLoader workers inherit RANK: they hold no GPU, and are younger
/// (facts/dynolog.md section 7).
fn heir(process: &Process, other: &Process) -> Option<Heir> {
    match (process.has_gpu, other.has_gpu) {
        (Some(true), Some(true)) => None,
        (Some(true), _) => None,
        (_, Some(true)) => Some(Heir::Of(other.pid())),
        _ => match (process.start_time, other.start_time) {
            (Some(own), Some(others)) if own < others => None,
            (Some(own), Some(others)) if own > others => Some(Heir::Of(other.pid())),
            _ => Some(Heir::Perhaps(other.pid())),
        },
    }
}

fn unranked(process: &Process, has_ranks: bool, substitute: Option<usize>, told: impl Fn(String) -> String) -> Verdict {
    let found = substitute.and_then(|which| Some((which, process.substitutes[which].0?)));
    if let Some((which, rank)) = found {
        let (name, _) = SUBSTITUTES[which];
        return Verdict::Rank {
            rank,
            world_size: size_of(process, which),
            certain: false,
            evidence: told(format!("was {name} {rank}")),
        };
    }
    if has_ranks || substitute.is_some() {
        return match process.has_gpu {
            Some(true) => Verdict::Unknown(told("had a GPU but no rank".into())),
            _ => Verdict::Launcher(told("had no rank".into())),
        };
    }
    let set = (0..SUBSTITUTES.len()).find_map(|which| Some((SUBSTITUTES[which].0, process.substitutes[which].0?)));
    Verdict::Unknown(match set {
        Some((name, number)) => told(format!("had no rank, and {name} {number} is not proved to be one")),
        None => told("had no rank".into()),
    })
}

/// The size of a substitute, else the world size.
fn size_of(process: &Process, which: usize) -> Option<u32> {
    process.substitutes[which].1.or(process.world_size)
}

/// Whether a substitute can be the rank. Under torchrun SLURM_PROCID counts nodes, and workers share their launcher's: so it must
/// differ for all that have it and lie below one size; and it must run from 0 to the last, or its size be the world size.
fn is_consistent(processes: &[&Process], which: usize) -> bool {
    let having: Vec<&Process> = processes
        .iter()
        .copied()
        .filter(|process| process.substitutes[which].0.is_some())
        .collect();
    let numbers: BTreeSet<u32> = having
        .iter()
        .filter_map(|process| process.substitutes[which].0)
        .collect();
    let sizes: BTreeSet<u32> = having
        .iter()
        .flat_map(|process| [process.substitutes[which].1, process.world_size])
        .flatten()
        .collect();
    let (Some(&last), [size]) = (numbers.last(), &Vec::from_iter(sizes)[..]) else {
        return false;
    };
    let all_told = having.iter().all(|process| size_of(process, which).is_some());
    let runs_whole = numbers.len() as u64 == u64::from(*size);
    let is_world = having
        .iter()
        .all(|process| process.substitutes[which].1.is_some() && process.world_size.is_some());
    all_told && numbers.len() == having.len() && last < *size && (runs_whole || is_world)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(host: &str, processes: Vec<Process>) -> Manifest {
        Manifest {
            host: Some(host.into()),
            processes,
        }
    }

    fn process(pid: u32, rank: Option<u32>) -> Process {
        Process {
            pids: vec![pid],
            rank,
            ..Process::default()
        }
    }

    fn slurm(pid: u32, number: u32, tasks: Option<u32>, world_size: Option<u32>) -> Process {
        Process {
            pids: vec![pid],
            world_size,
            substitutes: [(Some(number), tasks), (None, None), (None, None)],
            ..Process::default()
        }
    }

    fn ranks(verdicts: &[Verdict]) -> Vec<Option<(u32, bool)>> {
        verdicts
            .iter()
            .map(|verdict| match verdict {
                Verdict::Rank { rank, certain, .. } => Some((*rank, *certain)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn ranks_are_certain_and_what_has_none_beside_them_is_the_launcher() {
        let verdicts = all(&[manifest("n01", vec![process(1, None), process(2, Some(3))])]);
        assert_eq!(
            verdicts,
            [
                Verdict::Launcher("manifest of n01: pid 1 had no rank".into()),
                Verdict::Rank {
                    rank: 3,
                    world_size: None,
                    certain: true,
                    evidence: "manifest of n01: pid 2 was rank 3".into()
                }
            ]
        );
        let with_gpu = Process {
            has_gpu: Some(true),
            ..process(1, None)
        };
        let verdicts = all(&[manifest("n01", vec![with_gpu, process(2, Some(3))])]);
        assert_eq!(
            verdicts[0],
            Verdict::Unknown("manifest of n01: pid 1 had a GPU but no rank".into())
        );
        assert_eq!(
            all(&[manifest("n01", vec![process(1, None)])]),
            [Verdict::Unknown("manifest of n01: pid 1 had no rank".into())]
        );
    }

    #[test]
    fn a_rank_outside_of_its_world_is_none() {
        let outside = Process {
            world_size: Some(8),
            ..process(2, Some(8))
        };
        assert_eq!(
            all(&[manifest("n", vec![outside])]),
            [Verdict::Unknown(
                "manifest of n: pid 2 was rank 8 of 8, which cannot be".into()
            )]
        );
    }

    #[test]
    fn a_rank_is_not_inherited() {
        let with = |pid, has_gpu, start_time| Process {
            has_gpu,
            start_time,
            ..process(pid, Some(3))
        };
        let told = |first, second| ranks(&all(&[manifest("n", vec![first, second])]));
        let (kept, lost) = (Some((3, true)), None);
        assert_eq!(
            told(with(1, Some(true), None), with(2, Some(false), None)),
            [kept, lost]
        );
        assert_eq!(told(with(1, None, None), with(2, Some(true), None)), [lost, kept]);
        assert_eq!(told(with(1, None, Some(7.5)), with(2, None, Some(7.0))), [lost, kept]);
        assert_eq!(told(with(1, None, Some(7.0)), with(2, None, Some(7.0))), [lost, lost]);
        assert_eq!(told(with(1, None, None), with(2, None, None)), [lost, lost]);
        assert_eq!(told(with(1, Some(true), None), with(2, Some(true), None)), [kept, kept]);
        let apart = all(&[
            manifest("a", vec![process(1, Some(3))]),
            manifest("b", vec![process(1, Some(3))]),
        ]);
        assert_eq!(ranks(&apart), [kept, kept]);
    }

    #[test]
    fn a_substitute_must_be_consistent() {
        let told = |manifests: Vec<Vec<Process>>| {
            let manifests: Vec<Manifest> = manifests
                .into_iter()
                .map(|processes| manifest("n", processes))
                .collect();
            ranks(&all(&manifests))
        };
        // srun with one task a GPU, two nodes.
        let nodes = vec![
            vec![slurm(1, 0, Some(4), None), slurm(2, 1, Some(4), None)],
            vec![slurm(1, 2, Some(4), None), slurm(2, 3, Some(4), None)],
        ];
        assert_eq!(
            told(nodes),
            [Some((0, false)), Some((1, false)), Some((2, false)), Some((3, false))]
        );
        // torchrun under srun: workers share their launcher's number.
        assert_eq!(
            told(vec![vec![slurm(1, 0, Some(1), None), slurm(2, 0, Some(1), None)]]),
            [None, None]
        );
        // One process of each node: the numbers count nodes of a bigger world.
        let one_a_node = vec![
            vec![slurm(1, 0, Some(2), Some(16))],
            vec![slurm(1, 1, Some(2), Some(16))],
        ];
        assert_eq!(told(one_a_node), [None, None]);
        assert_eq!(
            told(vec![
                vec![slurm(1, 0, None, Some(16))],
                vec![slurm(1, 1, None, Some(16))]
            ]),
            [None, None]
        );
        // One node of two; that the tasks are the world is said.
        assert_eq!(
            told(vec![vec![slurm(1, 2, Some(4), Some(4)), slurm(2, 3, Some(4), Some(4))]])[1],
            Some((3, false))
        );
        assert_eq!(
            told(vec![vec![slurm(1, 2, Some(4), None), slurm(2, 3, Some(4), None)]]),
            [None, None]
        );
        // No size at all, two sizes, a number beyond it.
        assert_eq!(
            told(vec![vec![slurm(1, 0, None, None), slurm(2, 1, None, None)]]),
            [None, None]
        );
        assert_eq!(
            told(vec![vec![slurm(1, 0, Some(2), None), slurm(2, 1, Some(3), None)]]),
            [None, None]
        );
        assert_eq!(
            told(vec![vec![slurm(1, 0, Some(2), None), slurm(2, 2, Some(2), None)]]),
            [None, None]
        );
        assert_eq!(
            told(vec![vec![slurm(1, 0, Some(2), None), slurm(2, 1, None, None)]]),
            [None, None]
        );
        // Where ranks are known, a substitute makes none.
        assert_eq!(
            told(vec![vec![slurm(1, 0, Some(1), None), process(2, Some(0))]]),
            [None, Some((0, true))]
        );
    }

    #[test]
    fn an_unproved_substitute_is_told() {
        let verdicts = all(&[manifest("n", vec![slurm(1, 0, None, None)])]);
        assert_eq!(
            verdicts,
            [Verdict::Unknown(
                "manifest of n: pid 1 had no rank, and slurm_procid 0 is not proved to be one".into()
            )]
        );
    }
}
