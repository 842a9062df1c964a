//! Breaches of the first moments after a response, which only count if the client is one sender.

use std::time::Duration;

use crate::{
    exchange::Moment,
    report::{
        breach::{Breach, Ruling},
        facts::{Facts, REACTION},
        rule::Rule,
    },
};

/// A breach of the first moments, if there is one. It only counts if the client is still one sender
/// after these: a pool's workers may begin one by one on the same connection.
#[derive(Debug, Default)]
pub(super) struct Doubt(Option<Breach>);

/// Whether a request came in the first moments after a response.
pub(super) fn is_soon(request: &Facts, response: &Moment) -> bool {
    request.arrived().gap_since(response) < REACTION
}

impl Doubt {
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the number of remembered exchanges.
    pub(super) fn remembered(&self) -> usize {
        let breach = self.0.as_ref();
        breach.map_or(0, |breach| breach.series().remembered())
    }

    /// Keeps a breach, as a part of an earlier one if there is one.
    pub(super) fn keep(&mut self, breach: Breach) {
        match &mut self.0 {
            Some(earlier) => earlier.extend(breach),
            None => self.0 = Some(breach),
        }
    }

    /// Adds the breach if it has more requests than so many senders would send.
    pub(super) fn settle(&mut self, senders: u32, rule: Rule, found: &mut Ruling) {
        let is_more = |breach: &mut Breach| breach.series().count() > u64::from(senders);
        if let Some(breach) = self.0.take_if(is_more) {
            found.add(rule, breach);
        }
    }

    /// Decides when a request comes, and returns whether the breach was let go. That is so if the
    /// client is seen as several in the first moments after the response.
    pub(super) fn resolve(
        &mut self,
        response: &Moment,
        rule: Rule,
        request: &Facts,
        found: &mut Ruling,
    ) -> bool {
        let is_soon = is_soon(request, response);
        if is_soon && !request.may_be_several() {
            return false;
        }
        let Some(breach) = self.0.take() else {
            return false;
        };
        if !is_soon {
            found.add(rule, breach);
        }
        is_soon
    }

    /// Adds what is found if no further request follows.
    pub(super) fn complete(&self, rule: Rule, found: &mut Ruling) {
        if let Some(breach) = &self.0 {
            found.add(rule, breach.clone());
        }
    }

    /// Returns how long until [`Self::complete`] is certain.
    pub(super) fn undecided(&self, response: &Moment, now: &Moment) -> Duration {
        match self.0 {
            Some(_) => REACTION.saturating_sub(now.gap_since(response)),
            None => Duration::ZERO,
        }
    }
}
