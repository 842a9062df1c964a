//! How many rows may be under way: as many as the quotas are known to have room for. A row that
//! waits for its turn here was not sent, for sure; one that is handed to the client may have been,
//! should the program be killed. Pure.

use std::time::Duration;

use petstore_client::rate_limit::{Blocked, RateLimits};

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'l> {
    /// So many more rows may be sent.
    Send(usize),
    /// None is, before this is over.
    Wait(&'l Blocked),
}

/// How far to go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// So many rows may be under way at once.
    pub(crate) most: usize,
    /// So long a limit may hold rows back. A longer wait is not for us: the call that is made in its
    /// place fails with the reason.
    pub(crate) longest: Duration,
}

impl Bounds {
    /// Returns what is to be done next, where so many rows are under way. `answered` says whether
    /// the service has answered any.
    pub(super) fn next(self, limits: &RateLimits, under_way: usize, answered: bool) -> Next<'_> {
        let free = self.most.saturating_sub(under_way);
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let queued = under_way.saturating_sub(size(limits.in_flight.into()));
        let left = limits.windows.iter().map(|window| window.remaining).min();
        let room = match (limits.wait_reason, left) {
            (None, Some(left)) => size(left).saturating_sub(queued),
            (None, None) if answered => free,
            // Where nothing is known, the first answer tells of the limits.
            (Some(_), _) | (None, None) => 0,
        };
        match &limits.blocked {
            _ if under_way > 0 => Next::Send(room.min(free)),
            Some(blocked) if !blocked.remaining.is_zero() && blocked.remaining <= self.longest => {
                Next::Wait(blocked)
            }
            _ => Next::Send(room.clamp(1, free.max(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_asks_for_all_until_something_is_known() {
        let limits = RateLimits::default();
        let bounds = Bounds { most: 16, longest: Duration::MAX };
        let next = |under_way, answered| bounds.next(&limits, under_way, answered);
        assert_eq!(next(0, false), Next::Send(1));
        assert_eq!(next(1, false), Next::Send(0));
        // A service that tells of no limit.
        assert_eq!(next(0, true), Next::Send(16));
        assert_eq!(next(5, true), Next::Send(11));
    }
}
