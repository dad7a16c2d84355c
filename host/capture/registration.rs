//! Who has registered with a daemon, and which ranks of its host those are: a request reaches only those that have (facts/seed.md D7).

use std::collections::BTreeSet;

use super::process::Snapshot;

/// A registered process, and what /proc said of it; nothing, if it runs elsewhere.
#[derive(Debug, Clone)]
pub struct Registered {
    /// Its id, as it registered.
    pub pid: i64,
    /// What it was when it was looked at.
    pub at: Snapshot,
}

impl Registered {
    /// Looks at each of `pids`; `local` says whether they run on this host.
    pub fn all(pids: &[i64], local: bool) -> Vec<Registered> {
        let at = |pid| match local {
            true => Snapshot::of_registered(pid),
            false => Snapshot::default(),
        };
        pids.iter().map(|&pid| Registered { pid, at: at(pid) }).collect()
    }

    /// Its rank, by the first kind of launcher that names one.
    pub fn rank(&self) -> Option<u32> {
        SCHEMES.iter().find_map(|scheme| scheme.rank_of(&self.at))
    }

    fn is_alive(&self) -> bool {
        self.at.identity.is_some()
    }

    /// Whether it is worth a trace among `all`: where any other is, a launcher is not, nor a process that ended, which the daemon
    /// keeps for a minute or two (facts/dynolog.md section 5).
    fn is_worker(&self, any_alive: bool) -> bool {
        !any_alive || self.is_alive() && !self.at.is_launcher()
    }
}

/// Those of `registered` that are worth a trace. Where nothing is known of any, all are.
pub fn workers(registered: &[Registered]) -> Vec<&Registered> {
    let any_alive = registered.iter().any(Registered::is_alive);
    registered
        .iter()
        .filter(|process| process.is_worker(any_alive))
        .collect()
}

/// How one kind of launcher tells a process its rank.
struct Scheme {
    rank: &'static str,
    local_rank: &'static str,
    local_size: &'static str,
    size: &'static str,
}

/// In the order of trust: under srun, what torchrun sets is right and what Slurm sets counts launchers. Sources: torchrun's
/// documentation, the manuals of Open MPI and MPICH, srun(1).
const SCHEMES: [Scheme; 4] = [
    Scheme {
        rank: "RANK",
        local_rank: "LOCAL_RANK",
        local_size: "LOCAL_WORLD_SIZE",
        size: "WORLD_SIZE",
    },
    Scheme {
        rank: "OMPI_COMM_WORLD_RANK",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_size: "OMPI_COMM_WORLD_LOCAL_SIZE",
        size: "OMPI_COMM_WORLD_SIZE",
    },
    Scheme {
        rank: "PMI_RANK",
        local_rank: "MPI_LOCALRANKID",
        local_size: "MPI_LOCALNRANKS",
        size: "PMI_SIZE",
    },
    Scheme {
        rank: "SLURM_PROCID",
        local_rank: "SLURM_LOCALID",
        local_size: "SLURM_STEP_TASKS_PER_NODE",
        size: "SLURM_STEP_NUM_TASKS",
    },
];

impl Scheme {
    fn rank_of(&self, at: &Snapshot) -> Option<u32> {
        // Outside of a step, Slurm's number is that of the batch script.
        let counts = self.rank != "SLURM_PROCID" || at.leading_number(self.local_size).is_some();
        at.number(self.rank).filter(|_| counts)
    }

    fn ranked<'a>(&self, all: &[&'a Registered]) -> Vec<(&'a Snapshot, u32)> {
        all.iter()
            .filter_map(|process| Some((&process.at, self.rank_of(&process.at)?)))
            .collect()
    }
}

/// The ranks of one host, as far as they can be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRanks {
    /// How many of them are there.
    pub present: usize,
    /// How many the host has; none if nothing says so.
    pub expected: Option<usize>,
    /// Those that are not there, by number, where that can be told.
    pub missing: Vec<u32>,
}

impl HostRanks {
    /// The ranks among `processes`. `told` is how many the user expects on the host, which counts more than their environment; `only_host` says
    /// whether the whole job may run there, so that its size is the host's.
    pub fn of<'a>(
        processes: impl IntoIterator<Item = &'a Registered>,
        told: Option<u32>,
        only_host: bool,
    ) -> HostRanks {
        let all: Vec<&Registered> = processes.into_iter().collect();
        let told = told.and_then(|told| usize::try_from(told).ok());
        let found = SCHEMES
            .iter()
            .map(|scheme| (scheme, scheme.ranked(&all)))
            .find(|(_, ranked)| !ranked.is_empty());
        let Some((scheme, ranked)) = found else {
            return HostRanks {
                present: all.len(),
                expected: told,
                missing: Vec::new(),
            };
        };
        let largest = |name: &str| ranked.iter().filter_map(|(at, _)| at.leading_number(name)).max();
        let size = largest(scheme.size);
        let expected = told.or_else(|| {
            let here = largest(scheme.local_size)
                .or_else(|| slurms_share(&ranked))
                .or(size.filter(|_| only_host && ranked.iter().all(|(at, _)| is_of_one_node(at))));
            usize::try_from(here?).ok()
        });
        let ranks: BTreeSet<u32> = ranked.iter().map(|&(_, rank)| rank).collect();
        let first = first_rank(&ranked, scheme, size, expected);
        let missing = match (first, expected) {
            (Some(first), Some(expected)) if ranks.len() < expected => {
                (first..).take(expected).filter(|rank| !ranks.contains(rank)).collect()
            }
            _ => Vec::new(),
        };
        HostRanks {
            present: ranks.len(),
            expected,
            missing,
        }
    }

    /// Whether all are there. Where nobody knows how many there are, nobody knows that.
    pub fn is_complete(&self) -> bool {
        self.expected.is_some_and(|expected| self.present >= expected)
    }

    /// How many are known to be missing.
    pub fn missing_count(&self) -> usize {
        self.expected.unwrap_or(0).saturating_sub(self.present)
    }

    /// What is missing, for people: `rank 3`, `ranks 2, 3`, or `2 of this host's 4 ranks`.
    pub fn missing_in_words(&self) -> String {
        let numbers: Vec<String> = self.missing.iter().map(u32::to_string).collect();
        match (&numbers[..], self.expected) {
            ([], expected) => format!(
                "{} of this host's {} ranks",
                self.missing_count(),
                expected.unwrap_or(0)
            ),
            ([one], _) => format!("rank {one}"),
            (several, _) => format!("ranks {}", several.join(", ")),
        }
    }
}

/// The tasks that srun started on the host, where each of them is a rank: scripts that make RANK of SLURM_PROCID seldom set more.
fn slurms_share(ranked: &[(&Snapshot, u32)]) -> Option<u32> {
    let is_task = |(at, rank): &(&Snapshot, u32)| at.number("SLURM_PROCID") == Some(*rank);
    let shares = ranked
        .iter()
        .map(|(at, _)| at.leading_number("SLURM_STEP_TASKS_PER_NODE"));
    shares.max().flatten().filter(|_| ranked.iter().all(is_task))
}

/// Whether nothing says that the job runs on more nodes than this one.
fn is_of_one_node(at: &Snapshot) -> bool {
    let one = |name| at.number(name).is_none_or(|nodes| nodes <= 1);
    let master = at.environment.get("MASTER_ADDR").map(String::as_str);
    let master_here = matches!(master, None | Some("" | "localhost" | "127.0.0.1" | "::1"));
    master_here
        && ["SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_STEP_NUM_NODES"]
            .into_iter()
            .all(one)
}

/// The host's lowest rank: they follow each other. Told by the local ranks, or by a world that is no larger than the host's part.
fn first_rank(ranked: &[(&Snapshot, u32)], scheme: &Scheme, size: Option<u32>, expected: Option<usize>) -> Option<u32> {
    let offset = |(at, rank): &(&Snapshot, u32)| rank.checked_sub(at.number(scheme.local_rank)?);
    let offsets: BTreeSet<Option<u32>> = ranked.iter().map(offset).collect();
    match Vec::from_iter(offsets)[..] {
        [Some(first)] => Some(first),
        _ => (size.map(|size| size as usize) == expected).then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::process::Identity;

    fn process(pid: i64, environment: &[(&str, &str)]) -> Registered {
        let at = Snapshot {
            identity: Some(Identity {
                pid: pid as i32,
                start_ticks: 1,
            }),
            environment: environment
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            ..Snapshot::default()
        };
        Registered { pid, at }
    }

    fn torchrun(pid: i64, rank: &str, local: &str) -> Registered {
        process(
            pid,
            &[
                ("RANK", rank),
                ("LOCAL_RANK", local),
                ("LOCAL_WORLD_SIZE", "4"),
                ("WORLD_SIZE", "8"),
                ("SLURM_PROCID", "1"),
                ("SLURM_STEP_TASKS_PER_NODE", "1(x2)"),
            ],
        )
    }

    fn ranks(processes: &[Registered], told: Option<u32>, only_host: bool) -> (usize, Option<usize>, Vec<u32>) {
        let ranks = HostRanks::of(processes, told, only_host);
        (ranks.present, ranks.expected, ranks.missing)
    }

    #[test]
    fn a_hosts_ranks_are_counted_and_the_missing_ones_named() {
        let second_node = [torchrun(1, "4", "0"), torchrun(2, "6", "2")];
        assert_eq!(ranks(&second_node, None, true), (2, Some(4), vec![5, 7]));
        assert_eq!(HostRanks::of(&second_node, None, true).missing_in_words(), "ranks 5, 7");
        let world = |pid, rank| process(pid, &[("RANK", rank), ("WORLD_SIZE", "3")]);
        assert_eq!(
            ranks(&[world(1, "0"), world(2, "2")], None, true),
            (2, Some(3), vec![1])
        );
        assert_eq!(ranks(&[world(1, "0"), world(2, "2")], None, false), (2, None, vec![]));
        let far = process(1, &[("RANK", "0"), ("WORLD_SIZE", "3"), ("MASTER_ADDR", "n07")]);
        assert_eq!(ranks(&[far], None, true).1, None);
        let task = |pid, rank| {
            process(
                pid,
                &[
                    ("RANK", rank),
                    ("WORLD_SIZE", "4"),
                    ("LOCAL_RANK", "0"),
                    ("SLURM_PROCID", rank),
                    ("SLURM_NNODES", "2"),
                    ("SLURM_STEP_TASKS_PER_NODE", "2(x2)"),
                ],
            )
        };
        assert_eq!(ranks(&[task(1, "2")], None, true), (1, Some(2), vec![3]));
        // A loader that inherited the rank is no second one.
        assert_eq!(ranks(&[world(1, "0"), world(2, "0")], None, true).0, 1);
    }

    #[test]
    fn slurm_counts_where_it_made_a_step_and_the_users_word_counts_everywhere() {
        let step = |pid, rank| {
            process(
                pid,
                &[
                    ("SLURM_PROCID", rank),
                    ("SLURM_LOCALID", "0"),
                    ("SLURM_STEP_TASKS_PER_NODE", "2(x2)"),
                ],
            )
        };
        assert_eq!(ranks(&[step(1, "2")], None, true), (1, Some(2), vec![3]));
        let batch = process(1, &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]);
        assert_eq!(ranks(&[batch], None, true), (1, None, vec![]));
        let unknown = Registered {
            pid: 1,
            at: Snapshot::default(),
        };
        let told = HostRanks::of(&[unknown], Some(2), false);
        assert_eq!(
            (told.missing_count(), told.missing_in_words().as_str()),
            (1, "1 of this host's 2 ranks")
        );
        assert_eq!(ranks(&[torchrun(1, "0", "0")], Some(2), true), (1, Some(2), vec![1]));
    }

    #[test]
    fn launchers_and_the_dead_are_not_asked_for_where_anyone_else_is() {
        let mut launcher = process(1, &[]);
        launcher.at.command = ["python3", "-m", "torch.distributed.run", "x.py"]
            .map(str::to_owned)
            .to_vec();
        let dead = Registered {
            pid: 2,
            at: Snapshot::default(),
        };
        let pids = |all: &[Registered]| workers(all).iter().map(|process| process.pid).collect::<Vec<_>>();
        assert_eq!(pids(&[launcher.clone(), dead.clone(), process(3, &[])]), [3]);
        assert_eq!(pids(&[launcher, dead.clone()]), [0; 0]);
        assert_eq!(pids(&[dead]), [2]);
    }
}
