//! Stores of the shared ledger: one small record per key, updated atomically.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use super::slot::MemberId;
use crate::rate_limit::quota::clock::{LocalTime, micros};

/// Stores one small record per key and origin, which all members update atomically.
///
/// `FileStore` shares limits between the processes of a machine, and `RedisStore` between machines.
/// A store does not need to understand the record. It is at most 4 KiB long and contains no secret.
/// Implement it with `async fn`.
///
/// ```
/// use std::borrow::Cow;
/// use std::collections::HashMap;
/// use std::sync::Mutex;
/// use std::time::{Duration, Instant};
/// use petstore_client::rate_limit::{Change, LimitStore, RecordKey, StoreError, StoreTime};
///
/// /// Shares limits among the clients of one process, as an example.
/// struct MemoryStore {
///     start: Instant,
///     records: Mutex<HashMap<String, Vec<u8>>>,
/// }
///
/// impl LimitStore for MemoryStore {
///     async fn update(&self, key: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
///         let mut records = self.records.lock().map_err(|error| StoreError::new(error.to_string()))?;
///         let now = StoreTime::new(0, self.start.elapsed());
///         let record = change.apply(records.get(key.as_str()).map(Vec::as_slice), now);
///         records.insert(key.as_str().to_owned(), record);
///         Ok(())
///     }
///
///     async fn forget(&self, key: Option<&RecordKey>) -> Result<(), StoreError> {
///         let mut records = self.records.lock().map_err(|error| StoreError::new(error.to_string()))?;
///         records.retain(|known, _| key.is_some_and(|key| key.as_str() != known));
///         Ok(())
///     }
///
///     fn location(&self) -> Cow<'_, str> {
///         "this process's memory".into()
///     }
/// }
///
/// let store = MemoryStore { start: Instant::now(), records: Mutex::default() };
/// let client = petstore_client::Client::builder("https://petstore.example/v1")
///     .api_key("s3cret")
///     .shared_limits(store)
///     .build()?;
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
pub trait LimitStore: Send + Sync + 'static {
    /// Replaces the record of a key with what [`Change::apply`] returns for it, atomically. If
    /// another member updates the record in between, applies the change again.
    ///
    /// # Errors
    ///
    /// Fails if the store is unreachable. The client then continues alone, and retries later. An
    /// update that takes longer than [`time_limit`](Self::time_limit) counts as failed.
    fn update(
        &self,
        key: &RecordKey,
        change: Change<'_>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Removes the record of a key, or all records.
    ///
    /// # Errors
    ///
    /// Fails if the store is unreachable.
    fn forget(
        &self,
        key: Option<&RecordKey>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns the location of the records for messages, without secrets.
    fn location(&self) -> Cow<'_, str>;

    /// Returns whether a member still runs, if the store can determine that. It must not block.
    /// With `None`, a member counts as dead after 5 s without an update.
    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool> {
        let _ = (key, member);
        None
    }

    /// Called after a member of this process has left the record, so that the store can remove what
    /// it keeps for that member. It must not block. A later update may add the member again.
    fn has_left(&self, key: &RecordKey, member: MemberId) {
        let _ = (key, member);
    }

    /// Returns how long an update may take before the client continues alone (default: 0.8 s). If
    /// the store does not answer, the first call waits for this time.
    fn time_limit(&self) -> Duration {
        Duration::from_millis(800)
    }
}

impl<S: LimitStore> LimitStore for Arc<S> {
    async fn update(&self, key: &RecordKey, change: Change<'_>) -> Result<(), StoreError> {
        S::update(self, key, change).await
    }

    async fn forget(&self, key: Option<&RecordKey>) -> Result<(), StoreError> {
        S::forget(self, key).await
    }

    fn location(&self) -> Cow<'_, str> {
        S::location(self)
    }

    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool> {
        S::is_alive(self, key, member)
    }

    fn has_left(&self, key: &RecordKey, member: MemberId) {
        S::has_left(self, key, member);
    }

    fn time_limit(&self) -> Duration {
        S::time_limit(self)
    }
}

/// The name of a key's record: a keyed hash of the API key and the service's origin, in 32
/// hexadecimal digits.
///
/// ```
/// use std::path::{Path, PathBuf};
/// use petstore_client::rate_limit::RecordKey;
///
/// fn path_of(key: &RecordKey, folder: &Path) -> PathBuf {
///     folder.join(key.as_str())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordKey(pub(crate) String);

impl RecordKey {
    /// Creates the name of a key's record. Checking a guessed key takes a thousand hashes.
    pub(crate) fn of(origin: &str, authorization: &HeaderValue) -> Self {
        let begin = || Sha256::new().chain_update(authorization.as_bytes());
        let mut digest = begin()
            .chain_update(b"\npetstore limits\n")
            .chain_update(origin)
            .finalize();
        for _ in 0..1_000 {
            digest = begin().chain_update(digest).finalize();
        }
        let bytes = digest.iter().take(16);
        Self(bytes.map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

type Apply<'c> = dyn FnMut(Option<&[u8]>, StoreTime) -> Vec<u8> + Send + 'c;

/// A change of a record by a member.
///
/// ```
/// use std::time::Duration;
/// use petstore_client::rate_limit::{Change, StoreTime};
///
/// /// Updates a record that is kept in this process.
/// fn update(record: &mut Option<Vec<u8>>, mut change: Change<'_>, now: Duration) {
///     let now = StoreTime::new(0, now);
///     *record = Some(change.apply(record.as_deref(), now));
/// }
/// ```
pub struct Change<'c> {
    member: MemberId,
    apply: &'c mut Apply<'c>,
}

impl<'c> Change<'c> {
    pub(crate) fn new(member: MemberId, apply: &'c mut Apply<'c>) -> Self {
        Self { member, apply }
    }

    /// Returns the member that makes the change.
    #[must_use]
    pub fn member(&self) -> MemberId {
        self.member
    }

    /// Returns the record that replaces the current one. Can be called again if the record has
    /// changed in the meantime. The last call counts.
    ///
    /// Read `now` just before the call, after every lock: with an old time, members would send before a
    /// quota resets.
    pub fn apply(&mut self, current: Option<&[u8]>, now: StoreTime) -> Vec<u8> {
        (self.apply)(current, now)
    }
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}

/// An instant on a clock that all members share.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use petstore_client::rate_limit::StoreTime;
///
/// // For members on one machine. With a store on another machine, use that one's clock.
/// let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// let now = StoreTime::new(0, since_1970);
/// assert_ne!(now, StoreTime::new(1, since_1970));
/// # Ok::<(), std::time::SystemTimeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreTime {
    epoch: u64,
    since: LocalTime,
}

impl StoreTime {
    /// Creates an instant. Instants of different epochs, such as two boots of a machine, cannot be
    /// compared. From a record of another epoch, the client keeps only the block.
    #[must_use]
    pub fn new(epoch: u64, since: Duration) -> Self {
        Self {
            epoch,
            since: LocalTime(micros(since)),
        }
    }

    pub(crate) fn epoch(self) -> u64 {
        self.epoch
    }

    pub(crate) fn since(self) -> LocalTime {
        self.since
    }
}

/// Why a record could not be updated.
///
/// ```
/// use std::fs;
/// use petstore_client::rate_limit::{RecordKey, StoreError};
///
/// fn read(key: &RecordKey) -> Result<Vec<u8>, StoreError> {
///     fs::read(key.as_str()).map_err(StoreError::new)
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(Box<dyn Error + Send + Sync>);

impl StoreError {
    /// Creates an error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

/// A store of any type.
pub(crate) type SharedStore = Arc<dyn AnyStore>;

type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// A [`LimitStore`] behind a pointer.
pub(crate) trait AnyStore: Send + Sync {
    fn update<'f>(
        &'f self,
        key: &'f RecordKey,
        change: Change<'f>,
    ) -> BoxFuture<'f, Result<(), StoreError>>;
    fn forget<'f>(&'f self, key: Option<&'f RecordKey>) -> BoxFuture<'f, Result<(), StoreError>>;
    fn location(&self) -> Cow<'_, str>;
    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool>;
    fn has_left(&self, key: &RecordKey, member: MemberId);
    fn time_limit(&self) -> Duration;
}

impl<S: LimitStore> AnyStore for S {
    fn update<'f>(
        &'f self,
        key: &'f RecordKey,
        change: Change<'f>,
    ) -> BoxFuture<'f, Result<(), StoreError>> {
        Box::pin(LimitStore::update(self, key, change))
    }

    fn forget<'f>(&'f self, key: Option<&'f RecordKey>) -> BoxFuture<'f, Result<(), StoreError>> {
        Box::pin(LimitStore::forget(self, key))
    }

    fn location(&self) -> Cow<'_, str> {
        LimitStore::location(self)
    }

    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool> {
        LimitStore::is_alive(self, key, member)
    }

    fn has_left(&self, key: &RecordKey, member: MemberId) {
        LimitStore::has_left(self, key, member);
    }

    fn time_limit(&self) -> Duration {
        LimitStore::time_limit(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_all_versions_call_a_record_the_same() {
        let key = RecordKey::of(
            "https://petstore.example",
            &HeaderValue::from_static("Bearer one"),
        );
        assert_eq!(key.as_str(), "af23697551975d2525d1877625970e9f");
    }
}
