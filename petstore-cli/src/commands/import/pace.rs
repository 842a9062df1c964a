//! Decides how many rows may be in flight, and what happens while the service fails.

use std::time::Duration;

use petstore_client::{Error, ErrorKind};
use tokio::time::Instant;

use crate::error::{CliError, Invalid, Result};
use crate::settings::{Seconds, parse};

/// After this many failures in a row, a pause begins.
const MAX_FAILURES: u32 = 5;
/// The first pause. Each one after it is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// The initial and maximum number of rows in flight, unless `--concurrency` sets it.
const FIRST_CONCURRENCY: usize = 8;
const MAX_CONCURRENCY: usize = 128;

/// How fast rows are sent.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PaceArgs {
    /// most rows in flight, 1 to 256 [default: automatic]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = in_flight)]
    concurrency: Option<usize>,

    /// how long the service may fail [default: 2m]
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2m",
        hide_default_value = true
    )]
    #[arg(value_parser = parse::<Seconds<0>>)]
    retry_for: Seconds<0>,
}

fn in_flight(text: &str) -> Result<usize, Invalid> {
    match text.parse() {
        Ok(number @ 1..=256) => Ok(number),
        _ => Err(Invalid::new("is not a number from 1 to 256")),
    }
}

/// A time in which all requests fail.
#[derive(Debug)]
struct Outage {
    began: Instant,
    /// The end of the pause. Then one row shows whether the service works again.
    until: Instant,
    pause: Duration,
    reason: PauseReason,
}

/// The last failure: as a sentence, and in a few words for a place beside the progress bar.
#[derive(Debug)]
pub(super) struct PauseReason {
    pub(super) text: String,
    pub(super) short: String,
}

/// The number of rows that may be in flight. Each success adds one, and a failure halves it.
#[derive(Debug)]
pub(super) struct Pace {
    concurrency: usize,
    max: usize,
    retry_for: Duration,
    failures: u32,
    first_failure: Option<Instant>,
    outage: Option<Outage>,
    /// Why the run ends before all rows are sent.
    stop: Option<CliError>,
    /// How long the service had failed when the run gave up.
    gave_up_after: Option<Duration>,
}

impl Pace {
    pub(super) fn new(args: &PaceArgs) -> Self {
        let (first, max) = match args.concurrency {
            Some(most) => (most, most),
            None => (FIRST_CONCURRENCY, MAX_CONCURRENCY),
        };
        Self {
            concurrency: first,
            max,
            retry_for: args.retry_for.0,
            failures: 0,
            first_failure: None,
            outage: None,
            stop: None,
            gave_up_after: None,
        }
    }

    /// Returns how many rows may be in flight. During a pause that is none, and after it one.
    pub(super) fn concurrency(&self) -> usize {
        match &self.outage {
            Some(outage) if outage.until > Instant::now() => 0,
            Some(_) => 1,
            None => self.concurrency,
        }
    }

    /// Returns how much longer the pause lasts, and its reason.
    pub(super) fn pause(&self) -> Option<(Duration, &PauseReason)> {
        let outage = self.outage.as_ref()?;
        let rest = outage.until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return None;
        }
        Some((rest, &outage.reason))
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.first_failure = None;
        self.outage = None;
        self.concurrency = self.max.min(self.concurrency + 1);
    }

    /// Allows this number of rows in flight, until one succeeds.
    pub(super) fn limit(&mut self, in_flight: usize) {
        self.concurrency = self.concurrency.min(in_flight).max(1);
    }

    pub(super) fn failed(&mut self, error: Error) {
        let now = Instant::now();
        self.failures += 1;
        self.concurrency = (self.concurrency / 2).max(1);
        let began = *self.first_failure.get_or_insert(now);
        if is_hopeless(&error) {
            self.stop(error.into());
            return;
        }
        let pause = match &self.outage {
            // The row was sent before the pause began.
            Some(outage) if outage.until > now && error.retry_after().is_none() => return,
            Some(outage) => LONGEST_PAUSE.min(outage.pause * 2),
            None if self.failures < MAX_FAILURES => return,
            None => FIRST_PAUSE,
        };
        let rest = (began + self.retry_for).saturating_duration_since(now);
        let told = error.retry_after().unwrap_or_default();
        if rest.is_zero() || told > rest {
            if self.outage.is_some() && !self.has_stopped() {
                self.gave_up_after = Some(now.saturating_duration_since(began));
            }
            self.stop(error.into());
            return;
        }
        self.outage = Some(Outage {
            began,
            until: now + pause.min(rest).max(told),
            pause,
            reason: reason(&error),
        });
    }

    /// Ends the run. The first reason counts.
    pub(super) fn stop(&mut self, reason: CliError) {
        self.stop.get_or_insert(reason);
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Returns how long the run was kept going while the service failed, if it gave up in the end.
    pub(super) fn gave_up_after(&self) -> Option<Duration> {
        self.gave_up_after
    }

    /// Returns why the run ended.
    pub(super) fn finish(self) -> Result<()> {
        self.stop.map_or(Ok(()), Err)
    }

    /// Returns how long the service has failed.
    pub(super) fn outage(&self) -> Option<Duration> {
        let outage = self.outage.as_ref()?;
        Some(outage.began.elapsed())
    }
}

/// Returns whether all further rows would fail too: because of the key, the URL or a limit.
pub(super) fn is_hopeless(error: &Error) -> bool {
    let status = error.status().map_or(0, |status| status.as_u16());
    let is_kind = matches!(
        error.kind(),
        ErrorKind::Config | ErrorKind::InvalidRequest | ErrorKind::Tls
    );
    is_kind || error.blocked().is_some() || matches!(status, 401 | 403 | 404 | 405 | 410)
}

/// Describes a failure that may pass.
fn reason(error: &Error) -> PauseReason {
    let (text, short) = match error.status() {
        Some(status) => {
            let status = status.as_u16();
            (format!("the service fails ({status})"), status.to_string())
        }
        None if error.is_rate_limited() => (
            "other requests with this key are in flight".to_owned(),
            "other requests".to_owned(),
        ),
        None if error.is_connect() => (
            "cannot connect to the service".to_owned(),
            "no connection".to_owned(),
        ),
        None if error.is_timeout() => (
            "the service does not respond".to_owned(),
            "no response".to_owned(),
        ),
        None => (
            "the connection was lost".to_owned(),
            "connection lost".to_owned(),
        ),
    };
    PauseReason {
        text,
        short: format!("{short}, paused"),
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use petstore_client::test_util::ErrorBuilder;
    use tokio::time::advance;

    use super::*;

    fn pace(concurrency: Option<usize>, retry_for: u64) -> Pace {
        Pace::new(&PaceArgs {
            concurrency,
            retry_for: Seconds(Duration::from_secs(retry_for)),
        })
    }

    #[test]
    fn concurrency_grows_with_success_and_halves_with_failure() {
        let mut pace = pace(None, 0);
        (0..500).for_each(|_| pace.succeeded());
        assert_eq!(pace.concurrency(), MAX_CONCURRENCY);
        let mut fixed = self::pace(Some(4), 0);
        fixed.succeeded();
        assert_eq!(fixed.concurrency(), 4);
    }

    fn failure(told: Option<u64>) -> Error {
        let error = ErrorBuilder::response(StatusCode::SERVICE_UNAVAILABLE, "");
        match told {
            Some(told) => error.retry_after(Duration::from_secs(told)).build(),
            None => error.build(),
        }
    }

    /// Lets requests fail until a pause or the end of the run. Returns the length of the pause.
    fn pause_after(pace: &mut Pace, failures: u32, told: Option<u64>) -> Option<u64> {
        (0..failures).for_each(|_| pace.failed(failure(told)));
        pace.pause().map(|(rest, _)| rest.as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_begins_after_five_failures_and_doubles() {
        let mut pace = pace(None, 60);
        assert_eq!(pause_after(&mut pace, 4, None), None);
        assert_eq!(pause_after(&mut pace, 1, None), Some(1));
        assert_eq!(pace.concurrency(), 0);
        // Failures of rows that were already in flight do not extend the pause.
        assert_eq!(pause_after(&mut pace, 9, None), Some(1));
        let mut pauses = Vec::new();
        while let Some((rest, reason)) = pace.pause() {
            assert_eq!(reason.text, "the service fails (503)");
            assert_eq!(reason.short, "503, paused");
            pauses.push(rest.as_secs());
            advance(rest).await;
            assert_eq!(pace.concurrency(), 1);
            pace.failed(failure(None));
        }
        // The last pause ends when `retry_for` has elapsed.
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15, 15]);
        assert!(pace.has_stopped());
        assert_eq!(pace.gave_up_after(), Some(Duration::from_secs(60)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_succeeds_ends_the_pause() {
        let mut pace = pace(Some(4), 60);
        pause_after(&mut pace, 5, None);
        advance(Duration::from_secs(1)).await;
        pace.succeeded();
        assert_eq!((pace.concurrency(), pace.has_stopped()), (2, false));
        assert_eq!(pause_after(&mut pace, 4, None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_obeys_retry_after_and_a_long_one_ends_the_run() {
        let mut pace = pace(None, 60);
        assert_eq!(pause_after(&mut pace, 5, Some(40)), Some(40));
        assert_eq!(pause_after(&mut pace, 1, Some(50)), Some(50));
        pause_after(&mut pace, 1, Some(61));
        assert!(pace.has_stopped());
        let mut none = self::pace(None, 0);
        pause_after(&mut none, 4, None);
        assert!(!none.has_stopped());
        pause_after(&mut none, 1, None);
        assert!(none.has_stopped());
        assert_eq!(none.gave_up_after(), None);
    }
}
