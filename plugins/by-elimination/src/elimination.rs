//! The only number that differs over the files of a folder.

use std::collections::{BTreeSet, HashMap};

use names::{Meaning, is_qualifier, tokens, words};

/// What the numbers of a folder say of one file.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Verdict {
    /// It is this rank of so many.
    Rank { rank: u32, world_size: u32 },
    /// Why it cannot be told.
    Unknown(String),
}

/// Numbers with this many digits and more are time stamps: seconds since 1970 have ten.
const TIME_DIGITS: usize = 10;

/// Words before numbers that count something else than ranks. Those of `names::is_qualifier` count within something smaller.
const COUNTERS: &[&str] = &[
    "ba",
    "batch",
    "bs",
    "chunk",
    "cycle",
    "epoch",
    "iter",
    "iteration",
    "part",
    "pid",
    "repeat",
    "shard",
    "step",
    "time",
    "v",
    "version",
];

/// A name as text with numbers in it.
struct Shape<'a> {
    folder: &'a str,
    /// The text before each number and behind the last one.
    texts: Vec<&'a str>,
}

/// Cuts a path into its shape and its numbers, `.gz` left out. Each number with its byte offset in the file name.
fn cut(path: &str) -> (Shape<'_>, Vec<(usize, &str)>) {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let file = file.strip_suffix(".gz").unwrap_or(file);
    let (mut texts, mut numbers) = (Vec::new(), Vec::new());
    let mut from = 0;
    while let Some(start) = file[from..].find(|c: char| c.is_ascii_digit()).map(|at| from + at) {
        let length = file[start..].bytes().take_while(u8::is_ascii_digit).count();
        texts.push(&file[from..start]);
        numbers.push((start, &file[start..start + length]));
        from = start + length;
    }
    texts.push(&file[from..]);
    (Shape { folder, texts }, numbers)
}

/// One verdict a path, in order.
pub fn all(paths: &[&str]) -> Vec<Verdict> {
    let mut shapes: HashMap<(&str, Vec<&str>), Vec<usize>> = HashMap::new();
    let mut numbers = Vec::with_capacity(paths.len());
    for (index, path) in paths.iter().enumerate() {
        let (shape, found) = cut(path);
        shapes.entry((shape.folder, shape.texts)).or_default().push(index);
        numbers.push(found);
    }
    let mut verdicts = vec![Verdict::Unknown(String::new()); paths.len()];
    for files in shapes.into_values() {
        let of_files: Vec<&[(usize, &str)]> = files.iter().map(|&index| numbers[index].as_slice()).collect();
        let name = paths[files[0]].rsplit('/').next().unwrap_or_default();
        match ranks(name, &of_files) {
            Ok(ranks) => {
                // As many as there are different ranks, so it fits.
                let world_size = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
                for (index, rank) in files.into_iter().zip(ranks) {
                    verdicts[index] = Verdict::Rank { rank, world_size };
                }
            }
            Err(reason) => {
                for index in files {
                    verdicts[index] = Verdict::Unknown(reason.clone());
                }
            }
        }
    }
    verdicts
}

/// The ranks of files of one shape, given the numbers of each and the name of the first.
fn ranks(name: &str, files: &[&[(usize, &str)]]) -> Result<Vec<u32>, String> {
    let count = files.len();
    if count < 2 {
        return Err("no other file of its folder has a name of this shape".into());
    }
    let differing: Vec<usize> = (0..files[0].len())
        .filter(|&field| files.iter().any(|file| !is_same(file[field].1, files[0][field].1)))
        .collect();
    let [field] = differing[..] else {
        return Err(match differing.len() {
            0 => format!("no number differs over {count} files"),
            several => format!("{several} numbers differ over {count} files"),
        });
    };
    if files.iter().any(|file| file[field].1.len() >= TIME_DIGITS) {
        return Err(format!("the only number that differs over {count} files is a time"));
    }
    if let Some(word) = counts_something_else(name, files[0][field].0) {
        return Err(format!(
            "the only number that differs over {count} files counts something else: {word}"
        ));
    }
    let values: Vec<u32> = files.iter().filter_map(|file| file[field].1.parse().ok()).collect();
    let different: BTreeSet<u32> = values.iter().copied().collect();
    let is_complete = different.len() == count && different.last().is_some_and(|last| *last as usize == count - 1);
    match is_complete {
        true => Ok(values),
        false => Err(format!(
            "the only number that differs over {count} files does not run from 0 to {}",
            count - 1
        )),
    }
}

/// Whether two numbers are equal, whatever zeros they begin with.
fn is_same(a: &str, b: &str) -> bool {
    a.trim_start_matches('0') == b.trim_start_matches('0')
}

/// The word that makes the number at byte `start` of `name` no rank.
fn counts_something_else(name: &str, start: usize) -> Option<&str> {
    let token = tokens(name).into_iter().find(|token| token.digits.0 == start);
    if let Some(token) = token {
        return (!matches!(token.meaning, Meaning::Rank { .. })).then_some(token.text);
    }
    let words = words(name);
    let at = words.iter().position(|word| word.start == start)?;
    let before = words[at.checked_sub(1)?];
    let gap = &name[before.end..start];
    let is_joined = gap.chars().count() <= 1;
    let is_counter =
        COUNTERS.iter().any(|counter| counter.eq_ignore_ascii_case(before.text)) || is_qualifier(before.text);
    (is_joined && is_counter).then_some(before.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32, world_size: u32) -> Verdict {
        Verdict::Rank { rank, world_size }
    }

    fn reason(paths: &[&str]) -> String {
        let verdicts = all(paths);
        assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{verdicts:?}");
        match &verdicts[0] {
            Verdict::Unknown(reason) => reason.clone(),
            other => panic!("{paths:?}: {other:?}"),
        }
    }

    #[test]
    fn one_number_from_0_to_the_last_file_is_the_rank() {
        assert_eq!(
            all(&["a/w1_n7.json", "a/w0_n7.json", "a/w2_n7.json.gz"]),
            [rank(1, 3), rank(0, 3), rank(2, 3)]
        );
        assert_eq!(all(&["t_00.json", "t_01.json"]), [rank(0, 2), rank(1, 2)]);
        assert_eq!(
            all(&["a/t0.json", "b/t0.json", "a/t1.json", "b/t1.json", "a/x.json"])[..4],
            [rank(0, 2), rank(0, 2), rank(1, 2), rank(1, 2)]
        );
        let twelve: Vec<String> = (0..12).rev().map(|rank| format!("r6.2/host-{rank}-x.json")).collect();
        let twelve: Vec<&str> = twelve.iter().map(String::as_str).collect();
        assert_eq!(
            reason(&twelve),
            "the only number that differs over 12 files counts something else: host"
        );
        let ranks: Vec<String> = (0..12).rev().map(|rank| format!("r6.2/trace-{rank}-x.json")).collect();
        let ranks: Vec<&str> = ranks.iter().map(String::as_str).collect();
        assert_eq!(all(&ranks), (0..12).rev().map(|n| rank(n, 12)).collect::<Vec<_>>());
    }

    #[test]
    fn everything_else_is_unknown() {
        assert_eq!(
            reason(&["t0.json"]),
            "no other file of its folder has a name of this shape"
        );
        assert_eq!(reason(&["t.json", "t.json.gz"]), "no number differs over 2 files");
        assert_eq!(reason(&["t0.json", "t00.json.gz"]), "no number differs over 2 files");
        assert_eq!(reason(&["t0_5.json", "t1_6.json"]), "2 numbers differ over 2 files");
        assert_eq!(
            reason(&["t1.json", "t2.json"]),
            "the only number that differs over 2 files does not run from 0 to 1"
        );
        assert_eq!(
            reason(&["t0.json", "t2.json"]),
            "the only number that differs over 2 files does not run from 0 to 1"
        );
        assert_eq!(
            reason(&["t0.json", "t1.json", "t01.json.gz"]),
            "the only number that differs over 3 files does not run from 0 to 2"
        );
        assert_eq!(
            reason(&["t_48209.json", "t_48210.json"]),
            "the only number that differs over 2 files does not run from 0 to 1"
        );
        assert_eq!(
            reason(&["t0000000000.json", "t0000000001.json"]),
            "the only number that differs over 2 files is a time"
        );
        assert_eq!(all(&[]), []);
        assert_eq!(reason(&[""]), "no other file of its folder has a name of this shape");
    }

    #[test]
    fn steps_coordinates_and_local_numbers_are_no_ranks() {
        for (first, second, word) in [
            ("trace_step_0.json", "trace_step_1.json", "step_0"),
            ("x-TP-0.json", "x-TP-1.json", "TP-0"),
            ("dp_rank_0.json", "dp_rank_1.json", "dp_rank_0"),
            ("local_rank0.json", "local_rank1.json", "local_rank0"),
            ("gpu0.json", "gpu1.json", "gpu"),
            ("node-0.json", "node-1.json", "node"),
            ("epoch0.json", "epoch1.json", "epoch"),
            ("v0.json", "v1.json", "v"),
        ] {
            let expected = format!("the only number that differs over 2 files counts something else: {word}");
            assert_eq!(reason(&[first, second]), expected);
        }
        assert_eq!(all(&["x_rank0.json", "x_rank1.json"]), [rank(0, 2), rank(1, 2)]);
    }

    #[test]
    fn many_and_long_names_take_linear_time() {
        let paths: Vec<String> = (0..10_000).map(|rank| format!("a\n/{rank}\u{fffd}[.json")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let verdicts = all(&paths);
        assert_eq!((verdicts.len(), &verdicts[9_999]), (10_000, &rank(9_999, 10_000)));
        let long = "1_".repeat(2048);
        assert_eq!(reason(&[&long, &long]), "no number differs over 2 files");
        assert_eq!(
            reason(&["x/\u{661}.json", "x/\u{662}.json"]),
            "no other file of its folder has a name of this shape"
        );
    }
}
