//! Assertions about the number of requests.

use std::{
    fmt::{self, Write as _},
    ops::{RangeFrom, RangeInclusive, RangeToInclusive},
    pin::pin,
    time::Duration,
};

use super::Journal;
use crate::{clock::real_time, operation::Target, text::printable};

/// The maximum number of requests in a message.
const MAX_SHOWN: usize = 10;

/// How long to wait for requests, in real time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks the number of requests.
pub(crate) fn verify(journal: &Journal, target: &Target, times: &Times) -> Result<(), String> {
    let (count, dropped) = journal.count(target);
    let wanted = format!("expected {times} of {target}");
    if !times.holds(count) {
        return Err(format!("{wanted}, but {count} came{}", listed(journal)));
    }
    // Dropped requests could have been meant too.
    if dropped && !times.holds(usize::MAX) {
        return Err(format!(
            "{wanted}: {count} are in the journal, but it has dropped earlier requests; raise \
             Builder::journal"
        ));
    }
    Ok(())
}

/// Waits for a number of requests, at most [`PATIENCE`].
pub(crate) async fn wait_for(
    journal: &Journal,
    target: &Target,
    times: &Times,
) -> Result<(), String> {
    // Start watching before the first check, so that no request is missed in between.
    let mut kept = journal.watch();
    let mut deadline = pin!(real_time::sleep(PATIENCE));
    loop {
        let checked = verify(journal, target, times);
        if checked.is_ok() {
            return checked;
        }
        tokio::select! {
            _ = kept.changed() => {}
            () = &mut deadline => return checked,
        }
    }
}

/// Describes the last requests in the journal.
fn listed(journal: &Journal) -> String {
    let last = journal.latest(MAX_SHOWN, |_| true);
    if last.is_empty() {
        return "; the journal is empty".to_owned();
    }
    let mut text = "; the last requests were:".to_owned();
    for exchange in last {
        let (method, target) = (exchange.method.as_str(), printable(&exchange.target));
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  #{} {method} {target}", exchange.number);
        let _ = match exchange.status {
            Some(status) => write!(text, " -> {status}"),
            None => write!(text, ", without a response"),
        };
    }
    text
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
            (1, usize::MAX) => f.write_str("at least 1 request"),
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
