//! How long an import takes, by the quotas of the minute and of the day.

use std::time::{Duration, SystemTime};

use petstore_client::rate_limit::{Quota, QuotaWindow, RateLimits};

use crate::time::{Clock, count, duration};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// What the quotas allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forecast {
    /// How long all rows take.
    pub(crate) length: Duration,
    /// The quota that decides, if one does.
    pub(crate) limited_by: Option<Quota>,
    /// The rows that the day's quota leaves for today, and how long they take.
    pub(crate) today: (u64, Duration),
    minute: Option<u64>,
    day: Option<u64>,
}

/// What is left of a quota.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    limit: u64,
    remaining: u64,
    /// The time to its reset.
    reset: Duration,
    period: Duration,
}

impl Window {
    /// Returns the wait for the last of a number of requests.
    fn wait(&self, requests: u64) -> Duration {
        let beyond = requests.saturating_sub(self.remaining);
        if beyond == 0 || self.limit == 0 {
            return Duration::ZERO;
        }
        let whole = u32::try_from((beyond - 1) / self.limit).unwrap_or(u32::MAX);
        self.reset.saturating_add(self.period.saturating_mul(whole))
    }
}

/// Returns what is left of the minute's and of the day's quota.
pub(crate) fn windows(limits: &RateLimits, now: SystemTime) -> [Option<Window>; 2] {
    [(Quota::Minute, MINUTE), (Quota::Day, DAY)].map(|(quota, period)| {
        let window = limits.windows.iter().find(|window| window.quota == quota)?;
        let QuotaWindow { limit, remaining, reset, .. } = *window;
        let reset = reset.duration_since(now).unwrap_or_default();
        Some(Window { limit, remaining, reset, period })
    })
}

/// Forecasts so many requests; `None` where no quota is known.
pub(crate) fn forecast(rows: usize, windows: [Option<Window>; 2]) -> Option<Forecast> {
    let rows = rows as u64;
    let [minute, day] = windows;
    if minute.is_none() && day.is_none() {
        return None;
    }
    let by_minute = |rows| minute.map_or(Duration::ZERO, |window| window.wait(rows));
    let today = day.map_or(rows, |window| window.remaining.min(rows));
    let by_day = day.map_or(Duration::ZERO, |window| window.wait(rows));
    let length = match day {
        Some(day) if !by_day.is_zero() => {
            // The rows of the last day take the minutes that they take.
            let last = (rows - today).saturating_sub(1) % day.limit.max(1);
            let per_minute = minute.map_or(u64::MAX, |window| window.limit.max(1));
            by_day.saturating_add(MINUTE * u32::try_from(last / per_minute).unwrap_or(0))
        }
        _ => by_minute(rows),
    };
    let limited_by = match (by_day.is_zero(), length.is_zero()) {
        (false, _) => Some(Quota::Day),
        (true, false) => Some(Quota::Minute),
        (true, true) => None,
    };
    let (minute, per_day) = (minute.map(|window| window.limit), day.map(|window| window.limit));
    Some(Forecast { length, limited_by, today: (today, by_minute(today)), minute, day: per_day })
}

impl Forecast {
    /// Returns whether some wait is longer than it may be, so that the run ends with the day quota.
    pub(crate) fn ends_today(&self, max_wait: Duration) -> bool {
        self.limited_by == Some(Quota::Day) && max_wait < Duration::from_secs(3_600)
    }

    /// Returns the forecast of a plan.
    pub(crate) fn text(&self, clock: &Clock, rows: usize) -> String {
        let complete = clock.minute(clock.now() + self.length);
        match self.limited_by {
            Some(Quota::Day) => {
                let (today, length) = self.today;
                let by = clock.minute(clock.now() + length);
                let (today, day) = (count(today), count(self.day.unwrap_or_default()));
                format!("{today} rows by {by}, the rest {day} a day: complete {complete}")
            }
            Some(_) => {
                let minutes = duration(
                    MINUTE * u32::try_from(self.length.as_secs().div_ceil(60)).unwrap_or(u32::MAX),
                );
                format!("{minutes} by the minute quota, complete at {complete}")
            }
            None => format!("{} rows within the quotas: complete in a moment", count(rows)),
        }
    }

    /// Returns the forecast beside a bar.
    pub(crate) fn short(&self, clock: &Clock, max_wait: Duration) -> String {
        let rate = match (self.minute, self.limited_by) {
            (Some(minute), Some(_)) => format!("{} a minute", count(minute)),
            _ => return String::new(),
        };
        if self.ends_today(max_wait) {
            let end = clock.minute(clock.now() + self.today.1);
            return format!("{rate}, day quota ends {end}");
        }
        format!("{rate}, until {}", clock.minute(clock.now() + self.length))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    /// Sunday 22 November 2026, 06:44:19 UTC.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_329_859)
    }

    const MINUTES: Option<Window> =
        Some(Window { limit: 60, remaining: 57, reset: Duration::from_secs(41), period: MINUTE });
    const DAYS: Option<Window> = Some(Window {
        limit: 1_000,
        remaining: 940,
        reset: Duration::from_secs(62_141),
        period: DAY,
    });

    fn clock() -> Clock {
        Clock { now, zone: Some(TimeZone::fixed(jiff::tz::offset(1))) }
    }

    #[test]
    fn names_the_day_where_the_day_quota_decides() {
        let forecast = forecast(2_980, [MINUTES, DAYS]).unwrap();
        let text = "940 rows by 07:59, the rest 1,000 a day: complete Wed 25 Nov, 01:00";
        assert_eq!(forecast.text(&clock(), 2_980), text);
        assert_eq!(
            forecast.short(&clock(), Duration::from_secs(120)),
            "60 a minute, day quota ends 07:59"
        );
        let patient = forecast.short(&clock(), Duration::from_secs(86_400));
        assert_eq!(patient, "60 a minute, until Wed 25 Nov, 01:00");
    }

    #[test]
    fn names_the_minutes_where_the_minute_quota_decides() {
        let forecast = forecast(3_000, [MINUTES, None]).unwrap();
        assert_eq!(forecast.text(&clock(), 3_000), "50 min by the minute quota, complete at 08:34");
    }

    #[test]
    fn knows_nothing_where_no_quota_is_known() {
        assert_eq!(forecast(10, [None, None]), None);
        let within = forecast(10, [MINUTES, None]).unwrap();
        assert_eq!((within.length, within.limited_by), (Duration::ZERO, None));
    }
}
