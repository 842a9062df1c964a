//! Sets faults from Rust: first the requests, then the effect. JSON produces the same [`Fault`].

use http::{HeaderName, HeaderValue};

use super::{
    delay::Delay,
    effect::Effect,
    guard::FaultGuard,
    registry::Faults,
    spec::Fault,
    trigger::{HeaderText, MatchedHeader, MatchedKey, When},
};
use crate::operation::Operation;

impl Faults {
    /// Starts a fault for an operation.
    pub fn on(&self, operation: Operation) -> FaultBuilder<'_> {
        let fault = Fault { operation: Some(operation), ..Fault::default() };
        FaultBuilder { faults: self, fault }
    }

    /// Starts a fault for every request to the service, including unknown paths.
    pub fn on_all(&self) -> FaultBuilder<'_> {
        FaultBuilder { faults: self, fault: Fault::default() }
    }

    /// Sets a fault that was read from JSON.
    pub fn set(&self, fault: Fault) -> FaultGuard {
        FaultGuard::new(self, fault)
    }
}

/// Builds a fault. The method for the effect comes last, and sets the fault.
#[derive(Clone, Debug)]
#[must_use = "the fault is set by the method that names its effect"]
pub struct FaultBuilder<'a> {
    faults: &'a Faults,
    fault: Fault,
}

/// The requests.
impl FaultBuilder<'_> {
    /// Matches only requests with this key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.fault.key = Some(MatchedKey(key.into()));
        self
    }

    /// Matches only requests with this header field, and with this value if given. A client can
    /// request a fault this way, for example with `X-Mock-Fault: reset`.
    pub fn header(mut self, name: HeaderName, value: impl Into<Option<HeaderValue>>) -> Self {
        let (name, value) = (HeaderText(name), value.into().map(HeaderText));
        self.fault.header = Some(MatchedHeader { name, value });
        self
    }

    /// Hits the first `count` matching requests. This, `nth`, `after` and `chance` replace each
    /// other. The default is all matching requests.
    pub fn first(mut self, count: u64) -> Self {
        self.fault.when = When::First(count);
        self
    }

    /// Hits the matching request with this number, from 1.
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

    /// Sets the seed of random choices (default: 0). The same seed hits the same requests, in order
    /// of arrival, in each run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.fault.seed = seed;
        self
    }

    /// Sets whether the service still processes the request, for example creates a pet whose
    /// response is lost. The default is true, except for effects that set a status. An unprocessed
    /// request is answered 503, unless the fault sets a status.
    pub fn processed(mut self, processed: bool) -> Self {
        self.fault.processed = Some(processed);
        self
    }

    /// Sets the name in the journal and in the list of faults (default: the name of the effect).
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.fault.name = Some(name.into());
        self
    }
}

/// The effect.
impl FaultBuilder<'_> {
    /// Sets the fault with this effect.
    pub fn apply(self, effect: Effect) -> FaultGuard {
        self.faults.set(Fault { effect: Some(effect), ..self.fault })
    }

    /// Sets the fault with these effects in sequence, one per hit. After the last effect, it does
    /// nothing.
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
    /// If the status is not from 200 to 599.
    #[track_caller]
    pub fn status(self, status: u16) -> FaultGuard {
        self.apply(Effect::status(status))
    }

    /// Sets [`Effect::delay`].
    pub fn delay(self, delay: impl Into<Delay>) -> FaultGuard {
        self.apply(Effect::delay(delay))
    }
}
