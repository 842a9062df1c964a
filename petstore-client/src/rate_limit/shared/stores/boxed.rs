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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::HeaderValue;

    use super::*;

    /// A store that records which member has left.
    struct Recorder(Arc<Mutex<Option<MemberId>>>);

    impl LimitStore for Recorder {
        async fn update(&self, _: &RecordKey, _: Change<'_>) -> Result<(), StoreError> {
            Err(StoreError::new("not this one"))
        }

        async fn forget(&self, _: Option<&RecordKey>) -> Result<(), StoreError> {
            Err(StoreError::new("nothing to forget"))
        }

        fn location(&self) -> Cow<'_, str> {
            "here".into()
        }

        fn is_alive(&self, _: &RecordKey, member: MemberId) -> Option<bool> {
            Some(member == MemberId(1))
        }

        fn has_left(&self, _: &RecordKey, member: MemberId) {
            *self.0.lock().unwrap() = Some(member);
        }

        fn time_limit(&self) -> Duration {
            Duration::from_secs(7)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_boxed_store_does_all_that_the_store_does() {
        let left = Arc::default();
        let store = BoxStore::new(Recorder(Arc::clone(&left)));
        let key = RecordKey::of(
            "https://petstore.example",
            &HeaderValue::from_static("Bearer key"),
        );
        let mut apply = |_: Option<&[u8]>, _| Vec::new();
        let updated = store.update(&key, Change::new(MemberId(1), &mut apply));
        assert!(updated.await.unwrap_err().to_string().contains("not this"));
        let forgotten = store.forget(Some(&key)).await.unwrap_err();
        assert!(forgotten.to_string().contains("nothing to"));
        assert_eq!(store.location(), "here");
        assert_eq!(store.is_alive(&key, MemberId(1)), Some(true));
        assert_eq!(store.is_alive(&key, MemberId(2)), Some(false));
        store.has_left(&key, MemberId(2));
        assert_eq!(*left.lock().unwrap(), Some(MemberId(2)));
        assert_eq!(store.time_limit(), Duration::from_secs(7));
    }
}
