//! The whole of what is known of a key's limits, and whether a request may go.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::{Account, Horizon, SAME_WINDOW, Window};
use super::answer::{Answer, Fate, Rate};
use super::lost::Lost;
use super::own::Own;
use super::time::Time;
use super::verdict::{Block, GUARD_STEP, Pass};
use crate::error::Quota;

/// How long a refusal that names no time holds requests back: quotas are counted by the minute
/// (specification, section 8).
const UNNAMED_WAIT: Duration = Duration::from_secs(60);
/// A refusal never lets the next request go at once, whatever it says.
const LEAST_WAIT: Duration = Duration::from_secs(1);
/// The most by which a window may open later than announced.
const MOST_GUARD: Duration = Duration::from_secs(2);

/// No request lasts longer than this, whatever its time limit.
const LONGEST_LEASE: Duration = Duration::from_secs(600);

/// The right to send one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The how-manieth request this is.
    number: u64,
    /// Whether no other own request was under way when it was granted.
    alone: bool,
    probe: bool,
}

/// A request under way. In a process of its own it ends when the process says so; other processes
/// wait for it no longer than it may last.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Lease {
    number: u64,
    at: Time,
    until: Time,
}

/// When an answer came, on the service's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The least that the clock may have shown when the request was sent.
    pub(crate) sent: Time,
    /// The least that the clock may show.
    pub(crate) earliest: Time,
    /// When the service says that it wrote the answer.
    pub(crate) written: Time,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// By how much the service's clock was set in all, in microseconds.
    pub(super) set_by: i64,
    pub(super) accounts: Vec<Account>,
    /// Whether an answer has told all that this service tells.
    pub(super) known: bool,
    pub(super) block: Option<Block>,
    /// How many requests had been sent when the last refusal came.
    refused_at: u64,
    /// Whether a refusal came that no figure had foretold: there is a quota that is not shown.
    pub(super) surprised: bool,
    pub(crate) refusals_in_a_row: u32,
    pub(crate) refusals: u64,
    /// Requests granted in all.
    sent: u64,
    /// Requests under way.
    leases: Vec<Lease>,
    pub(super) lost: Lost,
    pub(super) own: Own,
    /// The request whose answer is to tell what may go, while it is under way.
    pub(super) probe: Option<u64>,
    pub(super) guard: Duration,
    /// The own part of what was used in the last window.
    pub(super) own_share: Option<f64>,
    /// Whether there may be others whom no figure shows yet.
    #[serde(skip)]
    pub(super) suspicious: bool,
    pub(super) last_grant: Option<Time>,
}

impl State {
    /// Grants a request that the verdict has let pass.
    pub(crate) fn grant(&mut self, now: Time, pass: Pass) -> Ticket {
        let alone = self.reserved() == 0;
        self.sent += 1;
        self.leases.push(Lease { number: self.sent, at: now, until: now.after(pass.lease) });
        self.last_grant = Some(now);
        if pass.probe {
            self.probe.get_or_insert(self.sent);
        }
        Ticket { number: self.sent, alone, probe: pass.probe }
    }

    /// Takes in that the service's clock is ahead of what was thought, by so many microseconds.
    /// Where it was set back, no window and no refusal lasts longer for that than was promised.
    pub(crate) fn move_by(&mut self, by: i64) {
        if by < -SAME_WINDOW {
            self.accounts.iter_mut().for_each(|account| account.reset = account.reset.moved(by));
            if let Some(block) = &mut self.block {
                (block.until, block.named) = (block.until.moved(by), block.named.moved(by));
            }
        }
        self.last_grant = self.last_grant.map(|last| last.moved(by));
        self.lost.move_by(by);
        for lease in &mut self.leases {
            (lease.at, lease.until) = (lease.at.moved(by), lease.until.moved(by));
        }
    }

    /// Takes back a grant that was not used.
    pub(crate) fn unused(&mut self, ticket: Ticket) {
        self.end(ticket);
    }

    /// Takes in that a request ended without an answer that tells anything.
    pub(crate) fn lost(&mut self, ticket: Ticket) {
        // Without a lease it has been given up already.
        if let Some(lease) = self.end(ticket) {
            self.lost.add(self.sent, lease.at);
        }
    }

    /// Takes in an answer; returns the block that it asks for.
    pub(crate) fn answered(&mut self, ticket: Ticket, answer: &Answer, now: Now) -> Option<Block> {
        self.end(ticket);
        let settled = self.lost.settle(ticket.number, now.sent);
        // They may be inside the figure: what is missing from it is not strangers' doing.
        self.accounts.iter_mut().for_each(|account| account.count_own(settled));
        let refused = matches!(answer.fate, Fate::Refused { .. });
        if let Some(last) = self.lost.last().filter(|_| settled > 0) {
            self.own.count_lost(settled, last);
        }
        self.own.count(u32::from(!refused), now.earliest);
        if answer.fate == Fate::Unrelated {
            return None;
        }
        if ticket.probe && answer.rate.is_some_and(|rate| self.opened_early(&rate, now.earliest)) {
            self.guard = (self.guard + GUARD_STEP).min(MOST_GUARD);
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
        u64::from(self.in_flight()) + u64::from(self.lost.total())
    }

    /// Returns how many requests are under way.
    pub(crate) fn in_flight(&self) -> u32 {
        u32::try_from(self.leases.len()).unwrap_or(u32::MAX)
    }

    /// Gives up requests whose process has not said in time what came of them.
    pub(crate) fn expire(&mut self, now: Time) {
        let Self { leases, lost, sent, .. } = self;
        leases.retain(|lease| {
            // A lease that ends in the far future was given by a clock that was wrong.
            let over = lease.until <= now || lease.until > now.after(LONGEST_LEASE);
            if over {
                lost.add(*sent, lease.at);
            }
            !over
        });
        self.probe = self.probe.filter(|probe| leases.iter().any(|lease| lease.number == *probe));
    }

    /// Takes in that others may use the key whom this process cannot see.
    pub(crate) fn suspect_strangers(&mut self) {
        self.suspicious = true;
    }

    /// Returns how many requests are of unknown fate.
    pub(crate) fn unsettled(&self) -> u32 {
        self.lost.total()
    }

    fn end(&mut self, ticket: Ticket) -> Option<Lease> {
        if self.probe == Some(ticket.number) {
            self.probe = None;
        }
        let place = self.leases.iter().position(|lease| lease.number == ticket.number)?;
        Some(self.leases.swap_remove(place))
    }

    /// Returns whether an answer still speaks of a used-up window that was taken to have ended: the
    /// service rounds its reset down.
    fn opened_early(&self, rate: &Rate, now: Time) -> bool {
        rate.remaining == 0
            && self.accounts.iter().any(|account| {
                account.limit == rate.limit
                    && account.window(rate) == Window::Same
                    && account.passed(now, self.guard())
            })
    }

    /// Takes in the figure of an answer.
    fn learn(&mut self, ticket: Ticket, fate: Fate, rate: Option<Rate>, now: Time) {
        let exact = ticket.alone && ticket.number == self.sent && self.lost.total() == 0;
        let let_in = fate == Fate::LetIn;
        let (reserved, sent) = (self.reserved(), self.sent);
        let mut reported = false;
        let guard = self.guard();
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
                Window::Earlier if !account.passed(now, guard) => {
                    if account.knew_before(ticket.number) {
                        account.set_back(rate, sent);
                    }
                }
                Window::Same => {
                    account.lower(&rate, exact);
                    if let_in {
                        account.count_own(1);
                    }
                }
                Window::Later | Window::Earlier => {
                    own_share = account.own_share(reserved).or(own_share);
                    *account = account.reopen(rate, (reserved, sent), own_share);
                }
            }
            own_share = account.own_share(reserved).or(own_share);
            true
        });
        self.own_share = own_share;
        if let Some(rate) = rate.filter(|_| !reported) {
            let account = Account::open(rate, (reserved, sent), own_share, now);
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

impl From<Horizon> for Quota {
    fn from(horizon: Horizon) -> Self {
        match horizon {
            Horizon::Minute => Self::Minute,
            Horizon::Day => Self::Day,
        }
    }
}
