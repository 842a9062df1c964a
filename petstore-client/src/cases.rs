//! The settings of property tests.

use proptest::test_runner::{Config, RngSeed};

/// Tries as many cases. They are the same in each run, unless `PROPTEST_RNG_SEED` names another seed.
pub(crate) fn cases(count: u32) -> Config {
    let default = Config::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        seed @ RngSeed::Fixed(_) => seed,
    };
    Config {
        cases: count,
        rng_seed,
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..default
    }
}
