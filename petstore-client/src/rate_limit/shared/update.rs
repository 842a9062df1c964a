//! A member's update of the record: it reports what it has done, and is granted reservations.
//!
//! A member reserves requests in advance and reports their outcomes later, so most requests need no
//! update. The time of a report does not change how many requests are free, because an update
//! lowers `remaining` and the member's reservations together.

use std::time::Duration;

use super::division::{Claim, OpenWindow};
use super::record::Record;
use super::slot::{MEMBER_LEASE, MemberId};
use super::store::StoreTime;
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
use crate::rate_limit::quota::decision::{self, Allowance, Decision};
use crate::rate_limit::quota::ledger::Ledger;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::{Block, RequestOutcome};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::view::{Quota, WaitReason};

/// The first lease of a granted probe. Before it ends, the member sends the probe and reports that.
const PROBE_LEASE: Duration = Duration::from_secs(3);
/// How soon a member without a grant tries again.
const ASK_INTERVAL: Duration = Duration::from_secs(1);
const MIN_ASK_INTERVAL: Duration = Duration::from_millis(5);
const MAX_ASK_INTERVAL: Duration = Duration::from_millis(1_600);
/// How soon a member tries again while others have not reported to a restored record.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// The least time after which a response is expected.
const MIN_RESPONSE_TIME: Duration = Duration::from_millis(100);
/// Members that wait for a reset try at random instants within this time after it.
const MAX_SPREAD: Duration = Duration::from_millis(300);
/// While the first window that members see is younger than this, others may be about to start.
const START_TIME: Duration = Duration::from_millis(2_500);
/// Until then, one member gets at most the window's limit divided by this.
const START_PART: u64 = 4;
/// If a smaller part of the window's time is left, nothing is kept for members that may start.
const MIN_START_REST: f64 = 0.2;
/// If the quota leaves more than this many times the cap on requests in flight, no part of the cap
/// is reserved for members that do not wait.
const FAR_MORE: u64 = 64;

/// A member's report, with times on the record's clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) outcomes: Vec<RequestOutcome>,
    /// The member's requests that are reserved or in flight. The number is absolute, so an update
    /// whose reply was lost does no harm.
    pub(crate) reserved: u64,
    pub(crate) given_back: u64,
    /// The number of updates in the newest record that the member has seen.
    pub(crate) seen_updates: u64,
    /// How many calls wait, and how many requests the member would reserve in advance.
    pub(crate) want: u64,
    pub(crate) prefetch: u64,
    pub(crate) blocked: Option<Block>,
    /// The lease of its probe.
    pub(crate) probe_until: Option<LocalTime>,
    /// Whether the member leaves the record, because it is idle.
    pub(crate) leaves: bool,
    /// A random number, 0 to 1, that spreads the members' next updates.
    pub(crate) jitter: f64,
}

impl Report {
    /// Returns the report with its times on a store's clock, which is `by` microseconds ahead.
    pub(crate) fn moved(&self, by: i64) -> Self {
        let outcomes = self.outcomes.iter();
        Self {
            outcomes: outcomes.map(|outcome| outcome.moved(by)).collect(),
            blocked: self.blocked.map(|block| block.moved(by)),
            probe_until: self.probe_until.map(|until| until.moved(by)),
            ..*self
        }
    }
}

/// What an update grants to a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) requests: u64,
    pub(crate) probe: bool,
    /// When to update again if calls still wait, and whether the rest is reserved for others until
    /// then.
    pub(crate) retry_at: LocalTime,
    pub(crate) is_reserved_for_others: bool,
}

impl Granted {
    fn nothing(retry_at: LocalTime) -> Self {
        Self {
            retry_at,
            ..Self::default()
        }
    }
}

/// A member and its report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update<'u> {
    me: MemberId,
    report: &'u Report,
    policy: &'u Policy,
    now: LocalTime,
}

impl<'u> Update<'u> {
    pub(crate) fn new(
        me: MemberId,
        report: &'u Report,
        policy: &'u Policy,
        now: LocalTime,
    ) -> Self {
        Self {
            me,
            report,
            policy,
            now,
        }
    }

    /// Updates the member's part of a stored record. If the record is lost, or older than the
    /// member's `copy`, it is restored from the copy. Returns the new record, decoded and encoded,
    /// and what the member gets.
    pub(crate) fn apply_to_stored(
        self,
        current: Option<&[u8]>,
        at: StoreTime,
        wall: ServiceTime,
        is_alive: impl Fn(MemberId) -> bool,
        copy: impl FnOnce() -> Option<Record>,
    ) -> Result<Applied, Rejected> {
        let stored = current.and_then(|current| Record::decode(current, at, wall));
        let mut record = self
            .current(stored, copy)
            .unwrap_or_else(|| Record::new(Ledger::new(self.now, wall), Default::default()));
        record.expire_members(self.now, |other| other == self.me || is_alive(other));
        if !record.members_mut().admits(self.me, self.now) {
            return Err(Rejected {
                problem: "100 processes share the key, which is the maximum",
                full: Some(Box::new(record)),
            });
        }
        let granted = self.apply(&mut record);
        record.members_mut().count_update();
        let bytes = if self.report.leaves {
            record.without(self.me).encode(at, wall)?
        } else {
            record.encode(at, wall)?
        };
        Ok(Applied {
            bytes,
            record,
            granted,
        })
    }

    /// Returns the stored record, completed by what the member knows. A store may lose updates, and
    /// a file may be moved away and back.
    fn current(
        self,
        stored: Option<Record>,
        copy: impl FnOnce() -> Option<Record>,
    ) -> Option<Record> {
        let Some(mut stored) = stored else {
            let mut copy = copy()?;
            copy.members_mut().await_reports(self.now);
            copy.members_mut().replace_lost();
            return Some(copy);
        };
        let is_old = stored.members().updates() < self.report.seen_updates;
        if !is_old && !stored.members().awaits_report_of(self.me) {
            return Some(stored);
        }
        if let Some(copy) = copy() {
            stored.merge(copy, self.now);
        }
        if is_old {
            stored.members_mut().await_reports(self.now);
        }
        Some(stored)
    }

    /// Records the report, and grants reservations.
    pub(crate) fn apply(self, record: &mut Record) -> Granted {
        let Self {
            me, report, now, ..
        } = self;
        for outcome in &report.outcomes {
            record.record(me, outcome);
        }
        record.record_block(report.blocked, now);
        let members = record.members_mut();
        match report.probe_until {
            None => members.end_probe(me),
            Some(until) => members.extend_probe(me, until),
        }
        members.slot(me).report(
            report.reserved,
            report.want,
            report.given_back,
            now.plus(MEMBER_LEASE),
        );
        let granted = self.grant(record);
        let members = record.members_mut();
        members.slot(me).grant(granted.requests, granted.probe);
        if granted.probe {
            members.set_probe(me, now, now.plus(PROBE_LEASE));
        }
        granted
    }

    fn grant(self, record: &Record) -> Granted {
        let in_flight = record.in_flight(self.now);
        let allowance = match decision::allowance(record.ledger(), in_flight, self.now, self.policy)
        {
            Ok(allowance) => allowance,
            Err(wait) => return Granted::nothing(self.ask_again(record, wait)),
        };
        if record.members().awaits_reports_beside(self.me, self.now) {
            return Granted::nothing(self.now.plus(REPORT_INTERVAL));
        }
        if self.report.want == 0 && (allowance.is_probe() || self.report.prefetch == 0) {
            return Granted::nothing(self.now);
        }
        if allowance.is_probe() {
            return self.granted(record, 1, true, false);
        }
        if let Some(start) = self.start(record)
            && start.left < self.report.want
        {
            let retry_at = start.end.min(self.now.plus(MAX_ASK_INTERVAL));
            let (part, in_flight) = self.parts(record, allowance);
            return Granted {
                requests: part.min(in_flight).min(start.left),
                retry_at,
                ..Granted::default()
            };
        }
        let (part, in_flight) = self.parts(record, allowance);
        let requests = part.min(in_flight);
        // If the cap on requests in flight was the limit instead, there may soon be room.
        let is_reserved_for_others = requests < self.report.want && requests == part;
        self.granted(record, requests, false, is_reserved_for_others)
    }

    /// Returns what the member may get in the first window, while other members may be about to
    /// start.
    fn start(self, record: &Record) -> Option<Start> {
        let ledger = record.ledger();
        let service_now = ledger.service_time(self.now);
        let window = open_minute(ledger, service_now)?;
        let slots = record.members().slots();
        let end = window.opened_at().plus(START_TIME);
        if self.now >= end
            || window.part_left(service_now) < MIN_START_REST
            || slots.iter().any(|slot| slot.previous() > 0)
        {
            return None;
        }
        let got = slots.iter().find(|slot| slot.id() == self.me)?.got();
        let part = (window.limit() / START_PART).max(1);
        Some(Start {
            left: part.saturating_sub(got),
            end,
        })
    }

    /// Returns the member's part of what the quotas leave, and of what may be in flight.
    fn parts(self, record: &Record, allowance: Allowance) -> (u64, u64) {
        let claim = self.claim(record);
        let service_now = record.ledger().service_time(self.now);
        let window = open_minute(record.ledger(), service_now)
            .map(|window| OpenWindow::new(window.limit(), window.part_left(service_now)));
        let part = claim.fair_part(allowance.left(), window);
        let mut in_flight = claim.fair_part(allowance.requests(), window);
        // Three exceptions reserve less for members that do not wait: one request may always be in
        // flight, more may be while far more is left, and those that wait always get half of the
        // room. Otherwise a member that has used more than a silent one gets one request at a time.
        let asked = claim.part_of_waiting(allowance.requests());
        in_flight = in_flight.max(asked / 2);
        let reserved = record.members().reserved();
        if reserved == 0 {
            in_flight = in_flight.max(asked.min(1));
        }
        if allowance.left() / FAR_MORE > allowance.requests().saturating_add(reserved) {
            in_flight = in_flight.max(asked);
        }
        (part, in_flight)
    }

    fn granted(
        self,
        record: &Record,
        requests: u64,
        probe: bool,
        is_reserved_for_others: bool,
    ) -> Granted {
        let retry_at = if requests >= self.report.want {
            self.now
        } else if is_reserved_for_others {
            self.later(ASK_INTERVAL)
        } else {
            self.later(response_time(record))
        };
        Granted {
            requests,
            probe,
            retry_at: retry_at.min(self.now.plus(MAX_ASK_INTERVAL)),
            is_reserved_for_others,
        }
    }

    /// Returns when a member that gets nothing asks again.
    fn ask_again(self, record: &Record, wait: Decision) -> LocalTime {
        let at = match wait {
            Decision::WaitUntil(block) => return self.after_block(record, &block),
            Decision::WaitForResponse(WaitReason::Probe) => self.after_probe(record),
            Decision::WaitForResponse(WaitReason::Concurrency) => self.later(response_time(record)),
            _ if self.claim(record).is_behind() => self.later(MAX_ASK_INTERVAL),
            _ => self.later(ASK_INTERVAL),
        };
        at.min(self.now.plus(MAX_ASK_INTERVAL))
    }

    fn after_block(self, record: &Record, block: &Block) -> LocalTime {
        let is_shared = record.members().slots().len() > 1;
        let jitter = if is_shared { self.report.jitter } else { 0.0 };
        let opens = block.until.plus(MAX_SPREAD.mul_f64(jitter));
        // Another member may learn that the block ends sooner.
        let look = (block.until.since(self.now) / 16).clamp(MAX_ASK_INTERVAL, MAX_LOOK_INTERVAL);
        opens.min(self.now.plus(look))
    }

    /// Returns when to look for the response to the probe: first after about one latency. The
    /// longer it takes, the longer the interval.
    fn after_probe(self, record: &Record) -> LocalTime {
        let latency = record.ledger().latency();
        let granted = record.members().probe_granted().unwrap_or(self.now);
        let interval = (latency / 4)
            .max(self.now.since(granted) / 4)
            .max(MIN_ASK_INTERVAL);
        self.now.plus(interval).max(granted.plus(latency * 6 / 5))
    }

    fn claim(self, record: &Record) -> Claim<'_> {
        let slots = record.members().slots();
        Claim::new(slots, self.me, self.report.want, self.report.prefetch)
    }

    fn later(self, by: Duration) -> LocalTime {
        self.now.plus(by + MAX_SPREAD.mul_f64(self.report.jitter))
    }
}

/// What a member may get while others may be about to start.
struct Start {
    left: u64,
    end: LocalTime,
}

fn open_minute(ledger: &Ledger, service_now: ServiceTime) -> Option<&Window> {
    ledger
        .windows()
        .iter()
        .find(|window| window.quota() == Quota::Minute && !ledger.has_passed(window, service_now))
}

/// Returns how soon a response is expected, which makes room.
fn response_time(record: &Record) -> Duration {
    (record.ledger().latency() * 6 / 5).max(MIN_RESPONSE_TIME)
}

/// An update that was applied to a stored record.
pub(crate) struct Applied {
    /// The new record, encoded.
    pub(crate) bytes: Vec<u8>,
    pub(crate) record: Record,
    pub(crate) granted: Granted,
}

/// An update that was not applied.
#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) problem: &'static str,
    /// The record, if it has no room for another member.
    pub(crate) full: Option<Box<Record>>,
}

impl From<&'static str> for Rejected {
    fn from(problem: &'static str) -> Self {
        Self {
            problem,
            full: None,
        }
    }
}
