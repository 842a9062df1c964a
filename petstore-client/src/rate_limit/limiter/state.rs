//! What a limiter knows between two exchanges: who waits, what is in flight, and what the store does not
//! know yet.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(shuttle))]
pub(super) use std::sync::{Mutex, MutexGuard};

// Under the model checker, each lock is a point where another task may run.
#[cfg(shuttle)]
pub(super) use shuttle::sync::{Mutex, MutexGuard};

use tokio::sync::oneshot;

use super::alone::{Alone, STORE_TIMEOUT};
use super::outcomes::Outcomes;
use super::permits::Permits;
use super::queue::{Place, Queue};
use super::waits::{HEARTBEAT, LastPause, Wait};
use crate::clock;
use crate::rate_limit::policy::Policy;
use crate::rate_limit::quota::instant::{LedgerTime, SECOND};
use crate::rate_limit::quota::reading::ResponseHead;
use crate::rate_limit::quota::{Answer, Ledger, Report};
use crate::rate_limit::view::WaitReason;

/// How long an outcome waits for others, which the same exchange may carry.
const GATHERING: i64 = SECOND / 100;
/// After this, an exchange counts as abandoned: nobody runs its runtime.
const MAX_EXCHANGE: i64 = STORE_TIMEOUT + SECOND;

#[derive(Debug)]
pub(super) struct State {
    /// Identifies this limiter in the ledger.
    holder: u64,
    /// The process that it belongs to. The child of a fork is another holder.
    process: u32,
    policy: Policy,
    is_local: bool,
    queue: Queue,
    permits: Permits,
    /// What the store does not know yet.
    outcomes: Outcomes,
    was_banned: bool,
    /// The end of the block that was last warned of.
    warned_until: Option<LedgerTime>,
    /// Since when the store does not know everything.
    changed_at: Option<LedgerTime>,
    exchanged_at: Option<LedgerTime>,
    /// Whether an exchange is to be made at once.
    is_asked: bool,
    /// The number of exchanges with the store that have begun, and when the one in progress did.
    begun: u64,
    exchanging_since: Option<LedgerTime>,
    /// What the calls in the queue wait for, if the last answer said it to all of them.
    pause: Option<LastPause>,
    /// Set while the store is away.
    alone: Option<Alone>,
    /// Why the store is away.
    problem: Option<String>,
    /// The number of the last time that the store went away or came; 0 before its first answer.
    store_change: u64,
}

impl State {
    pub(super) fn new(policy: Policy, is_local: bool) -> Self {
        let process = std::process::id();
        Self {
            holder: new_holder(process),
            process,
            policy,
            is_local,
            queue: Queue::default(),
            permits: Permits::default(),
            outcomes: Outcomes::default(),
            was_banned: false,
            warned_until: None,
            changed_at: None,
            exchanged_at: None,
            is_asked: false,
            begun: 0,
            exchanging_since: None,
            pause: None,
            alone: None,
            problem: None,
            store_change: 0,
        }
    }

    /// Begins anew in the child of a fork: the parent goes on with its requests.
    pub(super) fn notice_fork(&mut self) -> bool {
        let has_forked = !self.is_local && std::process::id() != self.process;
        if has_forked {
            *self = Self::new(self.policy, self.is_local);
        }
        has_forked
    }
}

/// What has changed.
impl State {
    /// Asks for an exchange at once.
    pub(super) fn ask(&mut self) {
        self.is_asked = true;
    }

    /// Records that the last 429 was a ban.
    pub(super) fn record_ban(&mut self, now: LedgerTime) {
        self.was_banned = true;
        self.change(now);
    }

    /// Returns whether to warn of a block with this end. A `Retry-After` has whole seconds.
    pub(super) fn must_warn(&mut self, ends: LedgerTime, now: LedgerTime) -> bool {
        if let Some(known) = self.warned_until
            && now < known
            && ends.since(known) <= SECOND
        {
            return false;
        }
        self.warned_until = Some(ends);
        true
    }

    /// Puts a call into the queue. Its grant, the number of a permit, arrives in the returned channel.
    pub(super) fn join(&mut self, place: Place) -> oneshot::Receiver<u64> {
        if place.is_forced() {
            // What the other calls wait for does not hold it back.
            self.pause = None;
        }
        self.queue.join(place)
    }

    /// Removes a call from the queue, if it still waits.
    pub(super) fn leave(&mut self, place: Place) {
        self.queue.leave(place);
    }

    /// Records that a request is sent now, and lasts for `lease` at most. Returns false if the permit has lapsed.
    pub(super) fn send(&mut self, permit: u64, lease: i64, now: LedgerTime) -> bool {
        self.permits.send(permit, lease, now)
    }

    /// Takes a permit back whose request was not sent.
    pub(super) fn give_back(&mut self, permit: u64, now: LedgerTime) {
        self.permits.give_back(permit);
        self.change(now);
    }

    /// Records that a request has ended.
    pub(super) fn end(&mut self, permit: u64, head: Option<ResponseHead>, now: LedgerTime) {
        if let Some(ended) = self.permits.end(permit, head, now) {
            self.outcomes.add(ended);
        }
        self.change(now);
    }

    /// Ends the permits of calls that are not polled.
    pub(super) fn expire(&mut self, now: LedgerTime) {
        let in_flight = self.permits.count();
        let lost = self.permits.expire(now);
        if self.permits.count() < in_flight {
            for ended in lost {
                self.outcomes.add(ended);
            }
            self.change(now);
        }
    }

    fn change(&mut self, now: LedgerTime) {
        self.changed_at.get_or_insert(now);
    }
}

/// Exchanges.
impl State {
    /// Begins an exchange with the store. While the store is away, calls meanwhile get their permits without it.
    pub(super) fn begin_exchange(&mut self, now: LedgerTime) -> (u64, Report) {
        self.begun += 1;
        let report = self.report_from(self.outcomes.first(), now);
        if !self.is_alone() {
            self.exchanging_since = Some(now);
            self.note_report(now);
        }
        self.was_banned = false;
        (self.begun, report)
    }

    /// Notes that the ledger by which calls get their permits knows everything.
    fn note_report(&mut self, now: LedgerTime) {
        self.changed_at = None;
        self.exchanged_at = Some(now);
        self.is_asked = false;
    }

    /// Returns whether an exchange is in progress. One that takes too long is abandoned: nobody may run its
    /// runtime.
    pub(super) fn is_exchanging(&self, now: LedgerTime) -> bool {
        self.exchanging_since
            .is_some_and(|since| now.since(since) <= MAX_EXCHANGE)
    }

    /// Ends an exchange with the store. Returns false if it was abandoned, and another one has begun.
    fn end_exchange(&mut self, number: u64) -> bool {
        let is_last = number == self.begun;
        if is_last {
            self.exchanging_since = None;
        }
        is_last
    }

    /// Ends an exchange that has no result.
    pub(super) fn cancel(&mut self, number: u64, report: &Report, now: LedgerTime) {
        self.end_exchange(number);
        self.was_banned |= report.was_banned;
        self.change(now);
    }

    /// Returns when the next exchange is due.
    pub(super) fn due(&self, now: LedgerTime) -> Option<LedgerTime> {
        if self.is_asked {
            return Some(now);
        }
        let waits = self.wanted() > 0;
        let gathering = if waits || self.is_local { 0 } else { GATHERING };
        let change = self.changed_at.map(|at| at.plus(gathering));
        let wait = waits.then(|| self.pause.map_or(now, |pause| pause.ask_again()));
        let is_active = waits || self.permits.count() > 0;
        let heartbeat = match self.exchanged_at {
            Some(at) if is_active && !self.is_local => Some(at.plus(HEARTBEAT)),
            _ => None,
        };
        [change, wait, heartbeat].into_iter().flatten().min()
    }

    /// Returns whether as many requests are in flight as `max_in_flight` allows.
    pub(super) fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Returns how many waiting calls `max_in_flight` lets go.
    pub(super) fn wanted(&self) -> u64 {
        self.room().min(self.queue.len() as u64)
    }

    fn room(&self) -> u64 {
        let most = u64::from(self.policy.max_in_flight());
        most.saturating_sub(self.permits.count())
    }

    /// Returns a report of the outcomes from a number on.
    fn report_from(&self, first_outcome: u64, now: LedgerTime) -> Report {
        let waiting = self.wanted();
        Report {
            first_outcome: first_outcome.max(self.outcomes.first()),
            outcomes: self.outcomes.from(first_outcome, now),
            waiting,
            forces: waiting > 0 && self.queue.is_forced(),
            was_banned: self.was_banned,
            ..self.figures()
        }
    }

    /// Returns a report of all that the store does not know yet, for display.
    pub(super) fn pending(&self, now: LedgerTime) -> Report {
        Report {
            outcomes: self.outcomes.from(self.outcomes.first(), now),
            was_banned: self.was_banned,
            is_alone: self.is_alone(),
            ..self.figures()
        }
    }

    /// Returns a report without outcomes.
    pub(super) fn figures(&self) -> Report {
        Report {
            holder: self.holder,
            first_outcome: self.outcomes.first(),
            outcomes: Vec::new(),
            in_flight: self.permits.count(),
            has_probe: self.permits.has_probe(),
            waiting: 0,
            forces: false,
            was_banned: false,
            is_alone: false,
            leaves: false,
            forgets: false,
            terms: self.policy.terms(),
        }
    }

    /// Hands out what was granted. Returns whether a block begins.
    fn grant(&mut self, report: &Report, answer: &Answer, now: LedgerTime) -> bool {
        // What a call has forced that was dropped meanwhile is for nobody else.
        let is_for_nobody = report.forces && answer.is_probe && !self.queue.is_forced();
        for _ in 0..answer.granted {
            let permit = self.permits.grant(answer.is_probe, now);
            if is_for_nobody || !self.queue.grant(permit) {
                self.permits.give_back(permit);
                self.change(now);
            }
        }
        // The answer says nothing to calls that came after the report.
        let asked = report.waiting.saturating_sub(answer.granted);
        let is_new = self.wanted() > asked || (self.queue.is_forced() && !report.forces);
        let is_for_all = !self.queue.is_empty() && !is_new;
        let was_block = self.is_blocked();
        self.pause = is_for_all.then(|| LastPause::new(answer.pause, now));
        self.is_blocked() && !was_block
    }

    fn is_blocked(&self) -> bool {
        self.pause.is_some_and(|pause| pause.is_block())
    }

    /// Takes over the answer of the store to a report. What an abandoned exchange was granted is not used. Returns
    /// whether a block begins.
    pub(super) fn succeed(
        &mut self,
        number: u64,
        report: &Report,
        answer: &Answer,
        now: LedgerTime,
    ) -> bool {
        let is_last = self.end_exchange(number);
        let known = report.first_outcome + report.outcomes.len() as u64;
        self.outcomes.forget_before(known);
        if !is_last {
            self.change(now);
            return false;
        }
        let was_alone = self.alone.take().is_some();
        if was_alone || self.store_change == 0 {
            self.problem = None;
            self.store_change = next_store_change();
        }
        self.grant(report, answer, now)
    }

    /// Goes on without the store. `last_seen` is the ledger when the store was last reached.
    pub(super) fn fail(
        &mut self,
        number: u64,
        report: &Report,
        problem: String,
        now: LedgerTime,
        last_seen: impl FnOnce() -> (Ledger, LedgerTime),
    ) {
        self.was_banned |= report.was_banned;
        if !self.end_exchange(number) {
            return;
        }
        match &mut self.alone {
            Some(alone) => alone.failed(now),
            None => {
                self.alone = Some(Alone::new(last_seen(), now, self.outcomes.first()));
                self.store_change = next_store_change();
                self.pause = None;
                self.change(now);
            }
        }
        self.problem = Some(problem);
    }

    /// Makes the exchange that is due with the ledger of a process that is alone. Returns whether a block begins, or
    /// `None` if the store is there.
    pub(super) fn exchange_alone(&mut self, now: LedgerTime) -> Option<bool> {
        let mut alone = self.alone.take()?;
        let report = Report {
            is_alone: true,
            ..self.report_from(alone.next_outcome(), now)
        };
        self.note_report(now);
        let answer = alone.exchange(&report, now);
        self.alone = Some(alone);
        Some(self.grant(&report, &answer, now))
    }

    /// Returns whether to try the store again now.
    pub(super) fn must_retry(&mut self, now: LedgerTime) -> bool {
        let alone = self.alone.as_mut();
        alone.is_some_and(|alone| alone.must_retry(now))
    }

    pub(super) fn is_alone(&self) -> bool {
        self.alone.is_some()
    }
}

/// What is known.
impl State {
    /// Returns what a call that waits now waits for, if the store has been asked.
    pub(super) fn wait(&self, now: LedgerTime) -> Option<Wait> {
        if !self.queue.is_empty() && self.is_full() {
            return Some(Wait {
                reason: WaitReason::Concurrency,
                blocked: None,
            });
        }
        let pause = self.pause?;
        if pause.ask_again() <= now && self.is_exchanging(now) {
            return None;
        }
        let mut wait = pause.wait(now);
        if self.is_local && wait.reason == WaitReason::OtherProcesses {
            // They are other clients of this process, with settings of their own.
            wait.reason = WaitReason::Reserved;
        }
        Some(wait)
    }

    /// Returns whether a call is the first in the queue.
    pub(super) fn is_first(&self, place: Place) -> bool {
        self.queue.is_first(place)
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.permits.count()
    }

    /// Returns the ledger of a process that is alone, and the store's time.
    pub(super) fn last_seen_alone(&self, now: LedgerTime) -> Option<(Ledger, LedgerTime)> {
        self.alone.as_ref().map(|alone| alone.last_seen(now))
    }

    pub(super) fn has_exchanged(&self) -> bool {
        self.exchanged_at.is_some()
    }

    pub(super) fn problem(&self) -> Option<String> {
        self.problem.clone()
    }

    pub(super) fn store_change(&self) -> u64 {
        self.store_change
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Numbers the changes of all limiters: a client has one limiter for each key, and notices which change was last.
fn next_store_change() -> u64 {
    static CHANGES: AtomicU64 = AtomicU64::new(0);
    CHANGES.fetch_add(1, Ordering::Relaxed) + 1
}

/// Returns a random id. It includes that of the process, because the child of a fork repeats its parent's random
/// numbers.
fn new_holder(process: u32) -> u64 {
    let since = clock::wall().duration_since(std::time::UNIX_EPOCH);
    RandomState::new().hash_one((process, since.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_one_warning_and_a_longer_one_another() {
        let mut state = State::new(Policy::default(), true);
        for (now, ends, expected) in [
            (0, 60, true),
            (1, 61, false),
            (2, 30, false),
            (3, 90, true),
            (89, 90, false),
            (90, 91, true),
        ] {
            let [ends, now] = [ends, now].map(|seconds| LedgerTime(seconds * SECOND));
            assert_eq!(state.must_warn(ends, now), expected, "{now:?}, {ends:?}");
        }
    }

    #[test]
    fn the_child_of_a_fork_is_another_holder() {
        let now = LedgerTime(0);
        let mut state = State::new(Policy::default(), false);
        let permit = state.permits.grant(true, now);
        assert!(!state.notice_fork());
        let (holder, _) = (state.holder, state.begin_exchange(now));
        state.process += 1;
        assert!(state.notice_fork());
        assert_ne!(state.holder, holder);
        assert!(!state.is_exchanging(now) && !state.permits.has_probe());
        assert_ne!(state.permits.grant(false, now), permit);
    }
}
