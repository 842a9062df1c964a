//! Waiting at the gate, as a future that may be dropped at any point.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, Sleep, sleep_until};

use super::door::{Gate, Guard, Hold};
use super::permit::Permit;
use super::queue::{Lane, Place, Turn};
use crate::quota::{Local, Policy, Verdict};

/// What a call asks of the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// Its number from the first time it stood in line, which is its place for good.
    pub(crate) number: Option<u64>,
    pub(crate) lane: Lane,
    pub(crate) policy: Policy,
    /// The latest moment at which it may still go.
    pub(crate) latest: Instant,
}

pub(crate) struct Acquire<'g, F> {
    gate: &'g Gate,
    wish: Wish,
    /// Hears of each block that holds the call back.
    tell: F,
    /// The end of the block that it was told of last, and what it has not been told of yet.
    told: Option<SystemTime>,
    news: Option<Hold>,
    place: Option<Place>,
    /// When it came to stand in line.
    joined: Option<Local>,
    /// Set while this is the first in line.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Gate {
    /// Waits until a request may go, or returns at once what holds it back for longer than the
    /// call may wait. `tell` hears of each block that the call waits out: when it comes, and
    /// when it has become the first in line.
    pub(crate) fn acquire<F: FnMut(Hold) + Unpin>(&self, wish: Wish, tell: F) -> Acquire<'_, F> {
        let (place, joined, timer) = (None, None, None);
        Acquire { gate: self, wish, tell, told: None, news: None, place, joined, timer }
    }
}

impl<'g, F: FnMut(Hold) + Unpin> Future for Acquire<'g, F> {
    type Output = Result<Permit<'g>, Hold>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            let step = this.step(context);
            // Only now: the lock is released.
            if let Some(hold) = this.news.take() {
                (this.tell)(hold);
            }
            match step {
                Step::Done(result) => return Poll::Ready(result),
                Step::Wait => return Poll::Pending,
                Step::Timer(at) => {
                    let at = this.gate.instant(at);
                    let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
                    if timer.deadline() != at {
                        timer.as_mut().reset(at);
                    }
                    if timer.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    this.timer = None;
                }
            }
        }
    }
}

enum Step<'g> {
    Done(Result<Permit<'g>, Hold>),
    Wait,
    /// Come again when this has rung.
    Timer(Local),
}

impl<'g, F> Acquire<'g, F> {
    /// Returns how long the call has stood in line, or did.
    pub(crate) fn waited(&self) -> Duration {
        self.joined.map_or(Duration::ZERO, |joined| self.gate.now().since(joined))
    }

    fn step(&mut self, context: &mut Context<'_>) -> Step<'g> {
        let now = self.gate.now();
        let mut inner = self.gate.lock();
        let place = match self.place {
            Some(place) => place,
            None => match self.arrive(context, now, &mut inner) {
                Ok(place) => place,
                Err(result) => return Step::Done(result),
            },
        };
        let Some(waiter) = inner.queue.get(place) else { return Step::Wait };
        match waiter.turn {
            Turn::Granted(ticket) => {
                inner.queue.leave(place);
                self.place = None;
                return Step::Done(Ok(Permit::new(self.gate, ticket, place.number())));
            }
            Turn::TooLong(block) => {
                inner.queue.leave(place);
                self.place = None;
                return Step::Done(Err(self.gate.in_process(&inner, block)));
            }
            Turn::Waiting => {}
        }
        if !waiter.waker.will_wake(context.waker()) {
            waiter.waker = context.waker().clone();
        }
        if inner.queue.first() != Some(place) {
            self.timer = None;
            return Step::Wait;
        }
        self.first_in_line(place, now, inner)
    }

    /// Lets the call pass at once, refuses it, or puts it in line.
    fn arrive(
        &mut self,
        context: &Context<'_>,
        now: Local,
        inner: &mut Guard<'g>,
    ) -> Result<Place, Result<Permit<'g>, Hold>> {
        let Wish { number, lane, policy, latest } = self.wish;
        match inner.keeper.verdict(now, &policy) {
            Verdict::Go(pass) if !inner.queue.has_before(number, lane) => {
                let ticket = inner.keeper.grant(now, pass);
                let number = number.unwrap_or_else(|| inner.queue.take_number());
                return Err(Ok(Permit::new(self.gate, ticket, number)));
            }
            Verdict::Blocked(block) => {
                let hold = self.gate.in_process(inner, block);
                if hold.until > latest {
                    return Err(Err(hold));
                }
                self.held_by(hold);
            }
            _ => {}
        }
        let latest = self.gate.local(latest);
        let place = inner.queue.join(number, lane, context.waker().clone(), policy, latest);
        (self.place, self.joined) = (Some(place), Some(now));
        Ok(place)
    }

    /// The first in line asks for itself, and owns the timer.
    fn first_in_line(&mut self, place: Place, now: Local, mut inner: Guard<'g>) -> Step<'g> {
        let latest = self.gate.local(self.wish.latest);
        let mut policy = self.wish.policy;
        // A pace is no reason to make a call wait for longer than it may.
        policy.pacing &= now < latest;
        let at = match inner.keeper.verdict(now, &policy) {
            Verdict::Go(pass) => {
                let ticket = inner.keeper.grant(now, pass);
                inner.queue.leave(place);
                self.place = None;
                self.gate.pass_on(inner);
                return Step::Done(Ok(Permit::new(self.gate, ticket, place.number())));
            }
            Verdict::Busy(_) => match inner.look_again(now) {
                Some(at) => at,
                None => {
                    self.timer = None;
                    inner.disarmed();
                    return Step::Wait;
                }
            },
            Verdict::Blocked(block) => {
                let hold = self.gate.in_process(&inner, block);
                if hold.until > self.wish.latest {
                    inner.queue.leave(place);
                    self.place = None;
                    self.gate.pass_on(inner);
                    return Step::Done(Err(hold));
                }
                self.held_by(hold);
                inner.keeper.surely(block.until)
            }
            Verdict::Paced(at) => inner.keeper.surely(at).min(latest),
            Verdict::Settling(at) => inner.keeper.surely(at),
        };
        inner.armed(place, at);
        Step::Timer(at)
    }

    fn held_by(&mut self, hold: Hold) {
        if self.told != Some(hold.until_service) {
            self.told = Some(hold.until_service);
            self.news = Some(hold);
        }
    }
}

impl<F> Drop for Acquire<'_, F> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let mut inner = self.gate.lock();
        if let Some(waiter) = inner.queue.leave(place)
            && let Turn::Granted(ticket) = waiter.turn
        {
            inner.keeper.state.unused(ticket);
        }
        self.gate.pass_on(inner);
    }
}
