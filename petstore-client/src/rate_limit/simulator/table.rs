//! Runs the cases of a story, and checks what must hold.

use super::world::{Case, FIRST, Outcome};

/// How many seeds a case has in the usual tests, and at full size.
const FEW_SEEDS: u64 = 1;
const ALL_SEEDS: u64 = 6;

/// What must hold in every run of a case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Promise {
    /// The most refused requests and bans of a run.
    pub(super) refused: u64,
    pub(super) bans: u64,
    /// The least part of the quota that is used, and the least fairness.
    pub(super) used: f64,
    pub(super) fairness: f64,
}

impl Promise {
    /// Nothing is refused, and this part of the quota is used.
    pub(super) fn used(used: f64) -> Self {
        Self {
            refused: 0,
            bans: 0,
            used,
            fairness: 0.0,
        }
    }

    pub(super) fn refused(self, refused: u64) -> Self {
        Self { refused, ..self }
    }

    pub(super) fn bans(self, bans: u64) -> Self {
        Self { bans, ..self }
    }

    pub(super) fn fairness(self, fairness: f64) -> Self {
        Self { fairness, ..self }
    }
}

/// How many cases and seeds are run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Size {
    Usual,
    Full,
}

impl Size {
    fn seeds(self) -> u64 {
        match self {
            Self::Usual => FEW_SEEDS,
            Self::Full => ALL_SEEDS,
        }
    }

    /// Returns these values at full size, and one of them in the usual tests.
    pub(super) fn of<T: Copy>(self, all: &[T], usual: T) -> Vec<T> {
        match self {
            Self::Usual => vec![usual],
            Self::Full => all.to_vec(),
        }
    }
}

/// Runs a case with several seeds, and prints what it has shown. Returns the outcomes.
pub(super) fn run(name: &str, case: &Case, size: Size) -> Vec<Outcome> {
    let outcomes: Vec<_> = (0..size.seeds()).map(|seed| case.run(seed)).collect();
    let refused = outcomes.iter().map(|run| run.refused).max();
    let bans: u64 = outcomes.iter().map(|run| run.bans).sum();
    let used = outcomes
        .iter()
        .map(|run| run.used)
        .fold(f64::INFINITY, f64::min);
    let fairness = outcomes
        .iter()
        .map(|run| run.fairness)
        .fold(f64::INFINITY, f64::min);
    let until: Vec<_> = (0..FIRST.len())
        .map(|index| {
            outcomes
                .iter()
                .map(|run| run.until[index])
                .fold(0.0, f64::max)
        })
        .map(|at| format!("{at:.2}"))
        .collect();
    println!(
        "{name:50} refused {:3} bans {bans:2} used {used:.3} fair {fairness:.2} first {until:?}",
        refused.unwrap_or(0)
    );
    outcomes
}

/// Runs a case, and checks a promise.
pub(super) fn check(name: &str, case: &Case, promise: Promise, size: Size) {
    let outcomes = run(name, case, size);
    for (seed, outcome) in outcomes.iter().enumerate() {
        let holds = outcome.refused <= promise.refused
            && outcome.bans <= promise.bans
            && outcome.used >= promise.used
            && outcome.fairness >= promise.fairness;
        assert!(holds, "{name}, seed {seed}: {outcome:?} breaks {promise:?}");
    }
}
