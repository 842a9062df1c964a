//! Each mechanism of the gate by itself: taken out, its test here fails.

use std::time::Duration;

use super::answer::{Answer, Fate, Rate};
use super::keeper::{Head, Keeper};
use super::own::{Open, Own};
use super::policy::Policy;
use super::state::{Now, State, Ticket};
use super::time::{Local, Time};
use super::verdict::{Block, Busy, Verdict};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600;

fn at(seconds: i64) -> Time {
    Time((1_800_000_000 + seconds) * SECOND)
}

fn verdict(state: &State, now: i64) -> Verdict {
    state.verdict(at(now), &Policy::default())
}

fn go(state: &mut State, now: i64) -> Ticket {
    match verdict(state, now) {
        Verdict::Go(pass) => state.grant(at(now), pass),
        held => panic!("{held:?}"),
    }
}

fn told(state: &mut State, ticket: Ticket, now: i64, fate: Fate, rate: Option<Rate>) {
    let answer = Answer { fate, rate, extra: Duration::from_secs(1_000) };
    let now = at(now);
    state.answered(ticket, &answer, Now { sent: now, earliest: now, written: now });
}

fn refused(state: &mut State, ticket: Ticket, now: i64, wait: u64) {
    let wait = Some(Duration::from_secs(wait));
    told(state, ticket, now, Fate::Refused { wait }, None);
}

fn rate(limit: u64, remaining: u64, reset: i64) -> Option<Rate> {
    Some(Rate { limit, remaining, reset: at(reset) })
}

fn until(state: &State, now: i64) -> Option<i64> {
    match verdict(state, now) {
        Verdict::Blocked(Block { until, .. }) => Some((until.0 - at(0).0) / SECOND),
        _ => None,
    }
}

#[test]
fn a_quota_that_is_not_reported_any_more_is_forgotten_after_its_reset() {
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::LetIn, rate(5, 0, 10));
    let asking = go(&mut state, 12);
    told(&mut state, asking, 12, Fate::LetIn, rate(300, 299, 60));
    let limits: Vec<_> = state.accounts().iter().map(|account| account.limit).collect();
    assert_eq!(limits, [300]);
}

#[test]
fn an_answer_may_raise_the_figure_only_where_no_other_own_request_overlapped_it() {
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::LetIn, rate(100, 50, 60));
    let alone = go(&mut state, 20);
    told(&mut state, alone, 20, Fate::LetIn, rate(100, 60, 60));
    assert_eq!(state.accounts()[0].remaining, 60);
    let (one, other) = (go(&mut state, 21), go(&mut state, 21));
    told(&mut state, other, 22, Fate::LetIn, rate(100, 50, 60));
    told(&mut state, one, 22, Fate::LetIn, rate(100, 55, 60));
    assert_eq!(state.accounts()[0].remaining, 50);
}

#[test]
fn a_shorter_wait_does_not_end_a_longer_one() {
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::LetIn, None);
    let (one, other) = (go(&mut state, 1), go(&mut state, 1));
    refused(&mut state, one, 1, 30);
    refused(&mut state, other, 1, 5);
    assert_eq!(until(&state, 7), Some(31));
}

#[test]
fn what_follows_a_refusal_waits_longer_and_what_was_under_way_with_it_does_not() {
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::LetIn, None);
    let (one, other) = (go(&mut state, 1), go(&mut state, 1));
    refused(&mut state, one, 1, 30);
    refused(&mut state, other, 1, 30);
    assert_eq!(until(&state, 1), Some(31));
    let asking = go(&mut state, 31);
    refused(&mut state, asking, 31, 30);
    assert_eq!(until(&state, 31), Some(31 + 30 + 1_000));
}

#[test]
fn a_used_up_quota_is_a_reason_also_while_own_requests_are_under_way() {
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::LetIn, rate(5, 4, 30));
    let (one, _other) = (go(&mut state, 1), go(&mut state, 1));
    told(&mut state, one, 1, Fate::LetIn, rate(5, 0, 30));
    assert!(until(&state, 1).is_some());
}

#[test]
fn own_requests_under_way_are_no_reason_to_fail_where_the_plan_is_known_either() {
    let policy = Policy { plan: Some((2, 9)), ..Policy::default() };
    let open = Open { in_flight: 2, ..Open::default() };
    assert_eq!(Own::default().used_up(at(0), &open, &policy), None);
    assert_eq!(Own::default().left(at(0), &open, &policy), 0);
}

#[test]
fn a_gate_that_is_switched_off_obeys_refusals_alone() {
    let off = Policy { gated: false, ..Policy::default() };
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::LetIn, rate(5, 0, 30));
    assert!(matches!(state.verdict(at(1), &off), Verdict::Go(_)));
    let Verdict::Go(pass) = state.verdict(at(1), &off) else { unreachable!() };
    let second = state.grant(at(1), pass);
    refused(&mut state, second, 1, 30);
    assert!(matches!(state.verdict(at(2), &off), Verdict::Blocked(_)));
}

#[test]
fn a_lease_that_is_over_counts_as_lost_and_so_does_one_from_a_wrong_clock() {
    let mut state = State::default();
    let _killed = go(&mut state, 0);
    state.expire(at(29));
    assert_eq!((state.in_flight(), state.unsettled()), (1, 0));
    state.expire(at(33));
    assert_eq!((state.in_flight(), state.unsettled()), (0, 1));
    let _by_a_wrong_clock = go(&mut state, HOUR);
    state.expire(at(34));
    assert_eq!((state.in_flight(), state.unsettled()), (0, 2));
}

#[test]
fn a_request_is_lost_only_once() {
    let mut state = State::default();
    let slow = go(&mut state, 0);
    state.expire(at(60));
    state.lost(slow);
    assert_eq!(state.unsettled(), 1);
}

#[test]
fn an_answer_to_a_key_that_is_not_accepted_tells_nothing_of_limits() {
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::Unrelated, rate(60, 60, 30));
    assert!(state.accounts().is_empty());
    let _asking = go(&mut state, 0);
    assert_eq!(verdict(&state, 0), Verdict::Busy(Busy::Probe));
}

#[test]
fn a_figure_of_a_window_that_is_over_opens_nothing() {
    let mut state = State::default();
    let slow = go(&mut state, 0);
    told(&mut state, slow, 20, Fate::LetIn, rate(60, 59, 10));
    assert!(state.accounts().is_empty());
}

#[test]
fn a_days_and_a_minutes_quota_of_the_same_limit_are_two() {
    let mut state = State::default();
    let first = go(&mut state, 0);
    told(&mut state, first, 0, Fate::LetIn, rate(1_000, 9, 12 * HOUR));
    let second = go(&mut state, 1);
    told(&mut state, second, 1, Fate::LetIn, rate(1_000, 999, 60));
    assert_eq!(state.accounts().len(), 2);
}

/// Sends one request at `now`; its answer comes half a second later, with what the clock shows.
fn ask(keeper: &mut Keeper, now: i64, date: Option<i64>, status: u16, rate: Option<Rate>) {
    let sent = Local(now * SECOND);
    let pass = match keeper.verdict(sent, &Policy::default()) {
        Verdict::Go(pass) => pass,
        held => panic!("{held:?}"),
    };
    let ticket = keeper.grant(sent, pass);
    let retry_after = (status == 429).then(|| Duration::from_secs(30));
    let head = Head { status, date: date.map(at), rate, retry_after };
    keeper.answered(ticket, sent, Local(sent.0 + SECOND / 2), &head, Duration::ZERO);
}

fn goes(keeper: &Keeper, now: i64) -> bool {
    matches!(keeper.verdict(Local(now * SECOND), &Policy::default()), Verdict::Go(_))
}

#[test]
fn a_window_that_the_service_set_its_clock_back_in_ends_when_it_was_to_end() {
    let mut keeper = Keeper::new(Local(0), at(0));
    ask(&mut keeper, 0, Some(0), 200, rate(60, 59, 60));
    ask(&mut keeper, 1, Some(1), 200, rate(60, 0, 60));
    assert!(!goes(&keeper, 58));
    ask(&mut keeper, 62, Some(62 - 2 * HOUR), 200, rate(60, 59, 120 - 2 * HOUR));
    assert!(goes(&keeper, 63), "the first answer opens the gate");
}

#[test]
fn a_refusal_ends_when_it_was_to_end_where_the_services_clock_is_set_back() {
    let mut keeper = Keeper::new(Local(0), at(0));
    ask(&mut keeper, 0, Some(0), 200, None);
    let pass = match keeper.verdict(Local(SECOND), &Policy::default()) {
        Verdict::Go(pass) => pass,
        held => panic!("{held:?}"),
    };
    let late = keeper.grant(Local(SECOND), pass);
    ask(&mut keeper, 1, Some(1), 429, None);
    let head = Head { status: 200, date: Some(at(2 - 2 * HOUR)), rate: None, retry_after: None };
    keeper.answered(late, Local(SECOND), Local(2 * SECOND), &head, Duration::ZERO);
    assert!(!goes(&keeper, 31) && goes(&keeper, 33));
}

#[test]
fn without_a_date_a_refusal_that_names_both_reset_and_wait_tells_the_time() {
    let mut keeper = Keeper::new(Local(0), at(-HOUR));
    ask(&mut keeper, 0, None, 429, rate(60, 0, 30));
    let error = keeper.service_time(Local(SECOND / 2)).0 - at(0).0;
    assert!(error.abs() <= SECOND, "{error}");
}
