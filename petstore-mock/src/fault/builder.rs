//! How a fault is set from Rust: which requests it hits, then what it does. JSON makes the same
//! [`Fault`].

use http::{HeaderName, HeaderValue};

use super::{
    effect::{Delay, Effect},
    guard::FaultGuard,
    registry::Faults,
    spec::Fault,
    trigger::{HeaderText, MatchedHeader, MatchedKey, When},
};
use crate::operation::Operation;

impl Faults {
    /// Begins a fault that is meant for an operation.
    pub fn on(&self, operation: Operation) -> FaultBuilder<'_> {
        let fault = Fault { operation: Some(operation), ..Fault::default() };
        FaultBuilder { faults: self, fault }
    }

    /// Begins a fault that is meant for every request to the service, unknown paths included.
    pub fn on_all(&self) -> FaultBuilder<'_> {
        FaultBuilder { faults: self, fault: Fault::default() }
    }

    /// Sets a fault that was read from JSON.
    pub fn set(&self, fault: Fault) -> FaultGuard {
        FaultGuard::new(self, fault)
    }
}

/// A fault in the making: which requests it hits. What it does comes last, and sets it.
#[derive(Clone, Debug)]
#[must_use = "the fault is set by the method that names its effect"]
pub struct FaultBuilder<'a> {
    faults: &'a Faults,
    fault: Fault,
}

/// Which requests.
impl FaultBuilder<'_> {
    /// Matches only requests with this key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.fault.key = Some(MatchedKey(key.into()));
        self
    }

    /// Matches only requests that have this header field, with this value if there is one: so a client
    /// can ask for its faults itself, by `X-Mock-Fault: reset` say.
    pub fn header(mut self, name: HeaderName, value: impl Into<Option<HeaderValue>>) -> Self {
        let (name, value) = (HeaderText(name), value.into().map(HeaderText));
        self.fault.header = Some(MatchedHeader { name, value });
        self
    }

    /// Hits the first `count` matching requests. Of this, `nth`, `after` and `chance` the last one
    /// called counts; without any all matching requests are hit.
    pub fn first(mut self, count: u64) -> Self {
        self.fault.when = When::First(count);
        self
    }

    /// Hits one of the matching requests, counted from 1.
    pub fn nth(mut self, number: u64) -> Self {
        self.fault.when = When::Nth(number);
        self
    }

    /// Skips the first `count` matching requests.
    pub fn after(mut self, count: u64) -> Self {
        self.fault.when = When::After(count);
        self
    }

    /// Hits each matching request with this probability, from 0 to 1.
    pub fn chance(mut self, probability: f64) -> Self {
        self.fault.when = When::Chance(probability);
        self
    }

    /// Sets the seed of all random choices, 0 by default: the same seed hits the same requests, in order
    /// of arrival, in each run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.fault.seed = seed;
        self
    }

    /// Sets whether the request is carried out all the same, so that a pet is added whose answer is
    /// lost. By default it is, but for effects that answer a status. The answer to a request that is
    /// not carried out is 503, unless a status is set.
    pub fn processed(mut self, processed: bool) -> Self {
        self.fault.processed = Some(processed);
        self
    }

    /// Sets its name in the journal and in the list of faults, by default that of its effect.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.fault.name = Some(name.into());
        self
    }
}

/// What happens to them.
impl FaultBuilder<'_> {
    /// Sets a fault that has this effect.
    pub fn apply(self, effect: Effect) -> FaultGuard {
        self.faults.set(Fault { effect: Some(effect), ..self.fault })
    }

    /// Sets a fault that has one of these effects after the other, and none once they are used up.
    pub fn sequence(self, effects: impl IntoIterator<Item = Effect>) -> FaultGuard {
        let effects = effects.into_iter().collect();
        self.faults.set(Fault { sequence: Some(effects), ..self.fault })
    }

    /// Sets [`Effect::reset`].
    pub fn reset(self) -> FaultGuard {
        self.apply(Effect::reset())
    }

    /// Sets [`Effect::empty_reply`].
    pub fn empty_reply(self) -> FaultGuard {
        self.apply(Effect::empty_reply())
    }

    /// Sets [`Effect::cut_after`].
    pub fn cut_after(self, body_bytes: u64) -> FaultGuard {
        self.apply(Effect::cut_after(body_bytes))
    }

    /// Sets [`Effect::hang`].
    pub fn hang(self) -> FaultGuard {
        self.apply(Effect::hang())
    }

    /// Sets [`Effect::status`].
    ///
    /// # Panics
    ///
    /// If the status can't end an exchange: it must be from 200 to 599.
    #[track_caller]
    pub fn status(self, status: u16) -> FaultGuard {
        self.apply(Effect::status(status))
    }

    /// Sets [`Effect::delay`].
    pub fn delay(self, delay: impl Into<Delay>) -> FaultGuard {
        self.apply(Effect::delay(delay))
    }
}
