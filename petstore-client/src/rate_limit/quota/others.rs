//! What is known of other clients with the key.
//!
//! In the limiter, own requests are those of this process and of the members of its record. All
//! other requests with the key come from other clients.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clock::ServiceTime;

/// The own share that is assumed if other clients may use the key.
pub(super) const ASSUMED_SHARE: f64 = 0.25;
/// Above this own share, no other client uses the key.
const SOLE_USER_SHARE: f64 = 0.95;
/// How long other clients are remembered after their last request.
const OTHER_CLIENTS_REMEMBERED: Duration = Duration::from_secs(300);

/// What is known of other clients with the key.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct OtherClients {
    /// The own share, from 0 to 1: the part of all requests with the key that are own ones, as
    /// measured in the last window.
    own_share: Option<f64>,
    /// Until when other clients are remembered.
    until: Option<ServiceTime>,
    /// Whether other clients are assumed to use the key, even if no reading has shown any. A member
    /// assumes that while its store is unreachable.
    #[serde(skip)]
    are_assumed: bool,
}

impl OtherClients {
    /// Records the own share that a response has shown.
    pub(super) fn observe(&mut self, own_share: Option<f64>, service_now: ServiceTime) {
        self.own_share = own_share;
        if self.share().is_some() {
            self.until = Some(service_now.plus(OTHER_CLIENTS_REMEMBERED));
        }
    }

    /// Sets whether other clients are assumed, even if no reading has shown any.
    pub(crate) fn assume(&mut self, are_assumed: bool) {
        self.are_assumed = are_assumed;
    }

    /// Returns the own share as it was measured.
    pub(crate) fn own_share(&self) -> Option<f64> {
        self.own_share
    }

    /// Returns the own share, if other clients use the key: they are known from the readings, or
    /// assumed.
    pub(crate) fn share(&self) -> Option<f64> {
        let assumed = if self.are_assumed { ASSUMED_SHARE } else { 1.0 };
        let share = self.own_share.map_or(assumed, |share| share.min(assumed));
        (share < SOLE_USER_SHARE).then_some(share)
    }

    /// Returns whether other clients are remembered or assumed.
    pub(super) fn are_known(&self, service_now: ServiceTime) -> bool {
        self.are_assumed || self.until.is_some_and(|until| service_now < until)
    }
}

/// For tests: sets and reads what no response shows.
#[cfg(test)]
impl OtherClients {
    pub(crate) fn set_own_share(&mut self, share: f64) {
        self.own_share = Some(share);
    }

    pub(crate) fn remember(&mut self, until: ServiceTime) {
        self.until = Some(until);
    }

    pub(crate) fn are_assumed(&self) -> bool {
        self.are_assumed
    }
}
