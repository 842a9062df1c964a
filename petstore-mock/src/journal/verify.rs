//! Assertions about the number and order of requests.

use std::{
    fmt::{self, Write as _},
    ops::{RangeFrom, RangeInclusive, RangeToInclusive},
    pin::pin,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use super::{Journal, Pattern};
use crate::{
    clock::{Clock, real_time},
    exchange::{Masker, Record},
    text::printable,
};

/// The maximum number of shown requests.
const MAX_SHOWN: usize = 3;

/// Checks the number of exchanges that match, among those with a higher number than `after`.
pub(crate) fn check_times(
    journal: &Journal,
    pattern: &Pattern,
    times: &Times,
    after: u64,
) -> Result<(), String> {
    journal.look(|records, keys, forgotten| {
        let records: Vec<_> = records
            .iter()
            .filter(|record| record.number > after)
            .collect();
        let count = records
            .iter()
            .filter(|record| pattern.matches(record, keys))
            .count();
        let wanted = format!("expected {times} with {}", pattern.describe(keys));
        if !times.holds(count) {
            let nearest = nearest(pattern, &records, keys, count > 0);
            return Err(format!(
                "{wanted}, but {count} of {} came{nearest}",
                records.len()
            ));
        }
        // Dropped exchanges could have matched too.
        if forgotten > after && !times.holds(usize::MAX) {
            return Err(format!(
                "{wanted}: {count} are in the journal, but it has dropped {} earlier ones; raise \
                 Builder::journal",
                journal.usage().dropped
            ));
        }
        Ok(())
    })
}

/// Checks that exchanges matched these patterns in this order, possibly with others in between.
pub(crate) fn check_order(journal: &Journal, patterns: &[Pattern]) -> Result<(), String> {
    journal.look(|records, keys, _| {
        let records: Vec<_> = records.iter().collect();
        let mut rest = &records[..];
        let mut text = String::from("expected requests in this order:");
        for (number, pattern) in (1..).zip(patterns) {
            let _ = write!(text, "\n  {number}. {}: ", pattern.describe(keys));
            if let Some(place) = rest.iter().position(|record| pattern.matches(record, keys)) {
                let _ = write!(text, "request {}", rest[place].number);
                rest = &rest[place + 1..];
                continue;
            }
            text += "did not come after that";
            if let Some(early) = records.iter().find(|record| pattern.matches(record, keys)) {
                let _ = write!(
                    text,
                    "\nrequest {} fits {number}., but came before",
                    early.number
                );
            }
            return Err(text + &nearest(pattern, rest, keys, false));
        }
        Ok(())
    })
}

/// Describes the matching requests, or the closest ones and how they differ.
fn nearest(pattern: &Pattern, records: &[&Arc<Record>], keys: &Masker, matching: bool) -> String {
    let mut near: Vec<_> = records
        .iter()
        .map(|record| (pattern.mismatches(record, keys), record))
        .collect();
    near.retain(|(mismatches, _)| mismatches.is_empty() == matching);
    near.sort_by_key(|(mismatches, _)| mismatches.len());
    let mut text = String::new();
    if !near.is_empty() {
        text += if matching {
            "\nthese did:"
        } else {
            "\nthe nearest:"
        };
    }
    for (mismatches, record) in near.iter().take(MAX_SHOWN) {
        let (method, target) = (record.method.as_str(), keys.target(&record.arrival.target));
        let (method, target) = (printable(method), printable(&target));
        let _ = write!(text, "\n  request {}, {method} {target}", record.number);
        if let Some(status) = record.status {
            let _ = write!(text, " -> {status}");
        }
        for mismatch in mismatches {
            let _ = write!(text, "\n    {mismatch}");
        }
    }
    if let more @ 1.. = near.len().saturating_sub(MAX_SHOWN) {
        let _ = write!(text, "\n  and {more} more");
    }
    text
}

/// An expected number of matching requests.
///
/// The number is checked by [`verify`](Self::verify), or when this value is dropped, unless the
/// thread already panics.
///
/// ```
/// # use petstore_mock::{MockServer, Operation};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let _one_list = server.expect(Operation::ListPets, 1);
/// let _no_pet = server.expect(Operation::CreatePet, 0);
/// reqwest::get(format!("{}/pets", server.url())).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it is checked when it is dropped, which is at once unless it is kept"]
pub struct Expectation {
    journal: Arc<Journal>,
    pattern: Pattern,
    times: Times,
    clock: Clock,
    /// The number of the last request before the expectation.
    after: u64,
    is_checked: bool,
}

impl Expectation {
    pub(crate) fn new(journal: Arc<Journal>, clock: Clock, pattern: Pattern, times: Times) -> Self {
        let after = journal.last_number();
        Self {
            journal,
            pattern,
            times,
            clock,
            after,
            is_checked: false,
        }
    }

    /// Waits until it is met, or until the mock's clock shows `deadline`.
    ///
    /// The first request already meets an expectation such as `1..`. The expectation is still
    /// checked when it is dropped.
    ///
    /// # Panics
    ///
    /// If it is not met by then. The message shows the requests.
    pub async fn wait_until(&self, deadline: SystemTime) {
        self.met_before(self.clock.sleep_until(deadline)).await;
    }

    /// Waits until it is met, for at most this long in real time: like
    /// [`wait_until`](Self::wait_until), for a clock that a test does not move.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use petstore_mock::{MockServer, Operation};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = MockServer::start().await;
    /// let listed = server.expect(Operation::ListPets, 1..);
    /// let url = format!("{}/pets", server.url());
    /// tokio::spawn(async move { reqwest::get(url).await });
    /// listed.wait_for(Duration::from_secs(60)).await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If it is not met by then. The message shows the requests.
    pub async fn wait_for(&self, limit: Duration) {
        self.met_before(real_time::sleep(limit)).await;
    }

    #[expect(clippy::panic, reason = "an assertion panics")]
    async fn met_before(&self, deadline: impl Future<Output = ()>) {
        // Start watching before the first check, so that no request is missed in between.
        let mut kept = self.journal.watch();
        let mut deadline = pin!(deadline);
        let mut is_over = false;
        loop {
            let Err(text) = check_times(&self.journal, &self.pattern, &self.times, self.after)
            else {
                return;
            };
            if is_over {
                panic!("{text}");
            }
            tokio::select! {
                _ = kept.changed() => {}
                () = &mut deadline => is_over = true,
            }
        }
    }

    /// Checks it now.
    ///
    /// # Panics
    ///
    /// If the number is wrong. The message shows the requests.
    #[track_caller]
    pub fn verify(mut self) {
        self.check();
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "an assertion panics")]
    fn check(&mut self) {
        self.is_checked = true;
        if let Err(text) = check_times(&self.journal, &self.pattern, &self.times, self.after) {
            panic!("{text}");
        }
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        if !self.is_checked && !thread::panicking() {
            self.check();
        }
    }
}

/// An expected number of requests: a number or a range.
///
/// ```
/// use petstore_mock::Times;
///
/// assert!(Times::from(2).holds(2));
/// assert!(Times::from(1..).holds(7));
/// assert!(!Times::from(..=3).holds(4));
/// assert_eq!(Times::from(2..=3).to_string(), "2 to 3 requests");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times(RangeInclusive<usize>);

impl Times {
    /// Returns whether `count` is as expected.
    #[must_use]
    pub fn holds(&self, count: usize) -> bool {
        self.0.contains(&count)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self.0.start(), *self.0.end()) {
            (_, 0) => f.write_str("no request"),
            (1, 1) => f.write_str("1 request"),
            (least, usize::MAX) => write!(f, "at least {least} requests"),
            (least, most) if least == most => write!(f, "{most} requests"),
            (0, most) => write!(f, "at most {most} requests"),
            (least, most) => write!(f, "{least} to {most} requests"),
        }
    }
}

impl From<usize> for Times {
    fn from(count: usize) -> Self {
        Self(count..=count)
    }
}

impl From<RangeFrom<usize>> for Times {
    fn from(range: RangeFrom<usize>) -> Self {
        Self(range.start..=usize::MAX)
    }
}

impl From<RangeInclusive<usize>> for Times {
    fn from(range: RangeInclusive<usize>) -> Self {
        Self(range)
    }
}

impl From<RangeToInclusive<usize>> for Times {
    fn from(range: RangeToInclusive<usize>) -> Self {
        Self(0..=range.end)
    }
}
