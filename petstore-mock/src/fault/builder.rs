//! The faults of a server, as its users hold them: how one is set, typed, and how they are listed and
//! removed. In JSON the same is a [`Fault`].

use http::{HeaderName, HeaderValue};

use super::{
    effect::{Delay, Effect},
    guard::FaultGuard,
    registry::{ActiveFaults, FaultStatus, Registry},
    spec::{Action, Fault},
    trigger::{FieldName, FieldValue, MatchedHeader, MatchedKey, Matcher, RequestView, When},
};
use crate::{changes::Changes, operation::Operation};

/// The faults of a server; its clones are the same.
///
/// All faults that are meant for a request hit it, in the order in which they were set; of two that
/// end the answer, or give it a pace, the first does. A request counts against its quota whatever
/// hits it, and requests to `/_mock` are never hit.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::{Effect, MockServer, Operation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = MockServer::start().await;
/// // The pet is added, and the answer lost.
/// let lost = server.faults().on(Operation::CreatePet).nth(2).reset();
/// // For one key, each answer comes late; a tenth of all requests fails, the same in each run.
/// let slow = server.faults().on_all().key("pro-key").delay(Duration::from_secs(2));
/// let flaky = server.faults().on_all().chance(0.1).seed(7).status(500);
/// // One effect after the other.
/// let steps = [Effect::status(503), Effect::pass(), Effect::malformed_json()];
/// let odd = server.faults().on(Operation::ListPets).sequence(steps);
/// # for guard in [lost, slow, flaky, odd] { guard.detach(); }
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults(Registry);

impl Faults {
    /// Returns no faults; who listens to the changes is told of those that are set and removed.
    pub(crate) fn new(changes: Changes) -> Self {
        Self(Registry::new(changes))
    }

    /// Begins a fault that is meant for an operation.
    pub fn on(&self, operation: Operation) -> FaultBuilder<'_> {
        let mut builder = self.on_all();
        builder.matcher.operation = Some(operation);
        builder
    }

    /// Begins a fault that is meant for every request to the service, unknown paths included.
    pub fn on_all(&self) -> FaultBuilder<'_> {
        FaultBuilder {
            faults: self,
            name: None,
            matcher: Matcher::default(),
            when: When::default(),
            seed: 0,
            processed: None,
        }
    }

    /// Sets a fault that was read from JSON.
    pub fn set(&self, fault: Fault) -> FaultGuard {
        FaultGuard::new(&self.0, fault)
    }

    /// Returns the faults that are set, in that order, and what each has done so far.
    #[must_use]
    pub fn list(&self) -> Vec<FaultStatus> {
        self.0.list()
    }

    /// Returns how many requests were hit since the server started, by the name of the fault.
    pub(crate) fn total_hits(&self) -> std::collections::BTreeMap<String, u64> {
        self.0.total_hits()
    }

    /// Removes a fault; false if there is none of that number.
    #[expect(clippy::must_use_candidate, reason = "who set it knows that it is there")]
    pub fn remove(&self, id: u64) -> bool {
        self.0.remove(|other| other == id) > 0
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.0.remove(|_| true);
    }

    /// Chooses the faults that hit a request; it is looked at only if any fault is set.
    pub(crate) fn choose<'a>(
        &self,
        request: impl FnOnce() -> RequestView<'a>,
    ) -> Option<ActiveFaults> {
        if self.0.is_empty() { None } else { self.0.choose(request()) }
    }
}

/// A fault in the making: which requests it hits. What it does comes last, and sets it.
#[derive(Clone, Debug)]
#[must_use = "nothing is set until it is said what the fault does"]
pub struct FaultBuilder<'a> {
    faults: &'a Faults,
    name: Option<String>,
    matcher: Matcher,
    when: When,
    seed: u64,
    processed: Option<bool>,
}

/// Which requests.
impl FaultBuilder<'_> {
    /// Means only requests with this key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.matcher.key = Some(MatchedKey(key.into()));
        self
    }

    /// Means only requests that have this header field, with this value if there is one: so a client
    /// can ask for its faults itself, by `X-Mock-Fault: reset` say.
    pub fn header(mut self, name: HeaderName, value: impl Into<Option<HeaderValue>>) -> Self {
        self.matcher.header =
            Some(MatchedHeader { name: FieldName(name), value: value.into().map(FieldValue) });
        self
    }

    /// Hits the first so many of the requests it is meant for. Of this, `nth`, `after` and `chance`,
    /// the last one said counts; all are hit where none is.
    pub fn first(mut self, count: u64) -> Self {
        self.when = When::First(count);
        self
    }

    /// Hits one of the requests it is meant for, counted from 1.
    pub fn nth(mut self, number: u64) -> Self {
        self.when = When::Nth(number);
        self
    }

    /// Hits all but the first so many of the requests it is meant for.
    pub fn after(mut self, count: u64) -> Self {
        self.when = When::After(count);
        self
    }

    /// Hits each request it is meant for with this probability, from 0 to 1.
    pub fn chance(mut self, probability: f64) -> Self {
        self.when = When::Chance(probability);
        self
    }

    /// Sets the seed of all its chance: the same one hits the same requests, in order of arrival, in
    /// each run. It is 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets whether the request is carried out all the same, so that a pet is added whose answer is
    /// lost. It is unless set, but for effects that answer a status of their own. Of a request that
    /// is not carried out the answer is 503, unless a status is set.
    pub fn processed(mut self, processed: bool) -> Self {
        self.processed = Some(processed);
        self
    }

    /// Sets its name, for the journal and for who looks at the list: that of its effect unless set.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// What becomes of them.
impl FaultBuilder<'_> {
    /// Sets a fault that has this effect.
    pub fn apply(self, effect: Effect) -> FaultGuard {
        self.set(Action::Same(effect))
    }

    /// Sets a fault that has one of these effects after the other, and none once they are used up.
    pub fn sequence(self, effects: impl IntoIterator<Item = Effect>) -> FaultGuard {
        self.set(Action::Sequence(effects.into_iter().collect()))
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
    /// Where no exchange can end with that status: it is from 200 to 599.
    #[track_caller]
    pub fn status(self, status: u16) -> FaultGuard {
        self.apply(Effect::status(status))
    }

    /// Sets [`Effect::delay`].
    pub fn delay(self, delay: impl Into<Delay>) -> FaultGuard {
        self.apply(Effect::delay(delay))
    }

    fn set(self, action: Action) -> FaultGuard {
        let Self { faults, name, matcher, when, seed, processed } = self;
        faults.set(Fault { name, matcher, when, seed, processed, action })
    }
}
