//! The bodies of the fuzz targets over their seeds and over inputs made of these: what every build can do without nightly Rust.

use super::damage::fixtures;
use proptest::prelude::*;
use std::fs;
use std::sync::LazyLock;

#[path = "../../../fuzz/bodies.rs"]
mod bodies;

const BODIES: [fn(&[u8]); 3] = [bodies::scans, bodies::mends, bodies::restores];
/// As the fuzzers are told.
const LONGEST: usize = 4096;

/// The start of each of the fixtures that the fuzzers begin with (fuzz/README.md).
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut files: Vec<_> = ["damage", "damage/mended", "kineto-cpu/api"]
        .iter()
        .flat_map(|folder| fs::read_dir(fixtures().join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let seeds = files.iter().map(|file| fs::read(file).unwrap());
    seeds
        .map(|mut seed| {
            seed.truncate(LONGEST);
            seed
        })
        .collect()
});

#[test]
fn the_seeds_of_the_fuzzers_hold() {
    assert!(SEEDS.len() > 45);
    for seed in SEEDS.iter() {
        for body in BODIES {
            body(seed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Parts of two seeds with some bytes changed, as a fuzzer crosses and mutates them.
    #[test]
    fn crossed_and_mutated_seeds_hold(
        seeds in any::<[prop::sample::Index; 2]>(),
        cuts in any::<[prop::sample::Index; 2]>(),
        bytes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let [first, second] = seeds.map(|seed| seed.get(&SEEDS).as_slice());
        let mut data = first[..cuts[0].index(first.len() + 1)].to_vec();
        data.extend_from_slice(&second[cuts[1].index(second.len() + 1)..]);
        for (index, byte) in bytes {
            if !data.is_empty() {
                let at = index.index(data.len());
                data[at] = byte;
            }
        }
        for body in BODIES {
            body(&data);
        }
    }

    #[test]
    fn any_bytes_hold(data in prop::collection::vec(any::<u8>(), 0..300)) {
        for body in BODIES {
            body(&data);
        }
    }
}
