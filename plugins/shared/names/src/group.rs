//! Which traces are compared with each other.

use crate::token::{Meaning, tokens};

/// A folder on the way to a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder<'a> {
    /// Its name.
    pub name: &'a str,
    /// Byte ranges of the name that differ from rank to rank, beside its rank tokens.
    pub varying: Vec<(usize, usize)>,
}

impl<'a> Folder<'a> {
    /// A folder of which nothing more is known than its name.
    pub fn named(name: &'a str) -> Self {
        Folder {
            name,
            varying: Vec::new(),
        }
    }

    /// The name with `*` for what differs from rank to rank, and its step as a bare number, since `iteration_05` is `iteration_5`.
    fn common_name(&self) -> String {
        let tokens = tokens(self.name);
        let holds_rank = tokens.iter().any(|token| matches!(token.meaning, Meaning::Rank { .. }));
        let mut changes: Vec<((usize, usize), String)> =
            self.varying.iter().map(|range| (*range, "*".to_owned())).collect();
        for token in &tokens {
            match token.meaning {
                Meaning::Step(step) => changes.push((token.digits, step.to_string())),
                // Beside a rank, coordinates differ from rank to rank too: `tp1_rank_5` is of the run of `tp0_rank_0`.
                Meaning::Rank { .. } | Meaning::Coordinate if holds_rank => {
                    changes.push((token.digits, "*".to_owned()))
                }
                _ => {}
            }
        }
        changes.sort();
        let (mut common, mut from) = (String::new(), 0);
        for ((start, end), new) in changes {
            if start >= from {
                common.push_str(&self.name[from..start]);
                common.push_str(&new);
                from = end;
            }
        }
        common + &self.name[from..]
    }
}

/// The group of a trace in `folders` (outermost first), where its folder alone does not tell: a folder name that holds a rank would
/// part the ranks of one run, so what differs is blanked; steps and captures in file names would mix, so the `labels` that name them
/// are added. None if the folder tells.
pub fn group(folders: &[Folder], labels: &[String]) -> Option<String> {
    let common: Vec<String> = folders.iter().map(Folder::common_name).collect();
    let is_plain = labels.is_empty() && common.iter().zip(folders).all(|(common, folder)| common == folder.name);
    if is_plain {
        return None;
    }
    let folder = common.join("/");
    let parts = std::iter::once(folder.as_str()).chain(labels.iter().map(String::as_str));
    Some(parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(folders: &[&str], labels: &[&str]) -> Option<String> {
        let folders: Vec<Folder> = folders.iter().map(|name| Folder::named(name)).collect();
        group(
            &folders,
            &labels.iter().map(|label| label.to_string()).collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_plain_folder_is_the_hosts() {
        assert_eq!(of(&["run", "iteration_5"], &[]), None);
        assert_eq!(of(&[], &[]), None);
        assert_eq!(of(&["dp_rank_1"], &[]), None);
    }

    #[test]
    fn what_differs_from_rank_to_rank_is_blanked() {
        assert_eq!(of(&["run", "rank_3", "trace"], &[]), Some("run/rank_*/trace".into()));
        assert_eq!(of(&["tp1_rank_12"], &[]), Some("tp*_rank_*".into()));
        let folder = Folder {
            name: "n01.300.1",
            varying: vec![(8, 9), (0, 3), (4, 7)],
        };
        assert_eq!(group(&[folder], &[]), Some("*.*.*".into()));
        let same_twice = Folder {
            name: "rank_3",
            varying: vec![(5, 6)],
        };
        assert_eq!(group(&[same_twice], &[]), Some("rank_*".into()));
    }

    #[test]
    fn steps_are_numbers() {
        assert_eq!(of(&["iteration_005"], &[]), Some("iteration_5".into()));
        assert_eq!(of(&["iteration_005", "rank0"], &[]), of(&["iteration_5", "rank7"], &[]));
        assert_eq!(of(&[], &["step 7"]), Some("step 7".into()));
        assert_eq!(of(&["a"], &["step 7", "decode"]), Some("a step 7 decode".into()));
    }
}
