//! The engine of a limiter: that of a lone process, or that of a member that shares a record.

use std::time::Duration;

use super::member::Member;
use super::slot::MemberId;
use crate::rate_limit::quota::clock::{LocalTime, ServiceTime};
use crate::rate_limit::quota::decision::Decision;
use crate::rate_limit::quota::local::Local;
use crate::rate_limit::quota::outstanding::Reservation;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::quota::reading::{Block, ResponseHead};
use crate::rate_limit::quota::window::Window;

/// The engine of a limiter. Both variants have the methods of [`Local`].
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one for each key")]
pub(crate) enum Engine {
    Local(Local),
    Shared(Box<Member>),
}

/// Calls the same method on either variant.
macro_rules! either {
    ($engine:expr, $inner:ident => $call:expr) => {
        match $engine {
            Engine::Local($inner) => $call,
            Engine::Shared($inner) => $call,
        }
    };
}

impl Engine {
    /// Creates the engine of a process that shares nothing.
    pub(crate) fn new(now: LocalTime, wall: ServiceTime) -> Self {
        Self::Local(Local::new(now, wall))
    }

    /// Creates the engine of a new member.
    pub(crate) fn of_member(id: MemberId, now: LocalTime, wall: ServiceTime) -> Self {
        Self::Shared(Box::new(Member::new(id, now, wall)))
    }

    pub(crate) fn member(&self) -> Option<&Member> {
        match self {
            Self::Local(_) => None,
            Self::Shared(member) => Some(member),
        }
    }

    pub(crate) fn member_mut(&mut self) -> Option<&mut Member> {
        match self {
            Self::Local(_) => None,
            Self::Shared(member) => Some(member),
        }
    }

    /// Returns what the process knows.
    pub(crate) fn local(&self) -> &Local {
        match self {
            Self::Local(local) => local,
            Self::Shared(member) => member.local(),
        }
    }

    pub(crate) fn forget(&mut self, now: LocalTime, wall: ServiceTime) {
        either!(self, engine => engine.forget(now, wall));
    }

    pub(crate) fn decide(&self, now: LocalTime, policy: &Policy) -> Decision {
        either!(self, engine => engine.decide(now, policy))
    }

    pub(crate) fn reserve(
        &mut self,
        now: LocalTime,
        is_probe: bool,
        policy: &Policy,
    ) -> Reservation {
        either!(self, engine => engine.reserve(now, is_probe, policy))
    }

    pub(crate) fn start(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        lease: Duration,
    ) -> bool {
        either!(self, engine => engine.start(reservation, now, lease))
    }

    pub(crate) fn release(&mut self, reservation: Reservation) {
        match self {
            Self::Local(local) => {
                local.release(reservation);
            }
            Self::Shared(member) => member.release(reservation),
        }
    }

    pub(crate) fn record_lost(&mut self, reservation: Reservation, now: LocalTime) {
        either!(self, engine => engine.record_lost(reservation, now));
    }

    pub(crate) fn record_response(
        &mut self,
        reservation: Reservation,
        now: LocalTime,
        head: &ResponseHead,
    ) -> Option<Block> {
        either!(self, engine => engine.record_response(reservation, now, head))
    }

    pub(crate) fn record_ban(&mut self) {
        either!(self, engine => engine.record_ban());
    }

    pub(crate) fn resume(&mut self) {
        either!(self, engine => engine.resume());
    }

    pub(crate) fn expire(&mut self, now: LocalTime) {
        either!(self, engine => engine.expire(now));
    }

    pub(crate) fn left_in(&self, window: &Window) -> u64 {
        either!(self, engine => engine.left_in(window))
    }

    pub(crate) fn is_probing(&self, now: LocalTime) -> bool {
        either!(self, engine => engine.is_probing(now))
    }

    /// Returns a block while other members have reserved all remaining requests. It ends at the latest
    /// time at which that can end: the reset of the minute's quota, if that is known.
    pub(crate) fn blocked_by_members(&self, now: LocalTime) -> Option<Block> {
        self.member()?.blocked_by_members(now)
    }
}
