//! Sets faults from Rust: first the requests, then the effect. JSON produces the same [`Fault`].

use super::{
    effect::{Delay, Effect},
    registry::{FaultGuard, Faults},
    spec::{Fault, MatchedKey, Trigger},
};
use crate::operation::Target;

impl Faults {
    /// Starts a fault for an operation, for a method and a path such as `(Method::PUT,
    /// "/pets/{petId}")`, or with `..` for every request to the service, including unknown paths.
    pub fn on(&self, target: impl Into<Target>) -> FaultBuilder<'_> {
        FaultBuilder {
            faults: self,
            fault: Fault::on(&target.into()),
        }
    }
}

/// Builds a fault. The method for the effect comes last, and sets the fault.
///
/// ```
/// use petstore_mock::{MockServer, Operation};
///
/// # async fn show() {
/// let server = MockServer::start().await;
/// // The first request that creates a pet adds it, and its connection breaks before the response.
/// let lost = server.faults().on(Operation::CreatePet).first(1).processed(true).reset();
/// # drop(lost);
/// # }
/// ```
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

    /// Hits the first `count` matching requests. This, `nth`, `after` and `chance` replace each
    /// other. The default is all matching requests.
    pub fn first(mut self, count: u64) -> Self {
        self.fault.when = Trigger::First(count);
        self
    }

    /// Hits the matching request with this number, from 1.
    pub fn nth(mut self, number: u64) -> Self {
        self.fault.when = Trigger::Nth(number);
        self
    }

    /// Skips the first `count` matching requests.
    pub fn after(mut self, count: u64) -> Self {
        self.fault.when = Trigger::After(count);
        self
    }

    /// Hits each matching request with this probability, above 0 and at most 1.
    pub fn chance(mut self, probability: f64) -> Self {
        self.fault.when = Trigger::Probability(probability);
        self
    }

    /// Hits only requests with `X-Mock-Fault` and the fault's name ([`named`](Self::named)), if
    /// [`Builder::fault_header`](crate::Builder::fault_header) enables that.
    pub fn only_named(mut self) -> Self {
        self.fault.when = Trigger::Named;
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
    ///
    /// # Panics
    ///
    /// If it can never hit a request, for example with `first(0)`, or if a response cannot be so, for
    /// example with a status of 600.
    #[track_caller]
    pub fn apply(mut self, effect: Effect) -> FaultGuard {
        self.fault.effect = Some(effect);
        self.faults.set(self.fault)
    }

    /// Sets the fault with these effects in sequence, one per hit. After the last effect, it does
    /// nothing.
    ///
    /// # Panics
    ///
    /// If it can never hit a request, or if a response cannot be so.
    #[track_caller]
    pub fn sequence(mut self, effects: impl IntoIterator<Item = Effect>) -> FaultGuard {
        self.fault.sequence = Some(effects.into_iter().collect());
        self.faults.set(self.fault)
    }

    /// Sets [`Effect::Status`].
    ///
    /// # Panics
    ///
    /// If the status is not from 200 to 599, or the fault can never hit a request.
    #[track_caller]
    pub fn status(self, status: u16) -> FaultGuard {
        self.apply(Effect::Status(status))
    }

    /// Sets [`Effect::Reset`] before the status line.
    ///
    /// # Panics
    ///
    /// If the fault can never hit a request.
    #[track_caller]
    pub fn reset(self) -> FaultGuard {
        self.apply(Effect::Reset {
            after_body_bytes: None,
        })
    }

    /// Sets [`Effect::Delay`].
    ///
    /// # Panics
    ///
    /// If the fault can never hit a request.
    #[track_caller]
    pub fn delay(self, delay: impl Into<Delay>) -> FaultGuard {
        self.apply(Effect::Delay(delay.into()))
    }
}
