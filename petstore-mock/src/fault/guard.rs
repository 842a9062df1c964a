//! The guard of a fault. It removes the fault when it is dropped, and panics if no request was hit.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
};

use super::{
    registry::{Faults, SetFault},
    spec::Fault,
};

/// The guard of a fault. The fault is removed when the guard is dropped.
///
/// If the fault has hit no request, dropping the guard panics, because a test without the fault
/// shows nothing. It does not panic if the thread already panics, or if the fault is
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

    /// Returns the number of requests that the fault has changed.
    ///
    /// Matching requests whose response had nothing to change do not count, for example if the body
    /// was too short to be cut.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.set.hits.load(Ordering::Relaxed)
    }

    /// Returns the number of matching requests, hit or not.
    #[must_use]
    pub fn matched(&self) -> u64 {
        self.set.matched.load(Ordering::Relaxed)
    }

    /// Accepts that the fault may hit no request.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Keeps the fault without a guard, until it is removed or the server stops. Returns its number
    /// for [`Faults::remove`](crate::Faults::remove).
    #[expect(clippy::must_use_candidate, reason = "a fault that is never removed needs no number")]
    pub fn detach(mut self) -> u64 {
        self.detached = true;
        self.set.id
    }
}

impl Drop for FaultGuard {
    #[expect(clippy::panic, reason = "a test without its fault shows nothing")]
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
