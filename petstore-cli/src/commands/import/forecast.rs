//! Estimates the duration of an import from the quotas.

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use petstore_client::limits::{Quota, QuotaWindow, RateLimits};
use serde_json::{Value, json};

use crate::session::words::{QUOTAS, QuotaWords, quota_left, quota_name};
use crate::time::{Clock, count, duration, instant};

const MINUTE: Duration = Duration::from_secs(60);

/// What is left of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    quota: Quota,
    limit: u64,
    remaining: u64,
    /// The time until its reset.
    reset: Duration,
    period: Duration,
}

impl Window {
    /// Returns what is left of a quota, if it is known.
    fn of(quota: Quota, limits: &RateLimits, now: SystemTime) -> Option<Self> {
        let period = quota.period()?;
        if let Some(window) = find(&limits.windows, quota) {
            let reset = window.reset.duration_since(now);
            return Some(Self {
                quota,
                limit: window.limit,
                remaining: window.remaining,
                reset: reset.unwrap_or_default(),
                period,
            });
        }
        // Its reset has passed, so the next request begins a full one.
        let ended = find(&limits.ended, quota)?;
        Some(Self {
            quota,
            limit: ended.limit,
            remaining: ended.limit,
            reset: period,
            period,
        })
    }

    /// Returns the wait before the last of a number of requests.
    fn wait(&self, requests: u64) -> Duration {
        let beyond = requests.saturating_sub(self.remaining);
        if beyond == 0 || self.limit == 0 {
            return Duration::ZERO;
        }
        let periods = u32::try_from((beyond - 1) / self.limit).unwrap_or(u32::MAX);
        self.reset
            .saturating_add(self.period.saturating_mul(periods))
    }

    /// Returns when the run ends early because a wait for a reset exceeds `--max-wait`. `first` is
    /// the time that the remaining requests take, and `full` the time that a whole quota takes.
    fn end(
        &self,
        requests: u64,
        [first, full]: [Duration; 2],
        max_wait: Duration,
    ) -> Option<Duration> {
        let first_wait = self.reset.saturating_sub(first);
        let next_wait = self.period.saturating_sub(full);
        if requests > self.remaining && first_wait > max_wait {
            return Some(first);
        }
        let has_next = requests > self.remaining.saturating_add(self.limit);
        if has_next && next_wait > max_wait {
            return Some(self.reset + full);
        }
        None
    }
}

fn find(windows: &[QuotaWindow], quota: Quota) -> Option<&QuotaWindow> {
    let mut windows = windows.iter();
    windows.find(|window| window.quota == quota)
}

/// The quotas of a key, in the order of [`Quota::ALL`]. Some may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quotas([Option<Window>; Quota::ALL.len()]);

impl Quotas {
    pub(super) fn new(limits: &RateLimits, now: SystemTime) -> Self {
        Self(std::array::from_fn(|place| {
            Window::of(Quota::ALL[place], limits, now)
        }))
    }

    fn known(&self) -> impl Iterator<Item = Window> {
        self.0.into_iter().flatten()
    }

    fn get(&self, quota: Quota) -> Option<Window> {
        self.known().find(|window| window.quota == quota)
    }

    fn minute(&self) -> Option<Window> {
        self.get(Quota::Minute)
    }

    /// Returns the known quotas other than the minute's.
    fn longer(&self) -> impl Iterator<Item = Window> {
        self.known().filter(|window| window.quota != Quota::Minute)
    }

    /// Returns what is left: `57 of 60 left this minute, 940 of 1,000 left today`.
    pub(super) fn text(&self) -> String {
        let left = |window: Window| quota_left(window.quota, window.remaining, window.limit);
        let parts: Vec<_> = self.known().map(left).collect();
        if parts.is_empty() {
            return "not known".to_owned();
        }
        let text = parts.join(", ");
        let is_missing =
            |words: &&QuotaWords| words.is_specified() && self.get(words.quota()).is_none();
        let missing: Vec<_> = QUOTAS
            .iter()
            .filter(is_missing)
            .map(QuotaWords::name)
            .collect();
        match missing.is_empty() {
            true => text,
            false => format!("{text}; {} quota not reported yet", missing.join(" and ")),
        }
    }

    /// Returns the quota for which this number of requests waits longest, if any. Ignores the
    /// minute's quota.
    fn slowest(&self, requests: u64) -> Option<Window> {
        let mut slowest = None;
        let mut longest = Duration::ZERO;
        for window in self.longer() {
            let wait = window.wait(requests);
            if !wait.is_zero() && wait >= longest {
                slowest = Some(window);
                longest = wait;
            }
        }
        slowest
    }

    /// Returns how long this number of requests waits for the minute's quota.
    fn minutes(&self, requests: u64) -> Duration {
        match self.minute() {
            Some(window) => window.wait(requests),
            None => Duration::ZERO,
        }
    }

    /// Estimates how long the rows take, if a quota is known.
    pub(super) fn forecast(self, rows: usize) -> Option<Forecast> {
        let rows = rows as u64;
        self.known().next()?;
        let slow = self.slowest(rows);
        let first = slow.map_or(rows, |window| window.remaining.min(rows));
        let (length, limited_by) = match slow {
            Some(slow) => {
                // The rows of the last period are also limited by the minute's quota.
                let last = (rows - first).saturating_sub(1) % slow.limit.max(1);
                let limit = self.minute().map_or(u64::MAX, |window| window.limit.max(1));
                let minutes = u32::try_from(last / limit).unwrap_or(0);
                let wait = slow.wait(rows);
                (wait.saturating_add(MINUTE * minutes), Some(slow.quota))
            }
            None => match self.minutes(rows) {
                Duration::ZERO => (Duration::ZERO, None),
                length => (length, Some(Quota::Minute)),
            },
        };
        let today = self.get(Quota::Day);
        let today = today.map_or(rows, |day| day.remaining.min(rows));
        Some(Forecast {
            quotas: self,
            rows,
            length,
            limited_by,
            today,
            first: (first, self.minutes(first)),
        })
    }
}

/// An estimate from the quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forecast {
    quotas: Quotas,
    rows: u64,
    /// The time that all rows take.
    length: Duration,
    /// The quota that limits the import, if any.
    limited_by: Option<Quota>,
    /// The rows that the quota per day allows today.
    today: u64,
    /// The number of rows before the first wait for an hour's or a day's reset, and the time that
    /// they take.
    first: (u64, Duration),
}

impl Forecast {
    /// Returns the quota whose wait exceeds `--max-wait`, and when the run ends because of it.
    pub(super) fn early_end(&self, max_wait: Duration) -> Option<(Quota, Duration)> {
        let minute = self.quotas.minute();
        let (first, length) = self.first;
        let by_minute = minute.and_then(|minute| minute.end(first, [Duration::ZERO; 2], max_wait));
        if let Some(end) = by_minute {
            return Some((Quota::Minute, end));
        }
        let ends = self.quotas.longer().filter_map(|window| {
            let minutes = minute.map_or(0, |minute| {
                window.limit.saturating_sub(1) / minute.limit.max(1)
            });
            let full = MINUTE.saturating_mul(u32::try_from(minutes).unwrap_or(u32::MAX));
            let end = window.end(self.rows, [length, full], max_wait)?;
            Some((window.quota, end))
        });
        ends.min_by_key(|(_, end)| *end)
    }

    /// Returns the estimate for a dry run.
    pub(super) fn text(&self, clock: &Clock) -> String {
        let at = |length| clock.minute(clock.now() + length);
        let complete = at(self.length);
        match self.limited_by {
            Some(Quota::Minute) => {
                let minutes = u32::try_from(self.length.as_secs().div_ceil(60)).unwrap_or(u32::MAX);
                let length = duration(MINUTE * minutes);
                format!("{length} by the minute quota, complete at {complete}")
            }
            Some(quota) => {
                let (rows, length) = self.first;
                let limit = count(self.quotas.get(quota).map_or(0, |window| window.limit));
                let period = QuotaWords::of(quota).map_or("", QuotaWords::period);
                let first = format!("{} rows by {}", count(rows), at(length));
                format!("{first}, the rest {limit} {period}: complete {complete}")
            }
            None if self.rows == 0 => "nothing to send".to_owned(),
            None => {
                let rows = match self.rows {
                    1 => "1 row".to_owned(),
                    rows => format!("{} rows", count(rows)),
                };
                match self.quotas.minute() {
                    Some(_) => format!("{rows} within the quotas: complete in a moment"),
                    None => format!("{rows} within the known quotas"),
                }
            }
        }
    }

    /// Returns the estimate for the progress bar.
    pub(super) fn short(&self, clock: &Clock, max_wait: Duration) -> String {
        let (Some(minute), Some(_)) = (self.quotas.minute(), self.limited_by) else {
            return String::new();
        };
        let at = |length| clock.minute(clock.now() + length);
        let end = match self.early_end(max_wait) {
            Some((quota, end)) => {
                let name = quota_name(quota);
                let end = at(end);
                format!("{name} ends {end}")
            }
            None => format!("until {}", at(self.length)),
        };
        let limit = count(minute.limit);
        format!("{limit} a minute, {end}")
    }

    /// Returns the estimate for programs. `runEndsAt` is when a wait exceeds `--max-wait`, so that the
    /// run ends before all rows are sent.
    pub(super) fn json(&self, now: SystemTime, max_wait: Duration) -> Value {
        let end = self.early_end(max_wait);
        json!({
            "completeAt": instant(now + self.length),
            "limitedBy": self.limited_by,
            "rowsToday": self.today,
            "runEndsAt": end.map(|(_, end)| instant(now + end)),
            "runEndsBy": end.map(|(quota, _)| quota),
        })
    }
}
