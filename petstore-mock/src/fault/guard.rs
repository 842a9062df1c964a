//! The guard of a fault: it removes the fault at the end of its scope, and panics if the fault was never
//! hit.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
};

use super::{
    registry::{Faults, SetFault},
    spec::Fault,
};

/// A fault that is set until this goes out of scope.
///
/// A test that sets a fault wants to see it happen. So a guard whose fault was never hit panics when
/// it is dropped, unless the thread is panicking already, or the fault is
/// [`optional`](Self::optional). [`detach`](Self::detach) keeps the fault without a guard.
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
    faults: Faults,
    set: Arc<SetFault>,
    optional: bool,
    detached: bool,
}

impl FaultGuard {
    pub(super) fn new(faults: &Faults, fault: Fault) -> Self {
        let set = faults.add(fault);
        Self { faults: faults.clone(), set, optional: false, detached: false }
    }

    /// Returns how many requests it has changed.
    ///
    /// Requests that it was meant for, but whose answer had nothing to change (a body too short to
    /// be cut, say), do not count.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.set.hits.load(Ordering::Relaxed)
    }

    /// Returns how many requests it was meant for, hit or not.
    #[must_use]
    pub fn matched(&self) -> u64 {
        self.set.matched.load(Ordering::Relaxed)
    }

    /// Accepts that it may never be hit.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Keeps the fault without a guard, until it is removed or the server ends; returns its number, for
    /// [`Faults::remove`](crate::Faults::remove).
    #[expect(clippy::must_use_candidate, reason = "a fault that is never removed needs no number")]
    pub fn detach(mut self) -> u64 {
        self.detached = true;
        self.set.id
    }
}

impl Drop for FaultGuard {
    #[expect(clippy::panic, reason = "a test that never met its fault has shown nothing")]
    fn drop(&mut self) {
        if self.detached {
            return;
        }
        self.faults.remove(self.set.id);
        if self.hits() > 0 || self.optional || thread::panicking() {
            return;
        }
        let fault = &self.set.fault;
        let why = match (self.set.seen.load(Ordering::Relaxed), self.matched()) {
            (0, _) => "no request came".to_owned(),
            (seen, 0) => format!("{seen} requests came, none matched"),
            (seen, matched) => format!(
                "{seen} requests came, {matched} matched, none triggered the fault: it was not their \
                 turn, or there was nothing to change"
            ),
        };
        panic!(
            "the fault `{fault}` was never hit: {why}. Send a request that matches, or call `.optional()`"
        );
    }
}
