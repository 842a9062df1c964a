//! How far it is, told now and then: as a bar that changes on a terminal, else as plain lines.

use std::time::Duration;

use petstore_client::Client;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::estimate;
use crate::report::Report;

const ON_A_TERMINAL: Duration = Duration::from_millis(200);
const ELSEWHERE: Duration = Duration::from_secs(10);
/// How many characters a bar has.
const BAR: usize = 20;

pub(super) struct Progress<'c> {
    report: &'c Report,
    client: &'c Client,
    started: Instant,
    told: Instant,
    all: usize,
    pub(super) done: usize,
    seconds: Interval,
}

impl<'c> Progress<'c> {
    pub(super) fn new(report: &'c Report, client: &'c Client, all: usize) -> Self {
        let started = Instant::now();
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { report, client, started, told: started, all, done: 0, seconds }
    }

    /// Counts a row, and tells of it if it is time.
    pub(super) fn step(&mut self) {
        self.done += 1;
        let pause = if self.report.is_live() { ON_A_TERMINAL } else { ELSEWHERE };
        if self.told.elapsed() >= pause {
            self.tell();
        }
    }

    /// Tells of it each second, where it can be in place of what was told before. Does not end.
    pub(super) async fn tick(&mut self) {
        if !self.report.is_live() {
            std::future::pending::<()>().await;
        }
        self.seconds.tick().await;
        self.tell();
    }

    fn tell(&mut self) {
        if self.done >= self.all {
            return;
        }
        self.told = Instant::now();
        let done = u32::try_from(self.done).unwrap_or(u32::MAX).max(1);
        let pace = self.started.elapsed() / done;
        let limits = self.client.rate_limits();
        let left = estimate::shown(estimate::left(self.all - self.done, pace, &limits));
        let percent = self.done.saturating_mul(100) / self.all;
        let mut text = format!("{} of {} rows ({percent} %)", self.done, self.all);
        if self.done > 0 {
            text += &format!(", about {left} left");
        }
        if self.report.is_live() {
            let full = self.done.saturating_mul(BAR) / self.all;
            text = format!("[{}{}] {text}", "#".repeat(full), "-".repeat(BAR - full));
            // Elsewhere the wait itself is told.
            if let Some(blocked) = &limits.blocked {
                text += &format!(", waiting: {}", blocked.reason);
            }
        }
        self.report.progress(&text);
    }
}
