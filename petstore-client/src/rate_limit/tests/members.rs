//! Tests of what a member reports to the others, and when.

use std::time::Duration;

use super::rules::{at, reading, service};
use crate::rate_limit::quota::clock::{LocalTime, SECOND};
use crate::rate_limit::quota::decision::Decision;
use crate::rate_limit::quota::ledger::Ledger;
use crate::rate_limit::quota::policy::{MaxInFlight, Policy};
use crate::rate_limit::quota::reading::{Answer, RequestOutcome, ResponseHead};
use crate::rate_limit::quota::window::Window;
use crate::rate_limit::shared::member::Member;
use crate::rate_limit::shared::record::Record;
use crate::rate_limit::shared::slot::MemberId;
use crate::rate_limit::shared::update::{Report, Update};
use crate::rate_limit::view::{BlockReason, Quota, WaitReason};

const ME: MemberId = MemberId(9);
const SECONDS_30: Duration = Duration::from_secs(30);
const REFUSAL: ResponseHead = ResponseHead {
    status: 429,
    date: None,
    reading: None,
    retry_after: Some(SECONDS_30),
};

/// A member and its record, both with the same number of remaining requests.
#[derive(Clone)]
struct Shared {
    member: Member,
    record: Record,
}

impl Shared {
    fn new(remaining: u64) -> Self {
        let reading = reading(1_000, remaining, 60).unwrap();
        let answer = Answer {
            outstanding: 1_000,
            ..Answer::at(at(0), service(0))
        };
        let window = Window::open(reading, &answer, None);
        let ledger = Ledger::with_window(at(0), service(0), window);
        Self {
            member: Member::new(ME, at(0), service(0)),
            record: Record::new(ledger, Default::default()),
        }
    }

    /// Updates the record at `now` while calls wait. The update takes `took` milliseconds.
    fn update(&mut self, now: LocalTime, waiting: u64, took: i64) -> Report {
        let report = self.member.report(now, waiting, 0.0);
        let granted = Update::new(ME, &report, &Policy::default(), now).apply(&mut self.record);
        let now = now.moved(took * 1_000);
        self.member
            .updated(now, self.record.clone(), report.given_back, granted);
        report
    }

    /// Sends granted requests, and answers the first `answered` of them.
    fn send(&mut self, now: LocalTime, sent: usize, answered: usize) {
        let requests: Vec<_> = (0..sent)
            .map(|_| {
                assert_eq!(self.decide(now), Decision::Send { probe: false });
                let request = self.member.reserve(now, false, &Policy::default());
                assert!(self.member.start(request, now, Duration::from_secs(30)));
                request
            })
            .collect();
        for request in requests.into_iter().take(answered) {
            let reading = reading(1_000, 900, 60);
            let head = ResponseHead {
                status: 200,
                date: None,
                reading,
                retry_after: None,
            };
            self.member.record_response(request, now, &head);
        }
    }

    fn decide(&self, now: LocalTime) -> Decision {
        self.member.decide(now, &Policy::default())
    }

    /// Returns when the next update is due, in milliseconds after the tenth second.
    fn due(&self, waiting: u64) -> Option<i64> {
        self.member
            .update_at(waiting)
            .map(|due| (due.0 - at(10).0) / 1_000)
    }
}

#[test]
fn a_member_updates_the_record_as_soon_as_others_need_it() {
    let none = Shared::new(900);
    assert_eq!(
        (none.due(0), none.due(1)),
        (None, Some(-10_000)),
        "nothing is known yet"
    );
    assert_eq!(none.member.clone().report(at(0), 1, 0.0).prefetch, 0);
    // In this order: how many calls wait at the update, how many requests are sent and answered,
    // how many calls wait after that, and when the next update is due.
    for (waiting, sent, answered, then, expected) in [
        (0, 0, 0, 0, None),
        (0, 0, 0, 1, Some(1)),
        (1, 0, 0, 0, Some(1_500)),
        (1, 1, 0, 0, Some(1_500)),
        (1, 1, 1, 0, Some(100)),
        (2, 2, 1, 0, Some(1_500)),
        (2, 2, 1, 1, Some(1)),
        (2, 1, 1, 1, Some(1_500)),
        (20, 20, 15, 0, Some(1_500)),
        (20, 20, 16, 0, Some(100)),
    ] {
        let mut shared = Shared::new(900);
        shared.update(at(10), waiting, 0);
        shared.send(at(10), sent, answered);
        assert_eq!(
            shared.due(then),
            expected,
            "{waiting} {sent} {answered} {then}"
        );
    }
    let mut beside_others = Shared::new(900);
    beside_others.record.ledger_mut().set_own_share(0.5, at(10));
    beside_others.update(at(10), 2, 0);
    beside_others.send(at(10), 2, 1);
    assert_eq!(beside_others.due(0), Some(10));
}

#[test]
fn a_member_that_got_too_little_asks_soon() {
    for (remaining, others, granted, asks, once_answered) in
        [(900, 0, 112, 100, 50), (8, 1, 4, 1_000, 1_000)]
    {
        let mut shared = Shared::new(remaining);
        for other in 0..others {
            shared.record.members_mut().slot(MemberId(other));
        }
        shared.update(at(10), 200, 0);
        let mut answered = shared.clone();
        shared.send(at(10), granted, 0);
        assert!(!matches!(shared.decide(at(10)), Decision::Send { .. }));
        assert_eq!(shared.due(1), Some(asks), "{remaining}");
        let kept = |now| {
            shared
                .member
                .blocked_by_members(now)
                .map(|block| block.until)
        };
        let until = (others > 0).then_some(at(60));
        assert_eq!((kept(LocalTime(10_999_999)), kept(at(11))), (until, None));
        answered.send(at(10), granted, 1);
        assert_eq!(answered.due(1), Some(once_answered), "{remaining}");
    }
}

#[test]
fn a_member_keeps_two_seconds_of_its_rate() {
    // The first three: how many of twenty requests are sent, in which time, and how many calls wait
    // after that.
    for (sent, later, waiting, reserved, given_back, ahead) in [
        (10, 1_000, 0, 10, 0, 0),
        (10, 1_000, 1, 10, 0, 10),
        (2, 1_000, 1, 4, 14, 0),
        (10, 50, 1, 10, 0, 190),
        (10, 4_499, 0, 4, 6, 0),
        (10, 4_500, 1, 0, 10, 4),
    ] {
        let mut shared = Shared::new(900);
        shared.update(at(10), 20, 0);
        shared.send(at(10), sent, sent);
        let now = at(10).moved(later * 1_000);
        let may_send = shared.decide(now) == Decision::Send { probe: false };
        assert_eq!(may_send, later < 4_500, "{sent} {later}");
        let report = shared.update(now, waiting, 0);
        let found = (report.reserved, report.given_back, report.prefetch);
        assert_eq!(
            found,
            (reserved, given_back, ahead),
            "{sent} {later} {waiting}"
        );
        if waiting == 0 {
            let next = shared.member.report(now, 0, 0.0);
            assert_eq!(next.given_back, reserved, "given back only once");
        }
    }
    let mut beside_others = Shared::new(900);
    beside_others.record.ledger_mut().set_own_share(0.5, at(10));
    beside_others.update(at(10), 20, 0);
    beside_others.send(at(10), 2, 2);
    assert_eq!(beside_others.update(at(11), 1, 0).prefetch, 0);
}

#[test]
fn a_report_has_all_that_the_record_lacks() {
    let mut shared = Shared::new(900);
    shared.record.members_mut().count_update();
    shared.update(at(10), 20, 0);
    shared.send(at(10), 5, 2);
    let refused = shared.member.reserve(at(10), false, &Policy::default());
    assert!(
        shared
            .member
            .start(refused, at(10), Duration::from_secs(30))
    );
    let block = shared.member.record_response(refused, at(10), &REFUSAL);
    assert_eq!(block.map(|block| block.until), Some(at(40)));
    assert_eq!(shared.due(0), Some(0), "a block is reported at once");
    let Report {
        outcomes,
        reserved,
        given_back,
        seen_updates,
        want,
        prefetch,
        blocked,
        probe_until,
        leaves,
        jitter,
    } = shared.member.report(at(11), 4, 0.25);
    let answered: Vec<_> = outcomes.iter().map(RequestOutcome::requests).collect();
    assert_eq!(answered, [2, 1], "two successes are one outcome");
    // Of 20 requests, six were used within a second. Twelve are kept for two seconds.
    assert_eq!((reserved, given_back, prefetch), (12 + 3, 2, 0));
    assert_eq!((seen_updates, want, jitter), (1, 4, 0.25));
    assert_eq!((blocked, probe_until, leaves), (block, None, false));
    // The first report may be lost, so the next one repeats it.
    let next = shared.member.report(at(11), 0, 0.0);
    assert_eq!(next.outcomes.len(), 2);
    assert_eq!((next.reserved, next.given_back), (3, 14));
    assert_eq!(next.blocked, block);
    assert_eq!(
        shared.due(0),
        Some(2_500),
        "the report is sent, so the next one may wait"
    );
}

impl Shared {
    /// The member sends a request that the service refuses.
    fn refuse(&mut self, now: LocalTime) {
        self.update(now, 20, 0);
        let request = self.member.reserve(now, false, &Policy::default());
        assert!(self.member.start(request, now, SECONDS_30));
        self.member.record_response(request, now, &REFUSAL);
    }
}

#[test]
fn a_block_that_another_member_has_ended_does_not_come_back() {
    let mut shared = Shared::new(900);
    shared.refuse(at(10));
    shared.update(at(10), 1, 0);
    assert!(shared.record.ledger().refusals().last_block().is_some());
    // The other member's request was forced, and the service accepted it.
    let head = ResponseHead {
        status: 200,
        reading: reading(1_000, 899, 60),
        retry_after: None,
        ..REFUSAL
    };
    let forced = RequestOutcome::answered(at(12), at(12), true, 1, head);
    shared.record.record(MemberId(8), &forced);
    shared.update(at(20), 1, 0);
    assert_eq!(shared.record.ledger().refusals().last_block(), None);
    assert!(matches!(shared.decide(at(20)), Decision::Send { .. }));
}

#[test]
fn a_ban_is_told_although_its_refusal_was_told_before() {
    let mut shared = Shared::new(900);
    shared.refuse(at(10));
    shared.update(at(10), 1, 0);
    shared.member.record_ban();
    for _ in 0..2 {
        let told = shared.member.report(at(11), 1, 0.0).blocked;
        assert_eq!(told.map(|block| block.reason), Some(BlockReason::Ban));
    }
    shared.update(at(11), 1, 0);
    assert_eq!(shared.member.report(at(12), 1, 0.0).blocked, None);
}

#[test]
fn a_block_that_its_own_member_has_ended_is_not_told() {
    let mut shared = Shared::new(900);
    shared.refuse(at(10));
    let _lost = shared.member.report(at(11), 1, 0.0);
    let probe = shared.member.reserve(at(12), true, &Policy::default());
    assert!(shared.member.start(probe, at(12), SECONDS_30));
    let head = ResponseHead {
        status: 200,
        reading: reading(1_000, 899, 60),
        retry_after: None,
        ..REFUSAL
    };
    shared.member.record_response(probe, at(12), &head);
    assert_eq!(shared.member.report(at(13), 1, 0.0).blocked, None);
}

#[test]
fn a_member_pauses_eight_times_as_long_as_its_update_took() {
    for (others, took, pause) in [
        (0, 50, 400),
        (0, 93, 744),
        (0, 1_000, 750),
        (7, 1_000, 750),
        (8, 1_000, 1_500),
        (8, 187, 1_496),
    ] {
        let mut shared = Shared::new(900);
        for other in 0..others {
            shared.record.members_mut().slot(MemberId(other));
        }
        shared.update(at(10).moved(-took * 1_000), 0, took);
        assert_eq!(shared.due(1), Some(pause), "{others} {took}");
    }
}

#[test]
fn a_member_with_a_slow_store_keeps_more_of_its_rate() {
    let mut shared = Shared::new(900);
    for other in 0..8 {
        shared.record.members_mut().slot(MemberId(other));
    }
    // It may update again after 1.5 s, and the pause after that is as long.
    shared.update(at(9), 20, 1_000);
    shared.send(at(10), 10, 10);
    let report = shared.update(at(11), 1, 0);
    assert_eq!(report.reserved + report.prefetch, 30);
}

#[test]
fn what_a_probe_brings_is_told_at_once() {
    let mut shared = Shared::new(900);
    shared.record.ledger_mut().refusals_mut().doubt();
    shared.update(at(10), 1, 0);
    assert_eq!(shared.decide(at(10)), Decision::Send { probe: true });
    assert_eq!(shared.due(0), Some(1_500));
    assert_eq!(
        shared.update(at(10), 1, 0).probe_until,
        Some(at(15)),
        "it is kept"
    );
    assert_eq!(
        shared.member.clone().report(at(15), 0, 0.0).probe_until,
        None,
        "it has lapsed"
    );
    let unsent = shared.member.reserve(at(10), true, &Policy::default());
    assert_eq!(
        shared.decide(at(10)),
        Decision::WaitForResponse(WaitReason::Probe)
    );
    let mut released = shared.member.clone();
    released.release(unsent);
    assert_eq!(released.update_at(0), Some(at(10)));
    assert_eq!(released.report(at(10), 0, 0.0).given_back, 1);
    assert_eq!(
        shared.member.clone().report(at(15), 0, 0.0).probe_until,
        Some(at(11))
    );
    assert!(shared.member.start(unsent, at(10), Duration::from_secs(30)));
    let mut cut_off = shared.member.clone();
    cut_off.update_failed(at(10), None);
    let wait = Decision::WaitForResponse(WaitReason::Probe);
    assert_eq!(cut_off.decide(at(10), &Policy::default()), wait);
    assert_eq!(shared.update(at(10), 1, 0).probe_until, Some(at(40)));
    shared.member.record_lost(unsent, at(10));
    assert_eq!(shared.due(0), Some(0));
}

#[test]
fn a_member_without_the_store_counts_others_requests_as_lost() {
    let mut shared = Shared::new(900);
    shared
        .record
        .members_mut()
        .slot(MemberId(1))
        .set_reserved(5);
    shared.update(at(10), 2, 0);
    shared.send(at(10), 1, 0);
    let limits = |member: &Member| {
        let local = member.local();
        let is_alone = local.ledger().others().are_assumed();
        (local.in_flight(), local.unresolved(), is_alone)
    };
    shared.member.update_failed(at(10), None);
    assert_eq!(limits(&shared.member), (1, 5, true));
    assert_eq!(
        shared.member.left_in(&shared.record.ledger().windows()[0]),
        900 - 1 - 5
    );
    assert_eq!((shared.due(0), shared.due(1)), (Some(1_000), Some(1_000)));
    let mut answered = Shared::new(900);
    answered.update(at(10), 1, 0);
    answered.send(at(10), 1, 1);
    answered.member.update_failed(at(10), None);
    assert_eq!(answered.due(0), Some(1_000));
    assert!(
        shared
            .member
            .copy()
            .is_some_and(|copy| !copy.ledger().others().are_assumed())
    );
    let mut idle = Shared::new(900);
    idle.member.update_failed(at(10), None);
    assert_eq!((idle.due(0), idle.due(1)), (None, Some(1_000)));
    assert_eq!(
        idle.member.left_in(&shared.record.ledger().windows()[0]),
        900
    );
}

#[test]
fn a_member_tells_its_last_outcomes_in_the_stores_time() {
    let mut shared = Shared::new(900);
    shared.update(at(10), 100, 0);
    for _ in 0..70 {
        shared.send(at(10), 1, 0);
    }
    shared.member.expire(at(40));
    let mut fresh = shared.clone();
    fresh.send(at(10), 1, 0);
    fresh.member.shift(SECOND);
    assert_eq!(fresh.member.local().first_lease_end(), Some(at(12)));
    shared.member.shift(SECOND);
    let report = shared.member.report(at(41), 0, 0.0);
    assert_eq!(report.outcomes.len(), 64);
    assert!(
        report
            .outcomes
            .iter()
            .all(|outcome| outcome.sent() == at(11))
    );
    let moved = report.moved(SECOND);
    assert!(
        moved
            .outcomes
            .iter()
            .all(|outcome| outcome.sent() == at(12))
    );
}

#[test]
fn a_member_sends_what_it_holds_within_its_own_settings() {
    let mut shared = Shared::new(900);
    shared.update(at(10), 2, 0);
    assert_eq!(shared.member.members(at(10)), 1);
    let one = Policy {
        max_in_flight: Some(MaxInFlight::new(1)),
        ..Policy::default()
    };
    let request = shared.member.reserve(at(10), false, &Policy::default());
    shared.member.release(request);
    let _in_flight = shared.member.reserve(at(10), false, &one);
    let unlimited = Policy {
        rate_limiting: false,
        ..Policy::default()
    };
    let another = Policy {
        max_in_flight: Some(MaxInFlight::new(1)),
        ..Policy::default()
    };
    let send = Decision::Send { probe: false };
    let wait = Decision::WaitForResponse(WaitReason::Concurrency);
    for (policy, expected) in [(one, wait), (another, send), (unlimited, send)] {
        let found = shared.member.decide(at(10), &policy);
        assert_eq!(found, expected, "{policy:?}");
    }
    shared.send(at(10), 1, 0);
    assert_eq!(
        shared.decide(at(10)),
        Decision::WaitForResponse(WaitReason::Members)
    );
}

#[test]
fn a_fork_is_another_member_without_its_parents_reservations() {
    for (updates, is_known) in [(1, true), (0, false)] {
        let mut parent = Shared::new(900);
        for _ in 0..updates {
            parent.update(at(10), 20, 0);
            parent.send(at(10), 5, 2);
        }
        let reserved = parent.record.members().reserved();
        let mut child = parent.clone();
        child.member.become_another(at(10));
        assert_ne!(child.member.id(), parent.member.id());
        assert_eq!(child.member.copy().is_some(), is_known);
        assert_eq!(child.member.local().in_flight(), 0);
        assert!(!matches!(child.decide(at(10)), Decision::Send { .. }));
        let report = child.member.report(at(11), 1, 0.0);
        assert_eq!((report.reserved, report.given_back), (0, 0));
        assert!(report.outcomes.is_empty());
        let policy = Policy::default();
        let update = Update::new(child.member.id(), &report, &policy, at(11));
        assert_eq!(update.apply(&mut child.record).requests, 1);
        assert_eq!(child.record.members().reserved(), reserved + 1);
    }
}

/// A refusal that blocks for 30 s.
fn refusal() -> ResponseHead {
    ResponseHead {
        status: 429,
        date: None,
        reading: None,
        retry_after: Some(Duration::from_secs(30)),
    }
}

#[test]
fn a_request_that_was_not_sent_before_a_429_stays_unsent() {
    let mut shared = Shared::new(900);
    shared.update(at(10), 20, 0);
    let policy = Policy::default();
    let reserve = |member: &mut Member, is_probe| member.reserve(at(10), is_probe, &policy);
    let [sent, unsent] = [(); 2].map(|()| reserve(&mut shared.member, false));
    let probe = reserve(&mut shared.member, true);
    let start = |member: &mut Member, request| member.start(request, at(10), SECONDS_30);
    assert!(start(&mut shared.member, sent));
    shared.member.record_response(sent, at(10), &refusal());
    assert!(!start(&mut shared.member, unsent));
    assert!(
        start(&mut shared.member, probe),
        "a probe asks all the same"
    );
    assert_eq!(shared.member.local().in_flight(), 1);
}

#[test]
fn a_member_tells_a_ban_from_a_refusal() {
    let mut shared = Shared::new(900);
    shared.update(at(10), 20, 0);
    let request = shared.member.reserve(at(10), false, &Policy::default());
    assert!(shared.member.start(request, at(10), SECONDS_30));
    shared.member.record_response(request, at(10), &refusal());
    let reason = |shared: &Shared| match shared.decide(at(10)) {
        Decision::WaitUntil(block) => block.reason,
        other => panic!("{other:?}"),
    };
    assert_ne!(reason(&shared), BlockReason::Ban);
    shared.member.record_ban();
    assert_eq!(reason(&shared), BlockReason::Ban);
}

#[test]
fn a_member_forgets_all_but_its_requests_in_flight() {
    let mut shared = Shared::new(900);
    shared.update(at(10), 20, 0);
    shared.send(at(10), 3, 1);
    shared.member.forget(at(11), service(11));
    let local = shared.member.local();
    assert_eq!((local.in_flight(), local.ledger().windows().len()), (2, 0));
    assert_ne!(shared.member.id(), ME);
    // A new member reports what it has in flight.
    assert_eq!(shared.member.report(at(11), 0, 0.0).reserved, 2);
}

#[test]
fn only_a_member_without_the_store_asks_after_a_suspension() {
    // The others still know the state of the key.
    let mut shared = Shared::new(900);
    shared.update(at(10), 20, 0);
    shared.member.resume();
    assert_eq!(shared.decide(at(10)), Decision::Send { probe: false });
    shared.member.update_failed(at(10), None);
    assert!(!shared.member.local().ledger().refusals().is_in_doubt());
    shared.member.resume();
    assert!(shared.member.local().ledger().refusals().is_in_doubt());
}

#[test]
fn a_member_without_the_store_knows_its_own_probe() {
    let mut shared = Shared::new(900);
    shared.update(at(10), 0, 0);
    shared.member.update_failed(at(10), None);
    assert!(!shared.member.is_probing(at(10)));
    let probe = shared.member.reserve(at(10), true, &Policy::default());
    assert!(shared.member.is_probing(at(10)));
    shared.member.release(probe);
    assert!(!shared.member.is_probing(at(10)));
}

#[test]
fn a_member_without_room_waits_for_the_minutes_reset_at_most() {
    let blocked = |record: &Record, since: LocalTime, now: LocalTime| {
        let mut member = Member::new(ME, at(0), service(0));
        member.wait_for_room(since, record.clone());
        member.blocked_by_members(now).map(|block| block.reason)
    };
    let minute = Shared::new(900).record;
    let reason = Some(BlockReason::Quota(Quota::Minute));
    assert_eq!(blocked(&minute, at(10), at(10)), reason);
    // The minute has passed.
    let before = at(60).moved(-1);
    assert_eq!(blocked(&minute, before, at(60)), Some(BlockReason::Unknown));
    let answer = Answer::at(at(0), service(0));
    let day = Window::open(reading(10_000, 900, 40_000).unwrap(), &answer, None);
    let day = Record::new(
        Ledger::with_window(at(0), service(0), day),
        Default::default(),
    );
    assert_eq!(blocked(&day, at(10), at(10)), Some(BlockReason::Unknown));
}

#[test]
fn a_member_without_room_keeps_what_it_has_learned() {
    let mut shared = Shared::new(950);
    shared.update(at(10), 1, 0);
    let record = shared.record.clone();
    shared.send(at(10), 1, 1);
    shared.member.wait_for_room(at(11), record);
    let windows = shared.member.local().ledger().windows();
    assert_eq!(windows[0].remaining(), 900);
}

#[test]
fn a_new_member_takes_over_a_record_that_it_cannot_update() {
    let mut member = Member::new(ME, at(0), service(0));
    // From then on it counts for itself.
    for (now, remaining) in [(10, 950), (11, 940)] {
        let record = Shared::new(remaining).record;
        member.update_failed(at(now), Some(record));
        let windows = member.local().ledger().windows();
        assert_eq!(windows[0].remaining(), 950, "{now}");
    }
}

#[test]
fn a_member_leaves_only_after_it_has_used_the_key_and_when_idle() {
    let mut unused = Shared::new(900);
    assert!(!unused.member.last_report(at(10), 0, 0.0).leaves);
    let mut used = Shared::new(900);
    used.update(at(10), 1, 0);
    used.send(at(10), 1, 1);
    assert!(used.member.clone().last_report(at(10), 0, 0.0).leaves);
    assert!(
        !used.member.clone().last_report(at(10), 1, 0.0).leaves,
        "a call waits"
    );
    let mut busy = Shared::new(900);
    busy.update(at(10), 2, 0);
    busy.send(at(10), 2, 1);
    let last = busy.member.last_report(at(10), 0, 0.0);
    assert!(!last.leaves, "one is in flight");
    assert_eq!(last.prefetch, 0, "it may be the last one");
}
