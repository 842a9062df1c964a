//! When a member updates the shared record, what it reports, and what it learns from the update.

use std::time::Duration;

use super::{Member, Sharing};
use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::shared::record::Record;
use crate::rate_limit::shared::slot::MEMBER_LEASE;
use crate::rate_limit::shared::update::{Granted, Report};

/// Outcomes are reported when this many have gathered, but not more often than
/// `MIN_UPDATE_INTERVAL`. They are also reported when the member has held reservations for
/// `MAX_UPDATE_INTERVAL`.
const MAX_UNREPORTED: u32 = 16;
const MIN_UPDATE_INTERVAL: Duration = Duration::from_millis(100);
const MIN_UPDATE_INTERVAL_BESIDE_OTHERS: Duration = Duration::from_millis(10);
/// If calls wait, how soon the member updates the record after responses to its own requests.
const FREED_INTERVAL: Duration = Duration::from_millis(50);
const MIN_UPDATE_PAUSE: Duration = Duration::from_millis(1);
/// After an update, a member pauses for this many times the update's duration, up to the longest
/// pause. Updates take long if many members conflict, or if the store is far away. A few members do
/// not conflict, so their pauses stay shorter: with a store 250 ms away, four members with 16 tasks
/// use all of 1,000 requests in a minute. With the pauses of many members, they would use 956.
const UPDATE_PAUSE_FACTOR: u32 = 8;
const MAX_PAUSE_OF_FEW: Duration = Duration::from_millis(750);
const FEW: usize = 8;
const MAX_UPDATE_INTERVAL: Duration = Duration::from_millis(1_500);
/// How often an unreachable store is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// A member reserves at most what it uses in this time, or in two pauses between its updates if
/// that is longer.
const PREFETCH_TIME: Duration = Duration::from_secs(2);

impl Member {
    /// Returns whether the record has been read.
    pub(crate) fn has_read_record(&self) -> bool {
        self.state != Sharing::New
    }

    /// Returns the last known record, with the outcomes since then.
    pub(crate) fn copy(&self) -> Option<Record> {
        if !self.has_read_record() {
            return None;
        }
        let mut ledger = self.ledger().clone();
        ledger.others_mut().assume(false);
        Some(Record::new(ledger, self.members.clone()))
    }

    /// Returns when to update the record next, if an update is needed.
    pub(crate) fn update_at(&self, waiting: u64) -> Option<LocalTime> {
        let in_flight = self.local.in_flight();
        let unreported = self.outcomes.unreported();
        let has_something = self.held + self.given_back + in_flight > 0 || unreported > 0;
        if self.state == Sharing::Alone {
            let is_used = waiting > 0 || has_something || self.outcomes.is_reporting();
            return is_used.then(|| self.updated_at.plus(RETRY_INTERVAL));
        }
        if self.is_urgent {
            return Some(self.updated_at);
        }
        let mut due = None;
        if has_something {
            due = Some(self.report_at(unreported, in_flight == 0 && waiting == 0));
        }
        if waiting > 0 && self.held == 0 {
            let ask_at = self.ask_at(unreported);
            due = Some(due.map_or(ask_at, |due| due.min(ask_at)));
        }
        due.map(|at| at.max(self.updated_at.plus(self.pause)))
    }

    /// Returns when to report, because the record then lacks too much of what this member knows.
    fn report_at(&self, unreported: u32, is_idle: bool) -> LocalTime {
        // Beside other clients, frequent reports show the members what those clients use.
        let (max_unreported, interval) = match self.ledger().contested_share() {
            Some(_) => (1, MIN_UPDATE_INTERVAL_BESIDE_OTHERS),
            None => (MAX_UNREPORTED, MIN_UPDATE_INTERVAL),
        };
        if unreported >= max_unreported || (unreported > 0 && is_idle) {
            self.updated_at.plus(interval)
        } else {
            self.updated_at.plus(MAX_UPDATE_INTERVAL)
        }
    }

    /// Returns when waiting calls may get reservations. That is soon if own requests were answered,
    /// because they may have made room.
    fn ask_at(&self, unreported: u32) -> LocalTime {
        if unreported > 0 && !self.is_reserved_for_others {
            self.retry_at.min(self.updated_at.plus(FREED_INTERVAL))
        } else {
            self.retry_at
        }
    }

    /// Returns the report for an update.
    pub(crate) fn report(&mut self, now: LocalTime, waiting: u64, jitter: f64) -> Report {
        let in_flight = self.local.in_flight();
        let prefetch = self.prefetch(now);
        let kept = self.kept(now, prefetch);
        self.given_back += self.held - kept;
        self.held = kept;
        self.holds_probe &= kept > 0;
        (self.used, self.is_urgent) = (0, false);
        self.updated_at = now;
        let beside_others = self.ledger().contested_share().is_some();
        let prefetch = if in_flight + waiting > 0 && !beside_others {
            prefetch.saturating_sub(kept)
        } else {
            0
        };
        Report {
            outcomes: self.outcomes.report(),
            reserved: kept + in_flight,
            given_back: self.given_back,
            seen_updates: self.members.updates(),
            want: waiting,
            prefetch,
            blocked: self.outcomes.report_block(),
            probe_until: self.probe_until(now),
            leaves: false,
            jitter,
        }
    }

    /// Returns how many requests this member uses in the time for which it reserves ahead.
    fn prefetch(&self, now: LocalTime) -> u64 {
        let since = now.since(self.updated_at).max(MIN_UPDATE_INTERVAL);
        let time = PREFETCH_TIME.max(self.pause * 2);
        whole(f64::from(self.used) / since.as_secs_f64() * time.as_secs_f64())
    }

    /// Returns how many unused reservations this member keeps.
    fn kept(&self, now: LocalTime, prefetch: u64) -> u64 {
        if !self.shares_record() || !self.lease_is_valid(now) {
            0
        } else if self.holds_probe {
            self.held
        } else {
            self.held.min(prefetch)
        }
    }

    fn probe_until(&self, now: LocalTime) -> Option<LocalTime> {
        match self.local.requests().probe_end() {
            None if self.holds_probe => Some(now.plus(MEMBER_LEASE)),
            end => end,
        }
    }

    /// Returns the report of a member that may end now. If it has used the key and is idle, it
    /// gives its reservations back and leaves the record.
    pub(crate) fn last_report(&mut self, now: LocalTime, waiting: u64, jitter: f64) -> Report {
        self.used = 0;
        let report = self.report(now, waiting, jitter);
        let has_used = self.members.slot(self.id).has_used();
        Report {
            leaves: has_used && report.reserved == 0 && report.want == 0,
            ..report
        }
    }

    /// Takes over the record, after an update was applied.
    pub(crate) fn updated(
        &mut self,
        now: LocalTime,
        record: Record,
        returned: u64,
        granted: Granted,
    ) {
        // A probe that this member sent while the store was unreachable stays its own.
        self.state = Sharing::On;
        self.outcomes.reported();
        self.given_back = self.given_back.saturating_sub(returned);
        self.held += granted.requests;
        self.holds_probe |= granted.probe;
        (self.retry_at, self.is_reserved_for_others) =
            (granted.retry_at, granted.is_reserved_for_others);
        let pause = now.since(self.updated_at) * UPDATE_PAUSE_FACTOR;
        self.updated_at = now;
        self.take_over(record);
        let longest = if self.members(now) > FEW {
            MAX_UPDATE_INTERVAL
        } else {
            MAX_PAUSE_OF_FEW
        };
        self.pause = pause.clamp(MIN_UPDATE_PAUSE, longest);
    }

    /// Records that the record has no room for this member. The others do not know of this member,
    /// so it sends nothing until one of them has left.
    pub(crate) fn wait_for_room(&mut self, now: LocalTime, record: Record) {
        self.state = Sharing::On;
        (self.held, self.holds_probe) = (0, false);
        (self.retry_at, self.is_reserved_for_others) = (now.plus(RETRY_INTERVAL), true);
        self.updated_at = now;
        self.take_over(record);
    }

    fn take_over(&mut self, mut record: Record) {
        for outcome in self.outcomes.new_ones() {
            record.record(self.id, outcome);
        }
        let (ledger, members) = record.into_parts();
        *self.local.ledger_mut() = ledger;
        self.members = members;
    }

    /// Records that the store is unreachable. `seen` is the record, if it could still be read. A
    /// member that knows nothing yet takes it over.
    pub(crate) fn update_failed(&mut self, now: LocalTime, seen: Option<Record>) {
        self.updated_at = now;
        (self.held, self.holds_probe) = (0, false);
        if !self.shares_record() {
            return;
        }
        let mut knows_record = self.state == Sharing::On;
        if let Some(record) = seen
            && self.state == Sharing::New
        {
            self.take_over(record);
            self.members.end_probe(self.id);
            knows_record = true;
        }
        self.state = Sharing::Alone;
        // The other members cannot be seen from now on. Their reservations may have been used.
        let id = self.id;
        self.members.slot(id);
        let members = self.members.slots().len() as u64;
        let reserved = self.members.expire(now, |member| member == id);
        self.members.slot(id).set_reserved(self.local.in_flight());
        let ledger = self.local.ledger_mut();
        ledger.lose(reserved, now);
        ledger.others_mut().assume(true);
        if knows_record {
            self.alone.lose_store(&self.local, members, now);
        } else {
            self.alone.start();
        }
    }

    /// Moves the member's own times to a clock that is `by` microseconds ahead.
    pub(crate) fn shift(&mut self, by: i64) {
        self.local.shift(by);
        self.alone.shift(by);
        self.outcomes.shift(by);
        self.updated_at = self.updated_at.moved(by);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounds down; `as` saturates"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
