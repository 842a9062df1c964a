//! Waiting at the gate, as a future that may be dropped at any point.

use std::pin::Pin;
use std::task::{Context, Poll};

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

pub(crate) struct Acquire<'g> {
    gate: &'g Gate,
    wish: Wish,
    place: Option<Place>,
    /// Set while this is the first in line.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Gate {
    /// Waits until a request may go, or returns at once what holds it back for longer than the
    /// call may wait.
    pub(crate) fn acquire(&self, wish: Wish) -> Acquire<'_> {
        Acquire { gate: self, wish, place: None, timer: None }
    }
}

impl<'g> Future for Acquire<'g> {
    type Output = Result<Permit<'g>, Hold>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            match this.step(context) {
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

impl<'g> Acquire<'g> {
    fn step(&mut self, context: &mut Context<'_>) -> Step<'g> {
        let now = self.gate.now();
        let mut inner = self.gate.lock();
        let Some(place) = self.place else {
            let verdict = inner.keeper.verdict(now, &self.wish.policy);
            let ahead = inner.queue.has_before(self.wish.number, self.wish.lane);
            match verdict {
                Verdict::Go if !ahead => {
                    let ticket = inner.keeper.grant(now, &self.wish.policy);
                    let number = self.wish.number.unwrap_or_else(|| inner.queue.take_number());
                    return Step::Done(Ok(Permit::new(self.gate, ticket, number)));
                }
                Verdict::Blocked(block) => {
                    let hold = self.gate.in_process(&inner, block);
                    if hold.until > self.wish.latest {
                        return Step::Done(Err(hold));
                    }
                }
                _ => {}
            }
            let latest = self.gate.local(self.wish.latest);
            let Wish { number, lane, policy, .. } = self.wish;
            let waker = context.waker().clone();
            self.place = Some(inner.queue.join(number, lane, waker, policy, latest));
            drop(inner);
            return self.step(context);
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

    /// The first in line asks for itself, and owns the timer.
    fn first_in_line(&mut self, place: Place, now: Local, mut inner: Guard<'g>) -> Step<'g> {
        let at = match inner.keeper.verdict(now, &self.wish.policy) {
            Verdict::Go => {
                let ticket = inner.keeper.grant(now, &self.wish.policy);
                inner.queue.leave(place);
                self.place = None;
                let woken = inner.let_through(now);
                drop(inner);
                woken.into_iter().for_each(std::task::Waker::wake);
                return Step::Done(Ok(Permit::new(self.gate, ticket, place.number())));
            }
            Verdict::Busy => {
                self.timer = None;
                inner.disarmed();
                return Step::Wait;
            }
            Verdict::Blocked(block) => {
                let hold = self.gate.in_process(&inner, block);
                if hold.until > self.wish.latest {
                    inner.queue.leave(place);
                    self.place = None;
                    let woken = inner.let_through(now);
                    drop(inner);
                    woken.into_iter().for_each(std::task::Waker::wake);
                    return Step::Done(Err(hold));
                }
                inner.keeper.surely(block.until)
            }
            Verdict::Paced(at) => inner.keeper.surely(at),
        };
        inner.armed(place, at);
        Step::Timer(at)
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        let now = self.gate.now();
        let mut inner = self.gate.lock();
        if let Some(waiter) = inner.queue.leave(place)
            && let Turn::Granted(ticket) = waiter.turn
        {
            inner.keeper.state.unused(ticket);
        }
        let woken = inner.let_through(now);
        drop(inner);
        woken.into_iter().for_each(std::task::Waker::wake);
    }
}
