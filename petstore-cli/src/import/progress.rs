//! How far it is, told now and then: as one line that changes on a terminal, else as plain lines.

use std::time::{Duration, SystemTime};

use petstore_client::Client;
use tokio::time::Instant;

use super::estimate;
use crate::report::Report;

const ON_A_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(10);

pub(super) struct Progress<'c> {
    report: &'c Report,
    client: &'c Client,
    now: fn() -> SystemTime,
    started: Instant,
    told: Instant,
    all: usize,
    done: usize,
}

impl<'c> Progress<'c> {
    pub(super) fn new(
        report: &'c Report,
        client: &'c Client,
        now: fn() -> SystemTime,
        all: usize,
    ) -> Self {
        let started = Instant::now();
        Self { report, client, now, started, told: started, all, done: 0 }
    }

    /// Counts a row, and tells of it if it is time.
    pub(super) fn step(&mut self) {
        self.done += 1;
        let pause = if self.report.is_live() { ON_A_TERMINAL } else { ELSEWHERE };
        if self.told.elapsed() < pause || self.done == self.all {
            return;
        }
        self.told = Instant::now();
        let done = u32::try_from(self.done).unwrap_or(u32::MAX);
        let pace = self.started.elapsed() / done;
        let rest = self.all - self.done;
        let left = estimate::left(rest, pace, &self.client.rate_limit(), (self.now)());
        let percent = self.done.saturating_mul(100) / self.all;
        self.report.progress(&format!(
            "{} of {} rows ({percent} %), about {} left",
            self.done,
            self.all,
            estimate::shown(left)
        ));
    }
}
