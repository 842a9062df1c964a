//! The service: windows, headers, refusals and bans.

use std::collections::VecDeque;

use super::rng::Rng;
use super::window::{DAY, MINUTE, SECOND, Window};

/// Which quota the headers describe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shows {
    Tightest,
    Minute,
    Day,
}

/// How a refusal names its wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wait {
    Seconds,
    Epoch,
    Text(&'static str),
    Absent,
    /// Any length up to a minute, whether true or not.
    Any,
}

/// What kind of service it is.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) minute: u64,
    pub(super) day: u64,
    pub(super) sliding: bool,
    pub(super) phase: i64,
    pub(super) shows: Shows,
    /// Whether Reset is rounded down, not up.
    pub(super) rounds_down: bool,
    /// Whether Remaining is what was left before the request.
    pub(super) counts_before: bool,
    pub(super) dates: bool,
    pub(super) wait: Wait,
    /// Whether a refusal's Remaining is 1, and not 0.
    pub(super) refuses_with_one: bool,
    /// Of a thousand answers: 500s without headers, headers that are garbage, refusals for nothing.
    pub(super) errors: u32,
    pub(super) garbage: u32,
    pub(super) whims: u32,
}

impl Model {
    pub(super) fn new(minute: u64) -> Self {
        Self {
            minute,
            day: 1 << 40,
            sliding: false,
            phase: 0,
            shows: Shows::Tightest,
            rounds_down: false,
            counts_before: false,
            dates: true,
            wait: Wait::Seconds,
            refuses_with_one: false,
            errors: 0,
            garbage: 0,
            whims: 0,
        }
    }
}

/// An answer's head. Times are on the service's clock; Date, Reset and waits in whole seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) date: Option<i64>,
    /// Limit, Remaining and Reset.
    pub(super) rate: Option<(u64, u64, i64)>,
    pub(super) wait: Option<(Wait, i64)>,
    pub(super) garbage: bool,
}

pub(super) struct Service {
    pub(super) model: Model,
    windows: [Window; 2],
    told_to_wait_until: i64,
    late: VecDeque<i64>,
    banned_until: i64,
    pub(super) refusals: u64,
    /// Requests that came while a wait was running that had been named before.
    pub(super) late_repeats: u64,
    pub(super) bans: u64,
    pub(super) let_in: u64,
}

impl Service {
    pub(super) fn new(model: Model) -> Self {
        let minute = Window::new(model.minute, MINUTE, model.sliding, model.phase);
        let day = Window::new(model.day, DAY, model.sliding, model.phase);
        Self {
            model,
            windows: [minute, day],
            told_to_wait_until: i64::MIN,
            late: VecDeque::new(),
            banned_until: i64::MIN,
            refusals: 0,
            late_repeats: 0,
            bans: 0,
            let_in: 0,
        }
    }

    /// Returns what is left, and when the quota that is used up comes back.
    pub(super) fn left(&mut self, now: i64) -> (u64, i64) {
        let left = self.windows.iter_mut().map(|w| w.remaining(now)).min().unwrap();
        (left, self.back(now))
    }

    /// Returns when no quota is used up any more.
    fn back(&mut self, now: i64) -> i64 {
        let spent = self
            .windows
            .iter_mut()
            .filter_map(|window| (window.remaining(now) == 0).then(|| window.reset(now)));
        spent.max().unwrap_or(now)
    }

    pub(super) fn serve(&mut self, now: i64, rng: &mut Rng) -> Reply {
        let until = self.told_to_wait_until;
        if now < until {
            self.late_repeats += 1;
            self.late.push_back(now);
            self.late.retain(|at| *at > now - MINUTE);
        }
        if now < self.banned_until {
            self.refusals += 1;
            return self.reply(now, 429, Some(self.banned_until), rng);
        }
        if self.late.len() > 10 {
            self.late.clear();
            self.bans += 1;
            self.banned_until = now + 300 * SECOND;
            self.refusals += 1;
            return self.reply(now, 429, Some(self.banned_until), rng);
        }
        let (left, back) = self.left(now);
        if left == 0 || rng.in_thousand(self.model.whims) {
            self.refusals += 1;
            let reply = self.reply(now, 429, Some(back), rng);
            return reply;
        }
        self.let_in += 1;
        let before = self.model.counts_before.then(|| self.rate(now));
        self.windows.iter_mut().for_each(|window| window.count(now));
        let error = rng.in_thousand(self.model.errors);
        let mut reply = self.reply(now, if error { 500 } else { 200 }, None, rng);
        reply.rate = if error { None } else { before.or(reply.rate) };
        reply
    }

    fn rate(&mut self, now: i64) -> (u64, u64, i64) {
        let [minute, day] = &mut self.windows;
        let shown = match self.model.shows {
            Shows::Tightest if day.remaining(now) < minute.remaining(now) => day,
            Shows::Tightest | Shows::Minute => minute,
            Shows::Day => day,
        };
        let reset = shown.reset(now);
        let up = if self.model.rounds_down { 0 } else { SECOND - 1 };
        (shown.limit, shown.remaining(now), (reset + up).div_euclid(SECOND))
    }

    fn reply(&mut self, now: i64, status: u16, until: Option<i64>, rng: &mut Rng) -> Reply {
        let mut rate = self.rate(now);
        if status == 429 && self.model.refuses_with_one {
            rate.1 = 1;
        }
        let wait = until.map(|until| {
            let mut seconds = ((until - now + SECOND - 1) / SECOND).max(1);
            if self.model.wait == Wait::Any {
                seconds = 1 + rng.below(60);
            }
            if !matches!(self.model.wait, Wait::Text(_) | Wait::Absent) {
                self.told_to_wait_until = self.told_to_wait_until.max(now + seconds * SECOND);
            }
            (self.model.wait, seconds)
        });
        Reply {
            status,
            date: self.model.dates.then(|| now.div_euclid(SECOND)),
            rate: Some(rate),
            wait: wait.filter(|(wait, _)| *wait != Wait::Absent),
            garbage: rng.in_thousand(self.model.garbage),
        }
    }
}
