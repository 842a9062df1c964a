//! The record that members share, and its form in a store.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::members::Members;
use super::slot::MemberId;
use super::store::StoreTime;
use crate::rate_limit::quota::clock::{LocalTime, SECOND, ServiceTime, micros};
use crate::rate_limit::quota::decision::InFlight;
use crate::rate_limit::quota::ledger::Ledger;
use crate::rate_limit::quota::reading::{Block, RequestOutcome};
use crate::rate_limit::view::BlockReason;

/// The version of the format. A record of another version is replaced.
const FORMAT: u8 = 5;
/// The maximum size of a record. It fits in a page of 4 KiB with the store's own data.
const MAX_RECORD: usize = 4_000;

/// How much two ends of one block may differ, if two members compute them from one response.
const SAME_BLOCK: Duration = Duration::from_secs(5);

/// The shared knowledge of a key: its ledger and its members.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    ledger: Ledger,
    members: Members,
}

impl Record {
    pub(crate) fn new(ledger: Ledger, members: Members) -> Self {
        Self { ledger, members }
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    pub(crate) fn members_mut(&mut self) -> &mut Members {
        &mut self.members
    }

    pub(crate) fn into_parts(self) -> (Ledger, Members) {
        (self.ledger, self.members)
    }

    /// Records the outcome of a member's request.
    pub(crate) fn record(&mut self, member: MemberId, outcome: &RequestOutcome) {
        self.members
            .slot(member)
            .end_requests(outcome.requests().into());
        if outcome.is_probe() {
            self.members.end_probe(member);
        }
        let reserved = self.members.reserved();
        let recorded = self.ledger.record(outcome, reserved);
        if recorded.has_opened_window() {
            self.members.open_window();
        }
    }

    /// Records a block that a member knows.
    pub(crate) fn record_block(&mut self, block: Option<Block>, now: LocalTime) {
        let Some(block) = block.filter(|block| now < block.until) else {
            return;
        };
        match self.ledger.refusals().last_block() {
            // The record knows the end from the response's head. Only the response's body says that
            // it is a ban.
            Some(known) if block.until <= known.until => {
                if block.reason == BlockReason::Ban && known.until.since(block.until) <= SAME_BLOCK
                {
                    self.ledger.refusals_mut().record_ban();
                }
            }
            _ => self.ledger.refusals_mut().set_block(Some(block)),
        }
    }

    /// Merges another record of the same key. Later knowledge and later reports win. Of a window that
    /// both know, the lowest reading counts: responses that come at the same time, or in another
    /// order than they were sent, do not say which is the later one.
    pub(crate) fn merge(&mut self, other: Self, now: LocalTime) {
        let Self {
            mut ledger,
            members,
        } = other;
        if self.ledger.seen_at() < ledger.seen_at() {
            std::mem::swap(&mut self.ledger, &mut ledger);
        }
        self.ledger.merge(&ledger);
        self.record_block(ledger.refusals().last_block(), now);
        self.members.merge(members);
    }

    /// Removes dead members, and ends their probes. The reservations of these and of silent members
    /// count as lost requests.
    pub(crate) fn expire_members(&mut self, now: LocalTime, is_alive: impl Fn(MemberId) -> bool) {
        let reserved = self.members.expire(now, is_alive);
        self.ledger.lose(reserved, now);
    }

    /// Returns the requests in flight of all members.
    pub(crate) fn in_flight(&self, now: LocalTime) -> InFlight {
        InFlight {
            all: self.members.reserved(),
            of_client: 0,
            has_probe: self.members.is_probing(now),
            processes: self.members.processes(now),
        }
    }

    /// Returns the record without a member that leaves.
    pub(crate) fn without(&self, member: MemberId) -> Self {
        let mut others = self.clone();
        others.members.remove(member);
        others
    }

    fn is_plausible(&self) -> bool {
        self.ledger.is_plausible() && self.members.is_plausible()
    }

    /// Encodes the record. Fails if it is too large for a store.
    pub(crate) fn encode(
        &self,
        now: StoreTime,
        wall: ServiceTime,
    ) -> Result<Vec<u8>, &'static str> {
        let stored = Stored {
            epoch: now.epoch(),
            at: now.since(),
            wall,
            record: self,
        };
        // Serialization cannot fail, and an empty record counts as missing.
        let bytes = postcard::to_extend(&stored, vec![FORMAT]).unwrap_or_default();
        if bytes.len() > MAX_RECORD {
            return Err("the limits do not fit into a record");
        }
        Ok(bytes)
    }

    /// Decodes a record; `None` if it is damaged or has another format. If the record is from
    /// another epoch, or from before the store's clock was set back, its times mean nothing. Then
    /// only the block of a 429 is kept, and the wall clock determines how much of it is left.
    pub(crate) fn decode(bytes: &[u8], now: StoreTime, wall: ServiceTime) -> Option<Self> {
        let bytes = bytes.strip_prefix(&[FORMAT])?;
        let stored: Stored<Self> = postcard::from_bytes(bytes).ok()?;
        let record = stored.record;
        if !record.is_plausible() {
            return None;
        }
        if stored.epoch == now.epoch() && stored.at <= now.since().moved(SECOND) {
            return Some(record);
        }
        let passed = micros(wall.since(stored.wall));
        let ahead = now.since().0.saturating_sub(stored.at.0);
        let mut fresh = Ledger::new(now.since(), wall);
        let block = record.ledger.refusals().last_block();
        fresh
            .refusals_mut()
            .set_block(block.map(|block| block.moved(ahead.saturating_sub(passed))));
        Some(Self::new(fresh, Members::default()))
    }
}

/// A record in a store.
#[derive(Serialize, Deserialize)]
struct Stored<R> {
    epoch: u64,
    /// When the record was written, by the store's clock and by the wall clock.
    at: LocalTime,
    wall: ServiceTime,
    record: R,
}

/// For tests: access to values that members do not report.
#[cfg(test)]
impl Record {
    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::quota::policy::Policy;
    use crate::rate_limit::quota::reading::Answer;
    use crate::rate_limit::quota::window::Window;
    use crate::rate_limit::shared::members::MAX_MEMBERS;
    use crate::rate_limit::tests::rules::{answer, reading, send, service, with_window};
    use crate::rate_limit::view::{BlockReason, Plan};

    const HOUR: i64 = 3_600 * SECOND;

    fn at(epoch: u64, hours: i64) -> StoreTime {
        let since = u64::try_from(hours).unwrap() * 3_600;
        StoreTime::new(epoch, Duration::from_secs(since))
    }

    /// A record from the tenth hour, by both clocks, with a block that lasts three more hours.
    fn record() -> Vec<u8> {
        let mut record = Record::new(
            Ledger::new(LocalTime(0), ServiceTime(0)),
            Members::default(),
        );
        record.ledger.refusals_mut().set_block(Some(Block {
            until: LocalTime(13 * HOUR),
            named: ServiceTime(13 * HOUR),
            reason: BlockReason::Ban,
        }));
        record.members.slot(MemberId(1)).set_reserved(5);
        record.encode(at(1, 10), ServiceTime(10 * HOUR)).unwrap()
    }

    /// Returns for how many hours the record still blocks.
    fn blocked(now: StoreTime, wall: i64) -> Option<i64> {
        let record = Record::decode(&record(), now, ServiceTime(wall * HOUR)).unwrap();
        let block = record.ledger.refusals().last_block()?;
        Some((block.until.0 - now.since().0) / HOUR)
    }

    #[test]
    fn a_changed_wall_clock_changes_nothing_while_running() {
        for wall in [0, 11, 500] {
            assert_eq!(blocked(at(1, 11), wall), Some(2), "{wall}");
        }
    }

    #[test]
    fn a_block_outlives_a_reboot_by_the_wall_clock() {
        assert_eq!(blocked(at(2, 0), 11), Some(2));
        // The wall clock was set back in between, so by this clock no time has passed.
        assert_eq!(blocked(at(2, 0), 1), Some(3));
        for (epoch, hours, reserved) in [(2, 0, 0), (2, 11, 0), (1, 11, 5)] {
            let decoded = Record::decode(&record(), at(epoch, hours), ServiceTime(11 * HOUR));
            let decoded = decoded.unwrap().members.reserved();
            assert_eq!(decoded, reserved, "{epoch}, {hours}");
        }
    }

    #[test]
    fn a_record_from_the_future_is_from_before_a_clock_change() {
        assert_eq!(blocked(at(1, 4), 11), Some(2));
    }

    #[test]
    fn a_merge_keeps_the_later_ledger_and_the_longest_block() {
        let seen = |hour: i64, blocked_until: i64| {
            let (now, service) = (LocalTime(hour * HOUR), ServiceTime(hour * HOUR));
            let window = Window::open(
                reading(100, 50, 60).unwrap(),
                &Answer::at(now, service),
                None,
            );
            let mut ledger = Ledger::with_window(now, service, window);
            ledger.refusals_mut().set_block(Some(Block {
                until: LocalTime(blocked_until * HOUR),
                named: ServiceTime(blocked_until * HOUR),
                reason: BlockReason::Unknown,
            }));
            Record::new(ledger, Members::default())
        };
        for [first, second] in [[(1, 5), (2, 4)], [(2, 4), (1, 5)]] {
            let mut merged = seen(first.0, first.1);
            merged.merge(seen(second.0, second.1), LocalTime(3 * HOUR));
            assert_eq!(merged.ledger.seen_at(), Some(LocalTime(2 * HOUR)));
            let block = merged.ledger.refusals().last_block().unwrap();
            assert_eq!(block.until, LocalTime(5 * HOUR));
        }
    }

    #[test]
    fn a_merge_keeps_the_lowest_reading_of_a_window() {
        let seen = |at: i64, remaining: u64, reset: i64| {
            let (now, service) = (LocalTime(at), ServiceTime(at));
            let answer = Answer::at(now, service);
            let window = Window::open(reading(100, remaining, reset).unwrap(), &answer, None);
            Record::new(
                Ledger::with_window(now, service, window),
                Members::default(),
            )
        };
        for (at, other_at, reset, expected) in [
            (5, 5, 60, 7),
            (5, 6, 60, 7),
            (6, 5, 60, 7),
            // Another window.
            (6, 5, 120, 9),
        ] {
            let mut merged = seen(at, 9, reset);
            merged.merge(seen(other_at, 7, 60), LocalTime(9));
            let remaining = merged.ledger.windows()[0].remaining();
            assert_eq!(remaining, expected, "{at} {other_at} {reset}");
        }
    }

    #[test]
    fn a_merge_keeps_a_quota_that_only_the_earlier_copy_knows() {
        let seen = |at: i64, window: Window| {
            let ledger = Ledger::with_window(LocalTime(at), service(0), window);
            Record::new(ledger, Members::default())
        };
        let answer = Answer::at(LocalTime(5), service(0));
        let [minute, day] = [60, 40_000].map(|reset| {
            let reading = reading(100, 9, reset).unwrap();
            Window::open(reading, &answer, None)
        });
        for (at, other_at) in [(5, 6), (6, 5)] {
            let mut merged = seen(at, minute.clone());
            merged.merge(seen(other_at, day.clone()), LocalTime(9));
            assert_eq!(merged.ledger.windows().len(), 2, "{at} {other_at}");
        }
    }

    #[test]
    fn a_merge_keeps_the_most_requests_of_a_configured_plan() {
        let counted = |requests| {
            let mut local = with_window(60, 59);
            for _ in 1..requests {
                let request = send(&mut local, 0);
                answer(&mut local, request, 0, None);
            }
            Record::new(local.ledger().clone(), Members::default())
        };
        let plan = Plan::custom().per_minute(10);
        for [first, second] in [[1, 3], [3, 1]] {
            let mut merged = counted(first);
            merged.merge(counted(second), LocalTime(9));
            let policy = Policy::default();
            let mut left = merged.ledger.plan_left(plan, LocalTime(SECOND), &policy);
            assert_eq!(left.next().unwrap().left(), 7, "{first} {second}");
        }
    }

    #[test]
    fn a_merge_keeps_what_only_the_earlier_copy_has_lost() {
        let copy = |at: i64, lost: u64| {
            let mut ledger = with_window(60, 59).ledger().clone();
            ledger.lose(lost, LocalTime(at));
            Record::new(ledger, Members::default())
        };
        for [first, second] in [[0, 3], [3, 0], [3, 2]] {
            let mut merged = copy(5, first);
            merged.merge(copy(6, second), LocalTime(9));
            assert_eq!(merged.ledger.lost(), 3, "{first} {second}");
        }
    }

    #[test]
    fn a_truncated_record_or_one_of_another_format_is_ignored() {
        let record = record();
        let now = at(1, 11);
        for length in 0..record.len() {
            let decoded = Record::decode(&record[..length], now, ServiceTime(0));
            assert!(decoded.is_none(), "{length}");
        }
        let other = [&[FORMAT + 1], &record[1..]].concat();
        assert!(Record::decode(&other, now, ServiceTime(0)).is_none());
    }

    #[test]
    fn a_record_that_is_too_large_is_not_written() {
        let mut record = Record::default();
        for limit in 0..1_000 {
            let answer = Answer {
                outstanding: 1_000,
                ..Answer::at(LocalTime(0), ServiceTime(0))
            };
            let window = Window::open(reading(1_000 + limit, 900, 60).unwrap(), &answer, None);
            let ledger = Ledger::with_window(LocalTime(0), ServiceTime(0), window);
            record.members.slot(MemberId(limit));
            record.ledger = ledger;
        }
        let encoded = record.encode(at(1, 11), ServiceTime(0));
        assert!(encoded.is_err_and(|problem| problem.contains("do not fit")));
    }

    #[test]
    fn the_record_of_the_most_members_is_within_its_limit() {
        let ledger = Ledger::new(LocalTime(i64::MAX), ServiceTime(i64::MAX));
        let mut record = Record::new(ledger, Members::default());
        for member in 0..MAX_MEMBERS as u64 {
            let slot = record.members.slot(MemberId(u64::MAX - member));
            slot.report(1_000_000, 1_000, 0, LocalTime(i64::MAX));
            slot.set_use(1_000_000, 1_000_000, 4_000_000 * 1_024);
        }
        let encoded = record.encode(at(u64::MAX, 1 << 20), ServiceTime(i64::MAX));
        assert!(encoded.is_ok());
    }

    #[test]
    fn a_record_with_a_count_that_no_member_reaches_is_refused() {
        let most = i64::from(u32::MAX) << 16 | 0xFFFF;
        let ledger = with_window(100, 90).ledger().clone();
        let mut record = Record::new(ledger, Members::default());
        for member in 0..MAX_MEMBERS as u64 {
            record.members.slot(MemberId(1 + member));
        }
        assert!(record.is_plausible(), "the most members");
        for (place, most) in [
            ("/members/slots/63/reserved", most),
            ("/members/slots/0/want", most),
            ("/members/slots/0/weighted_use", most * 1_024 + 1_023),
            ("/members/updates", most),
            ("/ledger/windows/0/own", most),
            ("/ledger/windows/0/remaining", 100),
            ("/ledger/usage/minute/used", most),
            ("/ledger/usage/day/window", most),
            ("/ledger/latency/secs", most),
            ("/ledger/reset_margin/secs", most),
        ] {
            for (count, is_plausible) in [(most, true), (most + 1, false)] {
                let mut value = serde_json::to_value(&record).unwrap();
                *value.pointer_mut(place).expect(place) = count.into();
                let record: Record = serde_json::from_value(value).unwrap();
                assert_eq!(record.is_plausible(), is_plausible, "{place} {count}");
            }
        }
        record.members.slot(MemberId(1_000));
        assert!(!record.is_plausible(), "one more");
    }
}
