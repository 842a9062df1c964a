//! How a holder may use the quotas.

use serde::{Deserialize, Serialize};

use crate::rate_limit::view::Plan;

/// How a holder may use the quotas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// Whether quotas limit its requests. A 429 always does.
    is_limited: bool,
    /// The share of each window that it may use: above 0, up to 1.
    share: f64,
    plan: Option<Plan>,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            is_limited: true,
            share: 1.0,
            plan: None,
        }
    }
}

impl Terms {
    pub(crate) fn set_limited(&mut self, is_limited: bool) {
        self.is_limited = is_limited;
    }

    pub(crate) fn set_share(&mut self, share: f64) {
        self.share = share;
    }

    pub(crate) fn set_plan(&mut self, plan: Option<Plan>) {
        self.plan = plan;
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    pub(crate) fn plan(&self) -> Option<Plan> {
        self.plan
    }

    pub(crate) fn has_share(&self) -> bool {
        self.share < 1.0
    }

    /// Returns how much of a limit the holder may use: at least one request.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "rounds a part of a limit down; `as` saturates"
    )]
    pub(crate) fn part_of(&self, limit: u64) -> u64 {
        ((limit as f64 * self.share) as u64).max(1)
    }
}
