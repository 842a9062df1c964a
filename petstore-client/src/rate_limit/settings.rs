//! The settings of a client's rate limits.

use super::policy::Policy;
use super::store::SharedStore;
use super::view::Plan;

/// How a client uses the quotas of its key, for
/// [`ClientBuilder::limits`](crate::ClientBuilder::limits).
///
/// ```
/// use petstore_client::Client;
/// use petstore_client::limits::{Limits, Plan};
///
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .limits(Limits::new().plan(Plan::PRO).share(0.5))
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Limits {
    policy: Policy,
    store: Option<SharedStore>,
}

impl Limits {
    /// Creates the default: calls keep within the quotas that the service shows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the plan of the key, for services that do not describe every quota. The client then
    /// counts its own requests per minute and day of the service. It cannot count those of other
    /// clients.
    pub fn plan(mut self, plan: Plan) -> Self {
        self.policy.terms_mut().set_plan(Some(plan));
        self
    }

    /// Sets the share of each window that this client may use, above 0 and up to 1 (default: 1). Use
    /// 0.25 for each of four programs that use the same key without a common store. A store keeps to the
    /// shares of 64 clients.
    pub fn share(mut self, share: f64) -> Self {
        self.policy.terms_mut().set_share(share);
        self
    }

    /// Sets the maximum number of requests in flight, at least 1, of the client and its clones. Clients that
    /// are built with clones of these limits share it. Others with the same key are not limited by it.
    ///
    /// The default is 512 for all clients of the process with the same key and settings, because a
    /// program may often open only 1,024 files. For a key, the quotas limit it further: to an eighth of
    /// the remaining requests, or more if the latency requires more to use the quota up, from 5 to
    /// 4,096. It is 5 if neither the service nor a [`plan`](Self::plan) shows the quota per minute, and
    /// fewer beside other users of the key.
    pub fn max_in_flight(mut self, requests: u32) -> Self {
        self.policy.limit_in_flight(requests);
        self
    }

    /// Sets whether calls wait for quotas (default: true). The client always obeys a 429. Switch
    /// this off for servers whose rate limit headers mean something else.
    pub fn enabled(mut self, on: bool) -> Self {
        self.policy.terms_mut().set_limited(on);
        self
    }

    /// Shares the limits of the key fairly with all processes that use the same store.
    ///
    /// While the store is away, the client goes on with what it knows, and assumes that others
    /// use the key. [`EventKind::SharedStore`](crate::events::EventKind::SharedStore) reports when that
    /// begins and ends.
    #[cfg(any(feature = "file-store", feature = "redis"))]
    pub fn store(mut self, store: impl Into<SharedStore>) -> Self {
        self.store = Some(store.into());
        self
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }

    pub(crate) fn into_store(self) -> Option<SharedStore> {
        self.store
    }

    #[cfg(feature = "test-util")]
    pub(crate) fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// Returns the setting that is invalid, and why.
    pub(crate) fn problem(&self) -> Option<(&'static str, String)> {
        let terms = self.policy.terms();
        let share = terms.share();
        if !(share > 0.0 && share <= 1.0) {
            let problem = format!("it is {share}, and must be above 0 and at most 1");
            return Some(("share of the quotas", problem));
        }
        if self.policy.max_in_flight() == 0 {
            let problem = "it must be at least 1".to_owned();
            return Some(("number of requests in flight", problem));
        }
        let has_zero = |plan: Plan| plan.minute_limit() == Some(0) || plan.day_limit() == Some(0);
        if terms.plan().is_some_and(has_zero) {
            return Some(("plan", "a quota of 0 would block every call".to_owned()));
        }
        None
    }
}
