//! What holds a fault in place: it removes the fault at the end of its scope, and says so if the fault
//! was never hit.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
};

use super::{
    registry::{Counts, Registry},
    spec::Fault,
};

/// A fault that is set until this goes out of scope.
///
/// A test that sets a fault wants to see it happen. So a guard whose fault was never hit panics when
/// it is dropped, unless the thread is panicking already, or the guard was told that it is
/// [`optional`](Self::optional). [`detach`](Self::detach) lets the fault live on.
///
/// ```
/// use petstore_mock::{MockServer, Operation};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let busy = server.faults().on(Operation::ListPets).first(1).status(503);
/// # let client = reqwest::Client::builder().no_proxy().build()?;
/// let list = || client.get(format!("{}/pets", server.url())).bearer_auth("free-key").send();
/// assert_eq!(list().await?.status(), 503);
/// assert_eq!(list().await?.status(), 200);
/// assert_eq!(busy.hits(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping the guard removes the fault, and panics since nothing has hit it yet"]
pub struct FaultGuard {
    registry: Registry,
    id: u64,
    fault: Arc<Fault>,
    counts: Arc<Counts>,
    optional: bool,
    detached: bool,
}

impl FaultGuard {
    pub(super) fn new(registry: &Registry, fault: Fault) -> Self {
        let registry = registry.clone();
        let (id, fault, counts) = registry.add(fault);
        Self { registry, id, fault, counts, optional: false, detached: false }
    }

    /// Returns how many requests it has changed.
    ///
    /// A request that it was meant for, but whose answer had nothing to change (a body too short to
    /// be cut, say), is none of them.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.counts.hits.load(Ordering::Relaxed)
    }

    /// Returns how many requests it was meant for, hit or not.
    #[must_use]
    pub fn matched(&self) -> u64 {
        self.counts.matched.load(Ordering::Relaxed)
    }

    /// Returns the number by which [`Faults::remove`](crate::Faults::remove) knows it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Accepts that it may never be hit.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Lets it live on without a guard, until it is removed or the server ends; returns its number.
    #[expect(clippy::must_use_candidate, reason = "who keeps it for ever needs no number")]
    pub fn detach(mut self) -> u64 {
        self.detached = true;
        self.id
    }

    /// Says what it has met, for who wonders why it did not hit.
    fn story(&self) -> String {
        let (seen, matched) = (self.counts.seen.load(Ordering::Relaxed), self.matched());
        let why = match (seen, matched) {
            (0, _) => "no request came".to_owned(),
            (_, 0) => format!("{seen} requests came, none matched"),
            _ => format!(
                "{seen} requests came, {matched} matched, none triggered the fault: it was not their \
                 turn, or there was nothing to change"
            ),
        };
        format!(
            "the fault `{}` was never hit: {why}. Send a request that matches, or call `.optional()`",
            self.fault
        )
    }
}

impl Drop for FaultGuard {
    #[expect(clippy::panic, reason = "a test that never met its fault has shown nothing")]
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        self.registry.remove(|id| id == self.id);
        if self.hits() == 0 && !self.optional && !thread::panicking() {
            panic!("{}", self.story());
        }
    }
}
