//! Tests with parallel workers and clients, whose true number is declared.

use std::hash::{BuildHasher, RandomState};

use super::{
    recording::{broken, judge},
    shapes,
};

/// How many guilty clients are found, of how many.
#[derive(Default)]
struct Tally {
    found: usize,
    all: usize,
}

/// Judges recordings of all shapes with these seeds. Panics if an honest client is accused, or if
/// fewer than 80 % of the guilty ones are found. Returns a line for each guilty shape.
fn judge_all(seeds: std::ops::Range<u64>) -> Vec<String> {
    let mut total = Tally::default();
    let mut lines = Vec::new();
    for shape in shapes::all() {
        for transport in shape.transports {
            let mut tally = Tally::default();
            for seed in seeds.clone() {
                let (senders, recording) = shape.record(*transport, seed);
                let report = judge(senders, recording.iter().map(String::as_str));
                let found = broken(&report);
                let Some(rule) = shape.breaks else {
                    let name = shape.name;
                    assert!(
                        found.is_empty(),
                        "{name}, {transport:?}, seed {seed}: {report}"
                    );
                    continue;
                };
                tally.all += 1;
                tally.found += usize::from(found.contains(&rule.to_string()));
            }
            let Tally { found, all } = tally;
            if all > 0 {
                lines.push(format!("{}, {transport:?}: {found} of {all}", shape.name));
            }
            total.found += found;
            total.all += all;
        }
    }
    let Tally { found, all } = total;
    assert!(found * 5 >= all * 4, "{found} of {all}: {lines:#?}");
    lines.push(format!("{found} of {all}"));
    lines
}

#[test]
fn no_honest_client_is_accused_and_guilty_ones_are_found() {
    judge_all(0..2);
}

/// Judges recordings with other seeds each time. `PETSTORE_TEST_SEED` sets the first one.
#[test]
#[ignore = "takes a minute"]
#[allow(clippy::disallowed_methods, reason = "the environment sets the seed")]
fn no_honest_client_is_accused_with_other_seeds() {
    let seed = match std::env::var("PETSTORE_TEST_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => RandomState::new().hash_one(0) >> 32,
    };
    println!("PETSTORE_TEST_SEED={seed}");
    for line in judge_all(seed..seed + 100) {
        println!("{line}");
    }
}
