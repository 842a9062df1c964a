//! `back-off` and `steady-retry`: how fast a failed request is repeated.
//!
//! Both rules judge rows. A row is a failed request and its repeats, even if several workers sent
//! them. So a row may also come from workers that each fail once, one after the other, or from the
//! users of a gateway. The constants below are chosen so that such rows of compliant clients cause
//! no finding.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use crate::{
    exchange::Moment,
    report::{
        breach::{Breach, Ruling, Series},
        facts::Facts,
        rule::Rule,
        text::seconds,
    },
};

/// The maximum number of rows per client.
const MAX_ROWS: usize = 64;
/// If a response took this long, the wait is measured from the start of the request, and not from
/// its end. Otherwise a poller whose time-out equals its interval would seem not to wait at all.
const SLOW: Duration = Duration::from_millis(500);
/// A row is complete when it has not continued for this long.
const COMPLETE: Duration = Duration::from_secs(1);

/// Immediate retries: a shorter wait counts as no wait. A shell loop around `curl` takes 7 to 14
/// ms. At a gateway with 20 requests a second, 11 % of the waits are shorter than this.
const AT_ONCE: Duration = Duration::from_millis(6);
/// A finding needs at least `MIN_AT_ONCE` repeats without a wait. They must also be more than
/// `MIN_SHARE` percent of all repeats.
const MIN_AT_ONCE: u64 = 3;
const MIN_SHARE: u64 = 60;
/// If a row has a wait of at least this, its retries do not count as immediate. Workers that begin one
/// after the other look like immediate retries at first, but then they back off. After the third
/// failure, no common back-off is shorter than this.
const CALM: Duration = Duration::from_millis(100);

/// Hammering: repeats that come faster than one in this time. Independent senders hardly ever send
/// the same request so often.
const PACE: Duration = Duration::from_millis(4);
/// How many repeats a row may be ahead of this pace. The first number is for one sender. The second
/// is for several, whose first attempts may all come at the same time.
const AHEAD_ALONE: u32 = 4;
const AHEAD_TOGETHER: u32 = 250;

/// Steady retries: waits below `NO_WAIT` count as equal, because they are no waits. Waits from
/// `POLLING` on are polling.
const NO_WAIT: Duration = Duration::from_millis(20);
const POLLING: Duration = Duration::from_secs(5);
/// How many repeats a finding needs: without waits, and with equal waits. The first wait of a row
/// does not count.
const MIN_WITHOUT_WAIT: u64 = 3;
const MIN_STEADY: u64 = 4;
/// Waits count as equal if the longest exceeds the shortest by at most a quarter plus this.
const SLACK: Duration = Duration::from_millis(10);

/// The rows of a client. The one that continued last is at the end.
#[derive(Debug, Default)]
pub(in crate::report) struct Retries(VecDeque<Row>);

/// A failed request and its repeats.
#[derive(Debug)]
struct Row {
    /// The repeats. Their cause is the first failure.
    series: Series,
    last: Arc<Facts>,
    at_once: AtOnce,
    hammering: Hammering,
    spread: Spread,
    /// Whether `steady-retry` was found.
    is_steady: bool,
    back_off: BackOff,
}

/// Whether the row breaks `back-off`. It counts at most once per row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackOff {
    NotFound,
    /// The row breaks the rule by hammering, and the client is still too fast.
    Hammering,
    /// The row broke the rule by hammering, and the client has slowed down.
    Found,
}

/// The repeats since the last long wait, judged as immediate retries.
#[derive(Debug)]
struct AtOnce {
    series: Series,
    without_wait: u64,
    /// Whether each repeat came less than [`CALM`] after the failure before it, and on the same
    /// HTTP/1 connection.
    may_be_retries: bool,
}

/// How far the repeats are ahead of [`PACE`].
#[derive(Debug)]
struct Hammering {
    ahead: Duration,
    repeats: u64,
    since: Moment,
}

/// The shortest and the longest wait, without the first one.
#[derive(Debug)]
struct Spread {
    shortest: Duration,
    longest: Duration,
}

impl Retries {
    /// Whether no request is remembered.
    pub(in crate::report) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of remembered requests.
    pub(in crate::report) fn remembered(&self) -> usize {
        self.0.iter().map(Row::remembered).sum()
    }

    pub(in crate::report) fn judge(&mut self, request: &Arc<Facts>, found: &mut Ruling) {
        let place = self.0.iter().position(|row| row.last.is_same_as(request));
        let mut row = place.and_then(|place| self.0.remove(place));
        if let Some(row) = &mut row {
            row.judge(request, found);
        }
        // After a success, or a response with `Retry-After`, the next request does not continue
        // this row.
        if !request.has_failed() || request.retry_after().is_some() {
            if let Some(row) = row {
                row.complete(found);
            }
            return;
        }
        let mut row = row.unwrap_or_else(|| Row::new(request));
        row.last = Arc::clone(request);
        if self.0.len() == MAX_ROWS
            && let Some(oldest) = self.0.pop_front()
        {
            oldest.complete(found);
        }
        self.0.push_back(row);
    }

    /// Judges all rows as if they were complete.
    pub(in crate::report) fn complete(&self, found: &mut Ruling) {
        for row in &self.0 {
            row.complete(found);
        }
    }

    /// Returns how long until all rows are complete that would then break a rule.
    pub(in crate::report) fn undecided(&self, now: &Moment) -> Option<Duration> {
        let open = self.0.iter().filter(|row| row.are_retries_at_once());
        let left = open.map(|row| COMPLETE.saturating_sub(now.gap_since(row.last.ended())));
        left.max().filter(|left| !left.is_zero())
    }
}

impl Row {
    fn new(first: &Arc<Facts>) -> Self {
        Self {
            series: Series::after(first),
            last: Arc::clone(first),
            at_once: AtOnce::new(first),
            hammering: Hammering::new(first),
            spread: Spread {
                shortest: Duration::MAX,
                longest: Duration::ZERO,
            },
            is_steady: false,
            back_off: BackOff::NotFound,
        }
    }

    fn remembered(&self) -> usize {
        self.series.remembered() + self.at_once.series.remembered()
    }

    /// Returns the number of the first failure, which identifies the row.
    fn id(&self) -> u64 {
        self.series.cause().map_or(0, |first| first.number())
    }

    fn judge(&mut self, request: &Arc<Facts>, found: &mut Ruling) {
        if let Some(first) = self.series.cause()
            && request.arrived().is_before(first.ended())
        {
            return;
        }
        let last = &self.last;
        let wait = wait_after(last, request);
        let is_next = last.connection() == request.connection() && !request.is_multiplexed();
        self.at_once.push(request, wait, is_next);
        if self.series.count() > 0 {
            self.spread.push(wait);
        }
        self.series.push(request);
        self.hammering.push(wait, request);
        let is_alone = is_next && !request.may_be_several();
        match self.back_off {
            BackOff::NotFound if self.hammering.is_found(is_alone) => {
                self.back_off = BackOff::Hammering;
                let breach = Breach::new(self.id(), self.haste(request), self.series.clone());
                found.add(Rule::BackOff, breach);
            }
            BackOff::NotFound if request.may_be_several() => {}
            BackOff::NotFound => self.judge_steadiness(request, found),
            BackOff::Hammering if self.hammering.repeats == 0 => self.back_off = BackOff::Found,
            BackOff::Hammering => {
                let breach = Breach::continued(self.id(), self.haste(request), request);
                found.add(Rule::BackOff, breach);
            }
            BackOff::Found => {}
        }
    }

    /// Judges the row as if it was complete.
    fn complete(&self, found: &mut Ruling) {
        if !self.are_retries_at_once() {
            return;
        }
        let text = format!(
            "{} was sent again {} times, {} of them less than {} after the failure",
            self.last.name(),
            self.at_once.series.count(),
            self.at_once.without_wait,
            seconds(AT_ONCE),
        );
        let breach = Breach::new(self.id(), text, self.at_once.series.clone());
        found.add(Rule::BackOff, breach);
    }

    /// Whether the row breaks the rule if it is not continued.
    fn are_retries_at_once(&self) -> bool {
        self.back_off == BackOff::NotFound && self.at_once.is_found()
    }

    /// Judges whether the waits grow. This counts once per client.
    fn judge_steadiness(&mut self, request: &Arc<Facts>, found: &mut Ruling) {
        if !self.spread.are_steady(self.series.count()) {
            return;
        }
        if self.is_steady {
            let breach = Breach::by_one(0, String::new(), request);
            found.add(Rule::SteadyRetry, breach);
            return;
        }
        self.is_steady = true;
        let text = format!(
            "{} was sent again {} to {} after the failures",
            request.name(),
            seconds(self.spread.shortest),
            seconds(self.spread.longest),
        );
        found.add(Rule::SteadyRetry, Breach::new(0, text, self.series.clone()));
    }

    /// Describes the hammering, up to and including a request.
    fn haste(&self, request: &Facts) -> String {
        let all = self.series.count();
        let quick = self.hammering.repeats;
        let time = seconds(request.arrived().gap_since(&self.hammering.since));
        let name = request.name();
        if quick == all {
            return format!("{name} was sent again {all} times within {time}");
        }
        format!("{name} was sent again {all} times, the last {quick} times within {time}")
    }
}

impl AtOnce {
    fn new(failure: &Arc<Facts>) -> Self {
        Self {
            series: Series::after(failure),
            without_wait: 0,
            may_be_retries: true,
        }
    }

    fn push(&mut self, request: &Arc<Facts>, wait: Duration, is_next: bool) {
        if wait >= CALM && self.without_wait == 0 {
            // Long waits before the first short one don't count.
            *self = Self::new(request);
            return;
        }
        self.series.push(request);
        self.without_wait += u64::from(wait < AT_ONCE);
        self.may_be_retries &= is_next && wait < CALM;
    }

    const fn is_found(&self) -> bool {
        let is_most = self.without_wait * 100 > self.series.count() * MIN_SHARE;
        self.may_be_retries && self.without_wait >= MIN_AT_ONCE && is_most
    }
}

impl Hammering {
    fn new(first: &Facts) -> Self {
        Self {
            ahead: Duration::ZERO,
            repeats: 0,
            since: *first.ended(),
        }
    }

    fn push(&mut self, wait: Duration, request: &Facts) {
        self.ahead = (self.ahead + PACE).saturating_sub(wait);
        if self.ahead.is_zero() {
            self.repeats = 0;
            self.since = *request.ended();
        } else {
            self.repeats += 1;
        }
    }

    fn is_found(&self, is_alone: bool) -> bool {
        let allowed = if is_alone {
            AHEAD_ALONE
        } else {
            AHEAD_TOGETHER
        };
        self.ahead > PACE * allowed
    }
}

impl Spread {
    fn push(&mut self, wait: Duration) {
        self.shortest = self.shortest.min(wait);
        self.longest = self.longest.max(wait);
    }

    /// Whether the waits don't grow.
    fn are_steady(&self, repeats: u64) -> bool {
        if repeats >= MIN_WITHOUT_WAIT && self.longest < NO_WAIT {
            return true;
        }
        let most = self.shortest.saturating_mul(5) / 4 + SLACK;
        repeats >= MIN_STEADY && self.longest <= most && self.longest < POLLING
    }
}

/// Returns the time that a client waited before a repeat.
fn wait_after(last: &Facts, request: &Facts) -> Duration {
    let is_slow = last.ended().gap_since(last.arrived()) >= SLOW;
    let since = if is_slow {
        last.arrived()
    } else {
        last.ended()
    };
    request.arrived().gap_since(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_below_the_bound_count_as_none() {
        let moment = Duration::from_nanos(1);
        for (longest, is_steady) in [(NO_WAIT - moment, true), (NO_WAIT, false)] {
            let shortest = Duration::ZERO;
            let spread = Spread { shortest, longest };
            assert_eq!(
                spread.are_steady(MIN_WITHOUT_WAIT),
                is_steady,
                "{longest:?}"
            );
        }
    }
}
