//! The service: windows, headers, refusals and bans.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::rng::Rng;
use crate::rate_limit::quota::instant::{DAY, MINUTE, SECOND, ServiceTime, micros};
use crate::rate_limit::quota::reading::{Reading, ResponseHead};

/// Which quota the headers describe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shows {
    Tightest,
    Minute,
    Day,
    Nothing,
}

/// What a refusal says about its wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RetryAfter {
    Right,
    Years,
    Absent,
    Zero,
}

/// The kind of service.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) minute: u64,
    pub(super) day: u64,
    pub(super) is_sliding: bool,
    pub(super) shows: Shows,
    /// Whether resets are rounded down instead of up.
    pub(super) rounds_down: bool,
    /// How much later than on the full minute windows begin.
    pub(super) phase: i64,
    pub(super) has_dates: bool,
    /// How far `Date` is ahead of the clock that determines the windows.
    pub(super) date_ahead: i64,
    /// How far the clock of one of two backends is ahead.
    pub(super) skew: i64,
    /// How far the client's wall clock is off.
    pub(super) wall_off: i64,
    pub(super) retry_after: RetryAfter,
    /// The chances of a refusal without a reason, of a 500, and of no response for half a minute.
    pub(super) whims: f64,
    pub(super) errors: f64,
    pub(super) hangs: f64,
}

impl Model {
    pub(super) fn new(minute: u64) -> Self {
        Self {
            minute,
            day: 1 << 40,
            is_sliding: false,
            shows: Shows::Tightest,
            rounds_down: false,
            phase: 0,
            has_dates: true,
            date_ahead: 0,
            skew: 0,
            wall_off: 0,
            retry_after: RetryAfter::Right,
            whims: 0.0,
            errors: 0.0,
            hangs: 0.0,
        }
    }
}

/// A quota as the service counts it.
struct Quota {
    limit: u64,
    length: i64,
    is_sliding: bool,
    phase: i64,
    /// The number of the current window, and what is used of it.
    window: i64,
    used: u64,
    /// When requests came, for a sliding window.
    times: VecDeque<i64>,
}

impl Quota {
    fn left(&mut self, now: i64) -> u64 {
        if self.is_sliding {
            while self.times.front().is_some_and(|at| at + self.length <= now) {
                self.times.pop_front();
            }
            self.used = self.times.len() as u64;
        } else {
            let window = (now - self.phase).div_euclid(self.length);
            if window != self.window {
                (self.window, self.used) = (window, 0);
            }
        }
        self.limit.saturating_sub(self.used)
    }

    fn reset(&mut self, now: i64) -> i64 {
        self.left(now);
        if self.is_sliding {
            self.times.front().map_or(now, |at| at + self.length)
        } else {
            (self.window + 1) * self.length + self.phase
        }
    }

    fn count(&mut self, now: i64) {
        self.left(now);
        self.used += 1;
        if self.is_sliding {
            self.times.push_back(now);
        }
    }
}

pub(super) struct Service {
    pub(super) model: Model,
    quotas: [Quota; 2],
    /// The service's time at the start.
    epoch: i64,
    start: Instant,
    rng: Rng,
    /// Until when the key is told to wait, and the requests that came earlier within a minute.
    told_until: i64,
    early: VecDeque<i64>,
    banned_until: i64,
    pub(super) refusals: u64,
    pub(super) bans: u64,
    pub(super) by_strangers: u64,
    /// When each process was let in.
    pub(super) admitted: Vec<(i64, usize)>,
}

impl Service {
    pub(super) fn new(model: Model, epoch: i64, seed: u64) -> Self {
        let quota = |limit, length, phase| Quota {
            limit,
            length,
            is_sliding: model.is_sliding,
            phase,
            window: i64::MIN,
            used: 0,
            times: VecDeque::new(),
        };
        let quotas = [
            quota(model.minute, MINUTE, model.phase),
            quota(model.day, DAY, 0),
        ];
        Self {
            model,
            quotas,
            epoch,
            start: Instant::now(),
            rng: Rng::new(seed),
            told_until: i64::MIN,
            early: VecDeque::new(),
            banned_until: i64::MIN,
            refusals: 0,
            bans: 0,
            by_strangers: 0,
            admitted: Vec::new(),
        }
    }

    fn now(&self) -> i64 {
        self.epoch + micros(self.start.elapsed())
    }

    /// Returns how many requests are left, and how long until some are.
    pub(super) fn left(&mut self) -> (u64, i64) {
        let now = self.now();
        let [minute, day] = &mut self.quotas;
        let left = minute.left(now).min(day.left(now));
        (left, self.wait(now))
    }

    fn wait(&mut self, now: i64) -> i64 {
        let used_up = self.quotas.iter_mut().filter_map(|quota| {
            let is_used_up = quota.left(now) == 0;
            is_used_up.then(|| quota.reset(now) - now)
        });
        used_up.max().unwrap_or(0)
    }

    /// Counts requests of a stranger: at most as many as are left.
    pub(super) fn count_strangers(&mut self, most: u64) {
        let now = self.now();
        if now < self.banned_until {
            return;
        }
        let requests = self.left().0.min(most);
        for _ in 0..requests {
            self.quotas.iter_mut().for_each(|quota| quota.count(now));
        }
        self.by_strangers += requests;
    }

    /// Returns whether a request gets no response.
    pub(super) fn hangs(&mut self) -> bool {
        self.rng.happens(self.model.hangs)
    }

    pub(super) fn serve(&mut self, process: usize) -> ResponseHead {
        let now = self.now();
        self.watch_for_a_ban(now);
        let (left, wait) = self.left();
        let wait = if now < self.banned_until {
            Some(self.banned_until - now)
        } else if left == 0 {
            Some(wait)
        } else {
            self.rng.happens(self.model.whims).then_some(0)
        };
        let status = match wait {
            Some(wait) => {
                self.refuse(now, wait);
                429
            }
            None => {
                self.quotas.iter_mut().for_each(|quota| quota.count(now));
                self.admitted.push((now, process));
                if self.rng.happens(self.model.errors) {
                    500
                } else {
                    200
                }
            }
        };
        ResponseHead {
            status,
            date: self.date(now),
            wall: ServiceTime(now + self.model.wall_off),
            reading: self.reading(now, status),
            retry_after: wait.and_then(|wait| self.retry_after(wait)),
        }
    }

    /// Bans a key of which more than ten requests have come early within a minute.
    fn watch_for_a_ban(&mut self, now: i64) {
        if now < self.told_until {
            self.early.push_back(now);
        }
        self.early.retain(|at| *at > now - MINUTE);
        if now >= self.banned_until && self.early.len() > 10 {
            self.early.clear();
            self.bans += 1;
            self.banned_until = now + 300 * SECOND;
        }
    }

    fn refuse(&mut self, now: i64, wait: i64) {
        self.refusals += 1;
        if matches!(self.model.retry_after, RetryAfter::Right | RetryAfter::Zero) {
            self.told_until = self.told_until.max(now + rounded_up(wait));
        }
    }

    fn retry_after(&self, wait: i64) -> Option<i64> {
        match self.model.retry_after {
            RetryAfter::Right => Some(rounded_up(wait)),
            RetryAfter::Years => Some(10 * 365 * DAY),
            RetryAfter::Zero => Some(0),
            RetryAfter::Absent => None,
        }
    }

    fn date(&mut self, now: i64) -> Option<ServiceTime> {
        let skew = if self.rng.happens(0.5) {
            self.model.skew
        } else {
            0
        };
        let date = now + self.model.date_ahead + skew;
        let date = ServiceTime(date.div_euclid(SECOND) * SECOND);
        self.model.has_dates.then_some(date)
    }

    fn reading(&mut self, now: i64, status: u16) -> Option<Reading> {
        let [minute, day] = &mut self.quotas;
        let shown = match self.model.shows {
            Shows::Nothing => return None,
            Shows::Tightest if day.left(now) < minute.left(now) => day,
            Shows::Tightest | Shows::Minute => minute,
            Shows::Day => day,
        };
        if status == 500 {
            return None;
        }
        let up = if self.model.rounds_down {
            0
        } else {
            SECOND - 1
        };
        let reset = (shown.reset(now) + up).div_euclid(SECOND) * SECOND;
        Some(Reading {
            limit: shown.limit,
            remaining: shown.left(now),
            reset: ServiceTime(reset),
        })
    }
}

/// Rounds a wait up to whole seconds: at least one.
fn rounded_up(wait: i64) -> i64 {
    ((wait + SECOND - 1) / SECOND).max(1) * SECOND
}
