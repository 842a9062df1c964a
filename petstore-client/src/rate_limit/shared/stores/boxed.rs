//! A store behind a pointer, for programs that choose one at run time.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::rate_limit::shared::slot::MemberId;
use crate::rate_limit::shared::store::{Change, LimitStore, RecordKey, SharedStore, StoreError};

/// A store of any type, for programs that choose one at run time. Clones share it.
///
/// ```
/// use petstore_client::Client;
/// use petstore_client::rate_limit::{BoxStore, LimitStore};
///
/// fn client(stores: &[BoxStore]) -> Result<Client, petstore_client::Error> {
///     let client = Client::builder("https://petstore.example/v1").api_key("s3cret");
///     match stores.first() {
///         Some(store) => client.shared_limits(store.clone()).build(),
///         None => client.build(),
///     }
/// }
/// # client(&[]).unwrap();
/// ```
#[derive(Clone)]
pub struct BoxStore(SharedStore);

impl BoxStore {
    /// Boxes a store.
    pub fn new(store: impl LimitStore) -> Self {
        Self(Arc::new(store))
    }
}

impl LimitStore for BoxStore {
    async fn update(&self, key: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
        let member = change.member();
        // The boxed store's future borrows the change for a shorter time, so it gets a new one.
        let mut apply = |current: Option<&[u8]>, now| change.apply(current, now);
        self.0.update(key, Change::new(member, &mut apply)).await
    }

    async fn forget(&self, key: Option<&RecordKey>) -> Result<(), StoreError> {
        self.0.forget(key).await
    }

    fn location(&self) -> Cow<'_, str> {
        self.0.location()
    }

    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool> {
        self.0.is_alive(key, member)
    }

    fn has_left(&self, key: &RecordKey, member: MemberId) {
        self.0.has_left(key, member);
    }

    fn time_limit(&self) -> Duration {
        self.0.time_limit()
    }
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoxStore").field(&self.location()).finish()
    }
}
