//! The whole of what is known of a key's limits, and whether a request may go.

use std::time::Duration;

use super::account::{Account, Horizon, Window};
use super::answer::{Answer, Fate, Rate};
use super::lost::Lost;
use super::own::Own;
use super::policy::Policy;
use super::time::Time;
use crate::error::Quota;

/// How long a refusal that names no time holds requests back: quotas are counted by the minute
/// (specification, section 8).
const UNNAMED_WAIT: Duration = Duration::from_secs(60);
/// A refusal never lets the next request go at once, whatever it says.
const LEAST_WAIT: Duration = Duration::from_secs(1);
/// How much later than announced a window may open, and by which step that is learned.
const GUARD_STEP: Duration = Duration::from_secs(1);
const MOST_GUARD: Duration = Duration::from_secs(2);
/// Below this own part of what is used, strangers share the key.
const ALONE: f64 = 0.95;
/// How many requests may be under way towards a quota that is not shown: all of them are refused
/// together, and all but the first count as repeats towards a ban.
const MOST_UNSEEN: u32 = 2;

/// A stretch of time in which nothing may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) until: Time,
    /// The end that the service named: before `until`, where that is more careful.
    pub(crate) named: Time,
    pub(crate) quota: Quota,
}

/// What a request may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    /// Nothing may go before this moment.
    Blocked(Block),
    /// It may go after this moment, for no other reason than to spread requests.
    Paced(Time),
    /// Own requests that are under way come first.
    Busy,
}

/// The right to send one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The how-manieth request this is.
    number: u64,
    /// Whether no other own request was under way when it was granted.
    alone: bool,
    probe: bool,
}

/// When an answer came, on the service's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The least that the clock may show.
    pub(crate) earliest: Time,
    /// When the service says that it wrote the answer.
    pub(crate) written: Time,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    accounts: Vec<Account>,
    /// Whether an answer has told all that this service tells.
    known: bool,
    block: Option<Block>,
    /// How many requests had been sent when the last refusal came.
    refused_at: u64,
    /// Whether a refusal came that no figure had foretold: there is a quota that is not shown.
    surprised: bool,
    pub(crate) refusals_in_a_row: u32,
    pub(crate) refusals: u64,
    /// Requests granted in all.
    sent: u64,
    pub(crate) in_flight: u32,
    lost: Lost,
    own: Own,
    /// The request whose answer is to tell what may go, while it is under way.
    probe: Option<u64>,
    guard: Duration,
    /// The own part of what was used in the last window.
    own_share: Option<f64>,
    last_grant: Option<Time>,
}

impl State {
    /// Judges whether a request may go at `now`, the earliest time that the service's clock may
    /// show.
    pub(crate) fn verdict(&self, now: Time, policy: &Policy) -> Verdict {
        let reserved = self.reserved();
        if let Some(block) = self.blocked(now, reserved, policy) {
            return Verdict::Blocked(block);
        }
        if !policy.gated {
            return Verdict::Go;
        }
        if self.must_probe(now, reserved, policy) {
            let free = self.probe.is_none() && (self.known || self.in_flight == 0);
            return if free { Verdict::Go } else { Verdict::Busy };
        }
        let mut left = self.own.left(now, policy).saturating_sub(reserved);
        let mut limit = u64::MAX;
        let mut paced = None;
        for account in &self.accounts {
            let here = account.left(reserved, policy);
            if here < left && !account.passed(now, self.guard()) {
                paced = self.paced(account, here, policy);
            }
            left = left.min(here);
            limit = limit.min(account.limit);
        }
        if left <= self.margin() || self.in_flight >= self.most_in_flight(left, limit, policy) {
            return Verdict::Busy;
        }
        match paced {
            Some(at) if at > now => Verdict::Paced(at),
            _ => Verdict::Go,
        }
    }

    /// Grants a request; `verdict` has said that it may go.
    pub(crate) fn grant(&mut self, now: Time, policy: &Policy) -> Ticket {
        let reserved = self.reserved();
        let probe = self.must_probe(now, reserved, policy);
        self.sent += 1;
        self.in_flight += 1;
        self.last_grant = Some(now);
        if probe {
            self.probe = Some(self.sent);
        }
        Ticket { number: self.sent, alone: reserved == 0, probe }
    }

    /// Takes back a grant that was not used.
    pub(crate) fn unused(&mut self, ticket: Ticket) {
        self.end(ticket);
    }

    /// Takes in that a request ended without an answer that tells anything.
    pub(crate) fn lost(&mut self, ticket: Ticket) {
        self.end(ticket);
        self.lost.add(self.sent);
    }

    /// Takes in an answer; returns the block that it asks for.
    pub(crate) fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Now) -> Option<Block> {
        self.end(ticket);
        let settled = self.lost.settle(ticket.number);
        // They may be inside the figure: what is missing from it is not strangers' doing.
        self.accounts.iter_mut().for_each(|account| account.count_own(settled));
        let refused = matches!(answer.fate, Fate::Refused { .. });
        self.own.count(settled + u32::from(!refused), now.earliest);
        if answer.fate == Fate::Unrelated {
            return None;
        }
        let current = answer.rate.filter(|rate| !is_over(rate, now.earliest));
        self.learn(ticket, answer.fate, current, now.earliest);
        self.known |= current.is_some() || answer.rate.is_none();
        match answer.fate {
            Fate::Refused { wait } => {
                let block = self.refusal(ticket, answer, wait, now);
                self.block = self.block.filter(|known| known.until > block.until).or(Some(block));
                Some(block)
            }
            _ => {
                if ticket.number > self.refused_at {
                    self.block = None;
                    self.refusals_in_a_row = 0;
                }
                None
            }
        }
    }

    /// Returns what holds all requests back, whoever asks: for people to see.
    pub(crate) fn blocked_at(&self, now: Time, policy: &Policy) -> Option<Block> {
        self.blocked(now, self.reserved(), policy)
    }

    /// Takes in that the refusal was a ban, which only the body of the answer says.
    pub(crate) fn banned(&mut self) {
        if let Some(block) = &mut self.block {
            block.quota = Quota::Banned;
        }
    }

    /// Returns whether a refusal of this request would follow another, and is not of the same burst.
    pub(crate) fn follows_refusal(&self, ticket: Ticket) -> bool {
        self.refusals_in_a_row > 0 && ticket.number > self.refused_at
    }

    /// Returns whether the last word of the service was no refusal.
    pub(crate) fn is_in_order(&self) -> bool {
        self.refusals_in_a_row == 0
    }

    pub(crate) fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Returns how many requests are under way or of unknown fate.
    pub(crate) fn reserved(&self) -> u64 {
        u64::from(self.in_flight) + u64::from(self.lost.total())
    }

    fn end(&mut self, ticket: Ticket) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.probe == Some(ticket.number) {
            self.probe = None;
        }
    }

    /// Returns the last to end of all that holds requests back for real: a refusal, or a quota of
    /// which nothing is left. Own requests under way are no such reason.
    fn blocked(&self, now: Time, reserved: u64, policy: &Policy) -> Option<Block> {
        let refusal = self.block.filter(|block| block.until > now);
        let stuck = self.in_flight == 0;
        let accounts = if policy.gated { self.accounts.as_slice() } else { &[] };
        let spent = accounts.iter().filter(|account| {
            let none_left = account.is_spent(policy)
                || stuck && account.left(reserved, policy) <= self.margin();
            none_left && !account.passed(now, self.guard())
        });
        let spent = spent.map(|account| Block {
            until: account.opens(self.guard()),
            named: account.reset,
            quota: account.horizon.into(),
        });
        let plan = self
            .own
            .used_up(now, if stuck { reserved } else { 0 }, policy)
            .filter(|_| policy.gated);
        refusal.into_iter().chain(spent).chain(plan).max_by_key(|block| block.until)
    }

    /// Returns whether one request has to go ahead and tell: where nothing is known, after a
    /// refusal, and where a window that was used up has ended.
    fn must_probe(&self, now: Time, reserved: u64, policy: &Policy) -> bool {
        !self.known
            || self.block.is_some()
            || self.accounts.iter().any(|account| {
                account.passed(now, self.guard()) && account.left(reserved, policy) <= self.margin()
            })
    }

    fn most_in_flight(&self, left: u64, limit: u64, policy: &Policy) -> u32 {
        let most = policy.in_flight_limit(limit);
        let most = if self.surprised { most.min(MOST_UNSEEN) } else { most };
        match self.share() {
            // Requests under way are seen by strangers a round trip late: the own part of what
            // would be sent alone, and less as the end comes near.
            Some(share) => part(u64::from(most), share).min(part(left, share / 2.0)).max(1),
            None => most,
        }
    }

    /// Returns what is left to strangers near the end of a window: each may have one under way.
    fn margin(&self) -> u64 {
        match self.share() {
            Some(share) => u64::from(part(1, 1.0 / share - 0.5)),
            None => 0,
        }
    }

    /// Returns how much later than announced a window is taken to open. A stranger who was refused
    /// may have been told to wait for whole seconds, rounded up: who sends before those are over is
    /// late for the whole key, and is counted towards its ban.
    fn guard(&self) -> Duration {
        if self.share().is_some() { self.guard.max(GUARD_STEP) } else { self.guard }
    }

    /// Returns the own part of what is used, where strangers share the key.
    fn share(&self) -> Option<f64> {
        self.own_share.filter(|share| *share < ALONE)
    }

    fn paced(&self, account: &Account, left: u64, policy: &Policy) -> Option<Time> {
        if !policy.pacing {
            return None;
        }
        let last = self.last_grant?;
        let window = account.opens(self.guard()).since(last);
        let gap = window / u32::try_from(left.max(1)).unwrap_or(u32::MAX);
        Some(last.after(gap))
    }

    /// Takes in the figure of an answer.
    fn learn(&mut self, ticket: Ticket, fate: Fate, rate: Option<Rate>, now: Time) {
        let exact = ticket.alone && ticket.number == self.sent && self.lost.total() == 0;
        let let_in = fate == Fate::LetIn;
        let reserved = self.reserved();
        let mut reported = false;
        let guard = self.guard();
        let mut opened_early = false;
        let mut own_share = self.own_share;
        self.accounts.retain_mut(|account| {
            let Some(rate) = rate.filter(|rate| account.is(rate, now)) else {
                // Not spoken of: past its reset it is forgotten, before it is counted down.
                if let_in {
                    account.count_unreported();
                    account.count_own(1);
                }
                return rate.is_none() || !account.passed(now, guard);
            };
            reported = true;
            match account.window(&rate) {
                Window::Earlier => {}
                Window::Same => {
                    opened_early |=
                        ticket.probe && rate.remaining == 0 && account.passed(now, guard);
                    account.lower(&rate, exact);
                    if let_in {
                        account.count_own(1);
                    }
                }
                Window::Later => {
                    own_share = account.own_share(reserved).or(own_share);
                    *account = account.reopen(rate, reserved, own_share);
                }
            }
            own_share = account.own_share(reserved).or(own_share);
            true
        });
        self.own_share = own_share;
        if opened_early {
            self.guard = (self.guard + GUARD_STEP).min(MOST_GUARD);
        }
        if let Some(rate) = rate.filter(|_| !reported) {
            let account = Account::open(rate, reserved, own_share, now);
            self.own_share = account.own_share(reserved).or(own_share);
            self.accounts.push(account);
        }
    }

    fn refusal(
        &mut self,
        ticket: Ticket,
        answer: &Answer,
        wait: Option<Duration>,
        now: Now,
    ) -> Block {
        self.refusals += 1;
        // Refusals of requests that were under way together are one.
        if ticket.number > self.refused_at {
            self.refusals_in_a_row += 1;
        }
        self.refused_at = self.sent;
        let spent = answer.rate.filter(|rate| rate.remaining == 0 && !is_over(rate, now.earliest));
        self.surprised |= spent.is_none();
        let until_reset = spent.map(|rate| rate.reset.since(now.earliest));
        let asked = wait.or(until_reset).unwrap_or(UNNAMED_WAIT).max(LEAST_WAIT);
        let extra = if self.refusals_in_a_row > 1 { answer.extra } else { Duration::ZERO };
        Block {
            until: now.earliest.after(asked).after(extra),
            named: now.written.after(asked),
            quota: which(asked, until_reset),
        }
    }
}

/// Tells which limit a refusal is about: a quota by its horizon, and only
/// where the headers describe a quota that is used up and whose reset is the wait's end.
fn which(wait: Duration, until_reset: Option<Duration>) -> Quota {
    match until_reset {
        Some(left) if left.abs_diff(wait) > Duration::from_secs(2) => Quota::Unknown,
        Some(left) if left <= Duration::from_secs(90) => Quota::Minute,
        Some(_) => Quota::Day,
        None => Quota::Unknown,
    }
}

/// Returns whether a figure is of a window that has ended.
fn is_over(rate: &Rate, now: Time) -> bool {
    rate.reset < now
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a part of a small number: rounding down is meant, and `as` saturates"
)]
fn part(of: u64, share: f64) -> u32 {
    (of as f64 * share) as u32
}

impl From<Horizon> for Quota {
    fn from(horizon: Horizon) -> Self {
        match horizon {
            Horizon::Minute => Self::Minute,
            Horizon::Day => Self::Day,
        }
    }
}
