//! How long the rest takes, by the quotas that are known and the speed that was seen. Pure.

use std::time::Duration;

use petstore_client::rate_limit::{Quota, RateLimits};

/// Returns how long `rows` more requests take, at `pace` each where no quota holds them back.
pub(super) fn left(rows: usize, pace: Duration, limits: &RateLimits) -> Duration {
    let work = pace.saturating_mul(u32::try_from(rows).unwrap_or(u32::MAX));
    let by_quota = limits.windows.iter().map(|known| {
        let window = match known.quota {
            Quota::Day => Duration::from_secs(86_400),
            _ => Duration::from_secs(60),
        };
        let beyond = (rows as u64).saturating_sub(known.remaining);
        if beyond == 0 || known.limit == 0 {
            return Duration::ZERO;
        }
        let whole = u32::try_from((beyond - 1) / known.limit).unwrap_or(u32::MAX);
        let reset = limits.service_time.and_then(|now| known.reset.duration_since(now).ok());
        let reset = reset.unwrap_or_default();
        reset.saturating_add(window.saturating_mul(whole))
    });
    by_quota.fold(work, Duration::max)
}

/// Writes a length of time as `5:32`, `1:05:32` or `2 days`.
pub(super) fn shown(length: Duration) -> String {
    let seconds = length.as_secs() + u64::from(length.subsec_nanos() > 0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        1..48 => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{} days", hours.div_ceil(24)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_lengths_of_time() {
        let shown = |seconds| shown(Duration::from_secs(seconds));
        assert_eq!([shown(5), shown(332), shown(3_932)], ["0:05", "5:32", "1:05:32"]);
        assert_eq!([shown(172_799), shown(172_801)], ["47:59:59", "2 days"]);
    }

    #[test]
    fn without_a_quota_it_is_the_work() {
        let limits = RateLimits::default();
        let pace = Duration::from_millis(10);
        assert_eq!(left(200, pace, &limits), Duration::from_secs(2));
    }
}
