//! The service: windows, headers, refusals and bans.

use std::collections::VecDeque;

use super::rng::Rng;
use super::window::{DAY, MINUTE, SECOND, Window};

/// Which quota the headers describe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::simulator) enum Shows {
    Tightest,
    Minute,
    Day,
}

/// How a refusal names its wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::simulator) enum Wait {
    Seconds,
    Epoch,
    Text(&'static str),
    Absent,
    /// A random wait of up to a minute, which may be wrong.
    Any,
}

/// The kind of service.
#[derive(Debug, Clone)]
pub(in crate::simulator) struct Model {
    pub(in crate::simulator) minute: u64,
    pub(in crate::simulator) day: u64,
    pub(in crate::simulator) sliding: bool,
    pub(in crate::simulator) phase: i64,
    pub(in crate::simulator) shows: Shows,
    /// Whether `Reset` is rounded down instead of up, and `Date` up instead of down.
    pub(in crate::simulator) rounds_down: bool,
    pub(in crate::simulator) date_rounds_up: bool,
    /// How far `Date` is ahead of the clock that determines the windows.
    pub(in crate::simulator) date_ahead: i64,
    /// Changes of the service's clock: the time since the start, and the difference.
    pub(in crate::simulator) steps: Vec<(i64, i64)>,
    /// Whether Remaining says how many requests were left before this one.
    pub(in crate::simulator) counts_before: bool,
    pub(in crate::simulator) dates: bool,
    pub(in crate::simulator) wait: Wait,
    /// Whether a refusal's Remaining is 1, and not 0.
    pub(in crate::simulator) refuses_with_one: bool,
    /// How many of a thousand responses are: a 500 without headers, a 200 without headers, a
    /// response with invalid headers, a 429 although the quota is not used up.
    pub(in crate::simulator) errors: u32,
    pub(in crate::simulator) bare: u32,
    pub(in crate::simulator) garbage: u32,
    pub(in crate::simulator) whims: u32,
}

impl Model {
    pub(in crate::simulator) fn new(minute: u64) -> Self {
        Self {
            minute,
            day: 1 << 40,
            sliding: false,
            phase: 0,
            shows: Shows::Tightest,
            rounds_down: false,
            date_rounds_up: false,
            date_ahead: 0,
            steps: Vec::new(),
            counts_before: false,
            dates: true,
            wait: Wait::Seconds,
            refuses_with_one: false,
            errors: 0,
            bare: 0,
            garbage: 0,
            whims: 0,
        }
    }
}

/// An answer's head. Times are on the service's clock; Date, Reset and waits in whole seconds.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulator) struct Reply {
    pub(in crate::simulator) status: u16,
    pub(in crate::simulator) date: Option<i64>,
    /// Limit, Remaining and Reset.
    pub(in crate::simulator) rate: Option<(u64, u64, i64)>,
    pub(in crate::simulator) wait: Option<(Wait, i64)>,
    /// Invalid values that the three headers have instead.
    pub(in crate::simulator) garbage: Option<[&'static str; 3]>,
}

pub(in crate::simulator) struct Service {
    model: Model,
    /// What the service's clock shows at the start.
    start: i64,
    windows: [Window; 2],
    /// This time and the following ones are by a clock that nobody sets.
    told_to_wait_until: i64,
    late: VecDeque<i64>,
    banned_until: i64,
    pub(in crate::simulator) refusals: u64,
    /// Requests that arrived before an announced `Retry-After` had elapsed.
    pub(in crate::simulator) late_repeats: u64,
    pub(in crate::simulator) bans: u64,
    pub(in crate::simulator) admitted: u64,
    /// The number of admitted and of refused requests in each second.
    pub(in crate::simulator) seconds: Vec<[u32; 2]>,
}

/// Invalid or implausible values of the three headers, as real services have sent them.
const GARBAGE: [[&str; 3]; 8] = [
    ["60", "-1", "1e30"],
    [
        "18446744073709551615",
        "18446744073709551615",
        "253370764799",
    ],
    ["0", "0", "0"],
    ["60", "59", "253370764799999"],
    ["1", "0", "999999999"],
    ["60, 10", "5, 7", "1, 30"],
    ["NaN", "inf", ""],
    ["60", "60", "1000000000"],
];

impl Service {
    pub(in crate::simulator) fn new(model: Model, start: i64) -> Self {
        let minute = Window::new(model.minute, MINUTE, model.sliding, model.phase);
        let day = Window::new(model.day, DAY, model.sliding, model.phase);
        Self {
            model,
            start,
            windows: [minute, day],
            told_to_wait_until: i64::MIN,
            late: VecDeque::new(),
            banned_until: i64::MIN,
            refusals: 0,
            late_repeats: 0,
            bans: 0,
            admitted: 0,
            seconds: Vec::new(),
        }
    }

    /// Returns how many requests are left, and how long until no quota is used up any more.
    pub(in crate::simulator) fn left(&mut self, at: i64) -> (u64, i64) {
        let now = self.clock(at);
        let left = self
            .windows
            .iter_mut()
            .map(|w| w.remaining(now))
            .min()
            .unwrap();
        (left, self.back(now))
    }

    /// Counts requests of other clients: at most as many as are left.
    pub(in crate::simulator) fn count_others(&mut self, at: i64, most: u64) -> u64 {
        if at < self.banned_until {
            return 0;
        }
        let (left, _) = self.left(at);
        let (requests, now) = (left.min(most), self.clock(at));
        for window in &mut self.windows {
            (0..requests).for_each(|_| window.count(now));
        }
        requests
    }

    pub(in crate::simulator) fn serve(&mut self, at: i64, rng: &mut Rng) -> Reply {
        let now = self.clock(at);
        if at < self.told_to_wait_until {
            self.late_repeats += 1;
            self.late.push_back(at);
        }
        self.late.retain(|late| *late > at - MINUTE);
        if at >= self.banned_until && self.late.len() > 10 {
            self.late.clear();
            self.bans += 1;
            self.banned_until = at + 300 * SECOND;
        }
        if at < self.banned_until {
            return self.refuse((at, now), self.banned_until - at, rng);
        }
        let (left, back) = self.left(at);
        if left == 0 || rng.in_thousand(self.model.whims) {
            return self.refuse((at, now), back, rng);
        }
        self.admitted += 1;
        self.tally(at, 0);
        let before = self.model.counts_before.then(|| self.rate(now));
        self.windows.iter_mut().for_each(|window| window.count(now));
        let error = rng.in_thousand(self.model.errors);
        let mut reply = self.reply(now, if error { 500 } else { 200 }, rng);
        reply.rate = before.or(reply.rate);
        if error || rng.in_thousand(self.model.bare) {
            (reply.rate, reply.garbage) = (None, None);
        }
        reply
    }

    fn clock(&self, at: i64) -> i64 {
        let steps = self.model.steps.iter().filter(|(after, _)| *after <= at);
        self.start + at + steps.map(|(_, by)| by).sum::<i64>()
    }

    fn back(&mut self, now: i64) -> i64 {
        let spent = self
            .windows
            .iter_mut()
            .filter_map(|window| (window.remaining(now) == 0).then(|| window.reset(now)));
        spent.max().map_or(0, |reset| reset - now)
    }

    fn rate(&mut self, now: i64) -> (u64, u64, i64) {
        let [minute, day] = &mut self.windows;
        let shown = match self.model.shows {
            Shows::Tightest if day.remaining(now) < minute.remaining(now) => day,
            Shows::Tightest | Shows::Minute => minute,
            Shows::Day => day,
        };
        let reset = shown.reset(now);
        let up = if self.model.rounds_down {
            0
        } else {
            SECOND - 1
        };
        (
            shown.limit,
            shown.remaining(now),
            (reset + up).div_euclid(SECOND),
        )
    }

    fn refuse(&mut self, (at, now): (i64, i64), wait: i64, rng: &mut Rng) -> Reply {
        self.refusals += 1;
        self.tally(at, 1);
        let mut reply = self.reply(now, 429, rng);
        if self.model.refuses_with_one {
            reply.rate = reply.rate.map(|(limit, _, reset)| (limit, 1, reset));
        }
        let seconds = match self.model.wait {
            Wait::Any => 1 + rng.below(60),
            _ => ((wait + SECOND - 1) / SECOND).max(1),
        };
        reply.wait = Some((self.model.wait, seconds));
        match self.model.wait {
            Wait::Text(_) => {}
            Wait::Absent => reply.wait = None,
            _ => self.told_to_wait_until = self.told_to_wait_until.max(at + seconds * SECOND),
        }
        reply
    }

    fn tally(&mut self, at: i64, kind: usize) {
        let second = (at / SECOND) as usize;
        self.seconds
            .resize(self.seconds.len().max(second + 1), [0, 0]);
        self.seconds[second][kind] += 1;
    }

    fn reply(&mut self, now: i64, status: u16, rng: &mut Rng) -> Reply {
        let up = if self.model.date_rounds_up {
            SECOND - 1
        } else {
            0
        };
        let date = (now + self.model.date_ahead + up).div_euclid(SECOND);
        let garbage = rng.in_thousand(self.model.garbage);
        Reply {
            status,
            date: self.model.dates.then_some(date),
            rate: Some(self.rate(now)),
            wait: None,
            garbage: garbage.then(|| GARBAGE[rng.below(GARBAGE.len() as i64) as usize]),
        }
    }
}
