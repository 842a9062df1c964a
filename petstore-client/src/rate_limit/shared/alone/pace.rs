//! How fast a member sends while it cannot see the other members, because their store is unreachable.
//!
//! "The rest" is what remains of a quota. How fast it falls shows how fast all members together use
//! it. Each member corrects its own pace by that. The aim is that the rest falls by a factor of e
//! in a time, the drain, that is many latencies long. Then each reading is fresh, and few requests
//! are in flight when the rest runs out.
//!
//! The members count each other when they start and after each reset: each one sends a single
//! request, waits, and sees how many requests have arrived.
//!
//! This code is pure. Instants, readings and random numbers come in. Out goes an [`Advice`]: a
//! bound for the requests in flight, or a wait. Its constants were tuned in the simulator, with 60,
//! 300 and 1,000 requests a minute, 2 to 64 members with 1 to 64 tasks each, started within 0, 2
//! and 20 s (`simulator::alone`); ten seeds each. A "cell" below is one combination of these
//! values.

use std::time::Duration;

use super::draws::exponential;
use super::observation::{Observation, number, whole};
use crate::rate_limit::quota::clock::{LocalTime, micros};
use crate::rate_limit::view::Quota;

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;

/// The drain: how long the rest takes to fall by a factor of e, in seconds. In the first window it
/// is long, because members may still be starting, and each one that starts when nothing is left is
/// refused once. With 3 s, 12 of 36 cells with starts within 20 s had a ban. In later windows it is
/// short for small quotas, because a waiting member leaves more of them unused. With 15 s, 0.66 of
/// 60 a minute was used instead of 0.87.
const FIRST_DRAIN: f64 = 15.0;
const MIN_DRAIN: f64 = 3.0;
const MAX_DRAIN: f64 = 15.0;
/// Between these two bounds, a full window begins with this many requests a second.
const FIRST_REQUESTS: f64 = 20.0;
/// The bounds of the number of drains in a minute, even if less of the minute is left. In the last
/// drains the rest is small.
const MIN_DRAINS: f64 = 4.0;
const MAX_DRAINS: f64 = 12.0;
/// A drain takes at least this many latencies, however soon the reset is, because readings are one
/// latency old.
const MIN_DRAIN_LATENCIES: f64 = 4.0;
/// How long a member that starts waits after its first response. It counts the members that start
/// within this time.
const START_PAUSE: Duration = Duration::from_secs(3);
/// How long a member waits after a reset. The members' estimates of the service's clock differ by up
/// to a second, because `Date` has whole seconds.
const RESET_PAUSE: Duration = Duration::from_secs(1);
/// A member's second request comes up to this many latencies after the pause, at random.
const MAX_SPREAD: f64 = 3.0;

/// A member that loses the store starts with this part of the rest in flight, divided by the number
/// of members in the last record. It has at most `MAX_AFTER_LOSS` requests in flight. The first
/// measurements correct that.
const PART_AFTER_LOSS: f64 = 1.0 / 32.0;
const MAX_AFTER_LOSS: f64 = 8.0;
/// If fewer requests are left for each member, a member that loses the store waits for the reset.
/// The others may have used the rest up since its last update, and then each member would be
/// refused once.
const ENOUGH_AFTER_LOSS: u64 = 8;
/// Other members are assumed to run for two windows after they were last seen.
const OTHERS_REMEMBERED: Duration = Duration::from_secs(120);

/// The bounds of the factor by which one measurement changes the pace. With a maximum of 1.5, the
/// quota is not used better, and less fairly.
const MIN_CHANGE: f64 = 0.25;
const MAX_CHANGE: f64 = 1.25;
/// Each measurement adds to the pace this part of what all members may have in flight. So the paces
/// of the members approach each other. With 1/128, 4 cells with 64 members had a ban.
const LEVELLING: f64 = 1.0 / 512.0;
/// The weight of a new measurement of the decay; the earlier ones have the rest of 1. With 1, the
/// use is 0.01 lower.
const DECAY_WEIGHT: f64 = 0.3;
/// The decay that is expected while no response comes, as a multiple of the measured one. With 1.5,
/// the use is 0.01 lower; with 1, there are refusals with 64 members.
const DECAY_MARGIN: f64 = 1.3;
/// The largest decay that is expected, as a multiple of the intended one. Without this bound,
/// members stop sending after a burst of others, and fairness at 300 a minute is 0.39 instead of
/// 0.50.
const MAX_DECAY: f64 = 2.0;

/// In its first window, a member keeps the most requests (`Observation::most_kept`), for members that
/// start later. It does so until this long before the reset. Without that, 15 members that started
/// after one with 64 tasks, at 300 a minute, were each refused once, which is a ban.
const RESERVE_END: Duration = Duration::from_secs(5);

/// A member that sees nobody doubles its pace if there is room for this many times its pace. It has
/// at most a quarter of the rest in flight. After `MEASUREMENTS_OF_SOLE_USER` measurements without
/// others, it counts as the sole user.
const ROOM_TO_DOUBLE: f64 = 4.0;
const MAX_PART_AT_START: f64 = 0.25;
const MEASUREMENTS_OF_SOLE_USER: u32 = 8;

/// A reading that is older than this, and older than two latencies, says little. Then a single
/// request checks.
const MIN_OLD: Duration = Duration::from_millis(100);

/// What a member may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Have this many requests in flight.
    InFlight(u64),
    /// Send nothing before this instant.
    Wait(LocalTime),
    /// Send nothing before the reset, which is at this instant. What is left is for others.
    WaitForReset(LocalTime),
}

/// The pace of one member.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// How many requests may be in flight. Below 1, it is how many are sent in one latency.
    rate: f64,
    phase: Phase,
    last: Option<Observation>,
    /// Whether no reset has been seen yet.
    in_first_window: bool,
    /// Until when other members are assumed to run.
    others_until: Option<LocalTime>,
    /// The number of measurements.
    measurements: u32,
    /// The highest number of requests in flight since the last measurement.
    most_in_flight: u64,
    /// How fast the rest falls: the logarithm of its change in one latency.
    decay: f64,
    /// A random number, exponentially distributed with mean 1. Each response brings a new one.
    draw: f64,
}

#[derive(Debug, Clone, Copy, Default)]
enum Phase {
    /// No response has come.
    #[default]
    Asking,
    /// The members count each other until an instant. `before` is how many requests were left then.
    Counting { until: LocalTime, before: u64 },
    /// The next response begins a measurement.
    Beginning,
    /// A measurement is running since an instant at which `remaining` requests were left.
    Measuring { since: LocalTime, remaining: u64 },
}

/// The relation of a response's window to the last one.
enum Step {
    First,
    Same,
    AfterReset,
    /// The window slides, or is of another quota.
    Other,
}

impl Pace {
    /// Creates the pace of a member that has never read the record.
    pub(crate) fn starting() -> Self {
        Self {
            in_first_window: true,
            ..Self::default()
        }
    }

    /// Creates the pace of a member that loses the store. `members` is how many it knew, including
    /// itself; `last` is what the record showed. `draw` is a random number from 0 up to 1.
    pub(crate) fn after_loss(
        members: u64,
        last: Option<Observation>,
        now: LocalTime,
        draw: f64,
    ) -> Self {
        let (most, others_until) = if members > 1 {
            (MAX_AFTER_LOSS, Some(now.plus(OTHERS_REMEMBERED)))
        } else {
            (1.0, None)
        };
        let remaining = last.map_or(0, |last| last.remaining);
        let part = number(remaining) * PART_AFTER_LOSS / number(members.max(1));
        let is_enough = remaining >= ENOUGH_AFTER_LOSS.saturating_mul(members);
        Self {
            rate: if is_enough { part.min(most) } else { 0.0 },
            phase: Phase::Beginning,
            last,
            others_until,
            draw: exponential(draw),
            ..Self::default()
        }
    }

    /// Records what a response shows. `draw` is a random number from 0 up to 1.
    pub(crate) fn observe(&mut self, seen: &Observation, draw: f64) {
        self.draw = exponential(draw);
        self.most_in_flight = self.most_in_flight.max(seen.in_flight);
        match self.step_to(seen) {
            Step::First => self.count_after_start(seen),
            Step::Same => {}
            Step::AfterReset => self.count_after_reset(seen),
            Step::Other => self.begin_again(seen),
        }
        self.last = Some(*seen);
        if seen.others > 0 {
            self.meet_others(seen);
        }
        match self.phase {
            Phase::Counting { until, before } if seen.sent >= until => {
                self.set_by_count(seen, before);
            }
            Phase::Counting { .. } => {}
            Phase::Asking | Phase::Beginning => self.begin_measurement(seen),
            Phase::Measuring { since, remaining } => self.measure(seen, since, remaining),
        }
    }

    /// Returns whether other members may be active. If not, the rules of a sole user are enough.
    pub(crate) fn is_needed(&self) -> bool {
        self.others_until.is_some()
            || self.measurements < MEASUREMENTS_OF_SOLE_USER
            || matches!(self.phase, Phase::Counting { .. })
    }

    /// Returns how many requests are left to others at the end of the window.
    pub(crate) fn kept(&self, now: LocalTime) -> u64 {
        self.last.map_or(0, |last| self.kept_of(&last, now))
    }

    /// Returns until when the member leaves requests to members that start later, if it does. It
    /// does so in its first window, when it cannot know of them.
    pub(crate) fn reserves_until(&self, now: LocalTime) -> Option<LocalTime> {
        let last = self.last.as_ref()?;
        let until = last.reset_at.moved(-micros(RESERVE_END));
        let reserves = self.in_first_window && last.quota == Quota::Minute && now < until;
        reserves.then_some(until)
    }

    /// Returns what the member may do now.
    pub(crate) fn advice(&self, now: LocalTime) -> Advice {
        let Some(last) = &self.last else {
            return Advice::InFlight(1);
        };
        if now >= last.reset_at {
            return self.advice_after_reset(last, now);
        }
        if let Phase::Counting { until, .. } = self.phase {
            let spread = last.latencies(self.draw.min(MAX_SPREAD));
            return one_from(until.plus(spread), now);
        }
        if self.rate >= 1.0 {
            let is_old = now.since(last.at) > MIN_OLD.max(last.latencies(2.0));
            return Advice::InFlight(if is_old { 1 } else { whole(self.rate) });
        }
        match self.wait_in_latencies(last) {
            Some(latencies) => {
                let at = last.at.plus(last.latencies(latencies));
                if at < last.reset_at {
                    one_from(at, now)
                } else {
                    Advice::WaitForReset(last.reset_at)
                }
            }
            None => Advice::WaitForReset(last.reset_at),
        }
    }

    /// Returns the wait after the last response, in latencies. The pace falls together with the
    /// rest, so there may be no further request; then this returns `None`.
    fn wait_in_latencies(&self, last: &Observation) -> Option<f64> {
        if self.rate <= 0.0 {
            return None;
        }
        let intended = 1.0 / self.drain(last);
        let decay = DECAY_MARGIN * self.decay.clamp(intended, MAX_DECAY * intended);
        let used = self.draw * decay / self.rate;
        (used < 1.0).then(|| -(1.0 - used).ln() / decay)
    }

    /// Returns the advice after a reset, when each member sends one request. If these requests
    /// would use up more than a quarter of the limit, some members send theirs late, and see the
    /// requests of the others first.
    fn advice_after_reset(&self, last: &Observation, now: LocalTime) -> Advice {
        let rate = last.rate_after_reset();
        if rate >= 1.0 {
            return Advice::InFlight(1);
        }
        let spread = last.latencies(self.draw / rate.max(f64::MIN_POSITIVE));
        one_from(last.reset_at.plus(spread), now)
    }

    /// Moves all instants to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        match &mut self.phase {
            Phase::Asking | Phase::Beginning => {}
            Phase::Counting { until, .. } => *until = until.moved(by),
            Phase::Measuring { since, .. } => *since = since.moved(by),
        }
        self.others_until = self.others_until.map(|until| until.moved(by));
        if let Some(last) = &mut self.last {
            last.shift(by);
        }
    }

    fn step_to(&self, seen: &Observation) -> Step {
        let Some(last) = &self.last else {
            let is_first = matches!(self.phase, Phase::Asking);
            return if is_first { Step::First } else { Step::Other };
        };
        if last.quota != seen.quota {
            Step::Other
        } else if last.opened_at == seen.opened_at {
            Step::Same
        } else if last.reset_at <= seen.at {
            Step::AfterReset
        } else {
            Step::Other
        }
    }

    fn count_after_start(&mut self, seen: &Observation) {
        self.phase = Phase::Counting {
            until: seen.at.plus(START_PAUSE),
            before: seen.remaining.saturating_add(1),
        };
    }

    /// Begins to count the members after a reset. A sole user counts too if the quota was used up
    /// before: members that started then were refused, so it could not see them.
    fn count_after_reset(&mut self, seen: &Observation) {
        let Some(last) = self.last else { return };
        self.in_first_window = false;
        if self.others_until.is_some_and(|until| until <= seen.at) {
            self.others_until = None;
        }
        self.rate = last.rate_after_reset();
        let was_used_up = last.remaining <= last.most_kept();
        let until = last.reset_at.plus(RESET_PAUSE);
        self.phase = if seen.at < until && (self.others_until.is_some() || was_used_up) {
            Phase::Counting {
                until,
                before: seen.limit,
            }
        } else {
            Phase::Beginning
        };
    }

    /// Continues in a sliding window, or with another quota. A member that had stopped starts
    /// again, with its part of the rest.
    fn begin_again(&mut self, seen: &Observation) {
        if self.rate == 0.0 {
            let all = self.left_in(seen).max(0.0) / self.drain(seen);
            self.rate = (all * seen.own_part()).min(1.0);
        }
        self.phase = Phase::Beginning;
    }

    /// Records that other members use the quota. If this member was the sole user until now, it
    /// halves its pace.
    fn meet_others(&mut self, seen: &Observation) {
        if !self.is_needed() {
            let half = number(seen.remaining) / self.drain(seen) / 2.0;
            self.rate = self.rate.min(half);
            self.decay = 0.0;
            self.phase = Phase::Beginning;
        }
        self.others_until = Some(seen.at.plus(OTHERS_REMEMBERED));
    }

    /// Sets the pace by the number of members. Each of them has sent one request since `before`,
    /// apart from the request that was just answered.
    fn set_by_count(&mut self, seen: &Observation, before: u64) {
        let members = before
            .saturating_sub(seen.remaining.saturating_add(1))
            .max(1);
        self.rate = self.left_in(seen).max(0.0) / self.drain(seen) / number(members);
        if self.others_until.is_none() {
            self.rate = self.rate.max(1.0);
        }
        self.begin_measurement(seen);
    }

    fn begin_measurement(&mut self, seen: &Observation) {
        self.phase = Phase::Measuring {
            since: seen.at,
            remaining: seen.remaining,
        };
    }

    /// Corrects the pace by how fast the rest has fallen.
    fn measure(&mut self, seen: &Observation, since: LocalTime, remaining: u64) {
        let latency = seen.mean_latency().as_secs_f64();
        let latencies = seen.at.since(since).as_secs_f64() / latency;
        if seen.sent < since || latencies < 0.5 {
            return;
        }
        self.begin_measurement(seen);
        let left = self.left_in(seen);
        if left <= 0.0 {
            self.rate = 0.0;
            return;
        }
        let before = (number(remaining) - number(self.kept_of(seen, seen.at))).max(left);
        let fallen = (before / left).ln();
        self.decay += DECAY_WEIGHT * (fallen / latencies - self.decay);
        // The factor by which the pace of all members could change.
        let room = latencies / (self.drain(seen) * fallen.max(1e-9));
        self.rate = self.corrected(room, left, left / self.drain(seen));
        self.measurements = self.measurements.saturating_add(1);
        self.most_in_flight = 0;
    }

    /// Returns the pace after a measurement. `all` is how many requests all members may have in
    /// flight.
    fn corrected(&self, room: f64, left: f64, all: f64) -> f64 {
        let (rate, most) = if self.others_until.is_some() {
            let change = room.min(room.sqrt()).clamp(MIN_CHANGE, MAX_CHANGE);
            (self.rate * change + all * LEVELLING, all)
        } else if room >= ROOM_TO_DOUBLE {
            (self.rate * 2.0, left * MAX_PART_AT_START)
        } else {
            // Nobody else sends, so one request in flight is always safe.
            (
                f64::max(1.0, self.rate * room.min(1.0)),
                (left * MAX_PART_AT_START).max(1.0),
            )
        };
        // The requests that were in flight limit the pace: a pace that was not used shows nothing
        // about a higher one.
        rate.min(most).min(2.0 * number(self.most_in_flight) + 1.0)
    }

    /// Returns the number of latencies in which all members together let the rest fall by a factor
    /// of e.
    fn drain(&self, seen: &Observation) -> f64 {
        let latency = seen.mean_latency().as_secs_f64();
        let longest = if self.in_first_window {
            FIRST_DRAIN
        } else {
            (number(seen.limit) / FIRST_REQUESTS).clamp(MIN_DRAIN, MAX_DRAIN)
        };
        let drains = (60.0 / longest).clamp(MIN_DRAINS, MAX_DRAINS);
        let to_reset = seen.reset_at.since(seen.at).as_secs_f64();
        let seconds = (to_reset / drains).min(longest);
        (seconds / latency).max(MIN_DRAIN_LATENCIES)
    }

    /// Returns the rest without the requests that are kept for others.
    fn left_in(&self, seen: &Observation) -> f64 {
        number(seen.remaining) - number(self.kept_of(seen, seen.at))
    }

    fn kept_of(&self, seen: &Observation, now: LocalTime) -> u64 {
        if self.reserves_until(now).is_some() {
            return seen.most_kept();
        }
        if self.others_until.is_none() {
            return 0;
        }
        let others = whole((1.0 / seen.own_part()).round()).saturating_sub(1);
        others.max(1).min(seen.most_kept())
    }
}

fn one_from(at: LocalTime, now: LocalTime) -> Advice {
    if now < at {
        Advice::Wait(at)
    } else {
        Advice::InFlight(1)
    }
}
