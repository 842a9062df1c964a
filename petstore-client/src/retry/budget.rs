//! The budget that limits the retries of all calls together.

use std::time::Duration;

/// Limits the retries of all calls together, to protect a failing service.
///
/// Over the last 5 to 10 seconds, it allows [`ratio`](Self::ratio) retries per call, plus ten times
/// [`min_per_second`](Self::min_per_second). Three retries for each call in flight are always
/// allowed, so that all calls survive a restart of the server. Waits for rate
/// limits and retries after a 429 do not count.
///
/// ```
/// use petstore_client::retry::RetryBudget;
///
/// let generous = RetryBudget::new().ratio(0.5).min_per_second(50);
/// # let _ = generous;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub struct RetryBudget {
    ratio: f64,
    min_per_second: u32,
}

impl RetryBudget {
    /// Creates the default: 0.2 retries per call, and 10 per second.
    pub fn new() -> Self {
        Self {
            ratio: 0.2,
            min_per_second: 10,
        }
    }

    /// Sets the retries per call, from 0 to 1,000.
    pub fn ratio(mut self, retries: f64) -> Self {
        self.ratio = retries;
        self
    }

    /// Sets the retries per second that are always allowed.
    pub fn min_per_second(mut self, retries: u32) -> Self {
        self.min_per_second = retries;
        self
    }

    /// Allows every retry.
    pub fn unlimited() -> Self {
        Self {
            ratio: f64::INFINITY,
            min_per_second: u32::MAX,
        }
    }

    /// Returns why the budget is invalid, if it is.
    pub(crate) fn problem(self) -> Option<String> {
        let is_valid = self.ratio == f64::INFINITY || (0.0..=1_000.0).contains(&self.ratio);
        (!is_valid).then(|| format!("its ratio is {}, and must be from 0 to 1,000", self.ratio))
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self::new()
    }
}

/// The length of a period in seconds. The current period and the one before count, which is 5 to 10
/// s.
const PERIOD: u32 = 5;
/// The retries that are always allowed per call in flight.
const RETRIES_IN_FLIGHT: u32 = 3;

/// The used part of a budget.
#[derive(Debug)]
pub(super) struct BudgetState {
    budget: RetryBudget,
    in_flight: u32,
    period: u64,
    /// Calls and retries in this period and the previous one.
    counts: [Counts; 2],
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    calls: u32,
    retries: u32,
}

impl BudgetState {
    pub(super) fn new(budget: RetryBudget) -> Self {
        Self {
            budget,
            in_flight: 0,
            period: 0,
            counts: Default::default(),
        }
    }

    pub(super) fn call_began(&mut self, now: Duration) {
        self.start_period(now);
        self.in_flight += 1;
        self.counts[0].calls += 1;
    }

    pub(super) fn call_ended(&mut self) {
        self.in_flight -= 1;
    }

    /// Uses one retry of the budget. Returns whether one was left.
    pub(super) fn spend(&mut self, now: Duration) -> bool {
        self.start_period(now);
        let RetryBudget {
            ratio,
            min_per_second,
        } = self.budget;
        if ratio.is_infinite() {
            return true;
        }
        let [current, last] = self.counts;
        let by_traffic = f64::from(current.calls + last.calls) * ratio
            + f64::from(min_per_second) * f64::from(2 * PERIOD);
        let allowed = by_traffic.max(f64::from(self.in_flight) * f64::from(RETRIES_IN_FLIGHT));
        let is_left = f64::from(current.retries + last.retries) < allowed;
        self.counts[0].retries += u32::from(is_left);
        is_left
    }

    fn start_period(&mut self, now: Duration) {
        let period = now.as_secs() / u64::from(PERIOD);
        if period > self.period {
            let is_next = period == self.period + 1;
            let last = if is_next {
                self.counts[0]
            } else {
                Counts::default()
            };
            self.counts = [Counts::default(), last];
            self.period = period;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend_all(state: &mut BudgetState, now: u64) -> u32 {
        let mut spent = 0;
        while spent < 10_000 && state.spend(Duration::from_secs(now)) {
            spent += 1;
        }
        spent
    }

    #[test]
    fn the_budget_grows_with_traffic_and_is_filled_again() {
        let mut state = BudgetState::new(RetryBudget::new());
        assert_eq!(spend_all(&mut state, 0), 100);
        for _ in 0..1_000 {
            state.call_began(Duration::from_secs(1));
            state.call_ended();
        }
        assert_eq!(spend_all(&mut state, 1), 200);
        assert_eq!(spend_all(&mut state, 9), 0, "the last ten seconds count");
        assert_eq!(
            spend_all(&mut state, 10),
            100,
            "the first five do not any more"
        );
        let mut state = BudgetState::new(RetryBudget::new());
        (0..1_000).for_each(|_| state.call_began(Duration::from_secs(11)));
        (0..1_000).for_each(|_| state.call_ended());
        assert_eq!(spend_all(&mut state, 16), 300);
        assert_eq!(spend_all(&mut state, 30), 100);
    }

    #[test]
    fn each_call_in_flight_may_be_sent_again_three_times() {
        let mut state = BudgetState::new(RetryBudget::new().ratio(0.0).min_per_second(0));
        assert_eq!(spend_all(&mut state, 0), 0);
        (0..256).for_each(|_| state.call_began(Duration::ZERO));
        assert_eq!(spend_all(&mut state, 0), 3 * 256);
    }

    #[test]
    fn an_unlimited_budget_allows_every_retry() {
        let mut state = BudgetState::new(RetryBudget::unlimited());
        assert_eq!(spend_all(&mut state, 0), 10_000);
        state.call_began(Duration::ZERO);
        assert_eq!(spend_all(&mut state, 0), 10_000);
    }

    #[test]
    fn an_invalid_ratio_is_refused() {
        for ratio in [-0.1, f64::NAN, 1_000.1] {
            assert!(
                RetryBudget::new().ratio(ratio).problem().is_some(),
                "{ratio}"
            );
        }
        for ratio in [0.0, 1_000.0] {
            assert_eq!(RetryBudget::new().ratio(ratio).problem(), None, "{ratio}");
        }
        assert_eq!(RetryBudget::unlimited().problem(), None);
    }
}
