//! Stores of the shared ledger: one small record per key, updated atomically.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::division::{Granted, Report};
use super::slot::MemberId;
use crate::rate_limit::quota::clock::{LocalTime, SECOND, ServiceTime, micros};
use crate::rate_limit::quota::decision::Policy;
use crate::rate_limit::quota::ledger::Ledger;

/// The version of the format. A record with another version is replaced.
const FORMAT: u8 = 1;
/// The maximum size of a record. It fits in a page of 4 KiB with the store's own data.
const MAX_RECORD: usize = 4_000;

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
    /// update that takes more than 0.8 s counts as failed.
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
}

/// The name of a key's record: a keyed hash of the API key and the service's origin, in 32
/// hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordKey(pub(crate) String);

impl RecordKey {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

type Apply<'c> = dyn FnMut(Option<&[u8]>, StoreTime) -> Vec<u8> + Send + 'c;

/// A change of a record by a member.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreTime {
    epoch: u64,
    pub(crate) since: LocalTime,
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
}

/// Why a record could not be updated.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(Box<dyn Error + Send + Sync>);

impl StoreError {
    /// Creates an error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }
}

/// The content of a record after its format.
#[derive(Serialize, Deserialize)]
struct Record<L> {
    epoch: u64,
    /// When it was written, on the store's clock and the wall clock.
    at: LocalTime,
    wall: ServiceTime,
    ledger: L,
}

/// Encodes a record of at most 4 KiB.
fn encode(ledger: &Ledger, now: StoreTime, wall: ServiceTime) -> Vec<u8> {
    let record = Record {
        epoch: now.epoch,
        at: now.since,
        wall,
        ledger,
    };
    // Serialization cannot fail, and an empty record counts as missing.
    postcard::to_extend(&record, vec![FORMAT]).unwrap_or_default()
}

/// Decodes a record; `None` if it is damaged or has another format. From a record of another epoch,
/// or from before the store's clock was set back, only the block of a 429 is kept, and the wall
/// clock determines its rest.
fn decode(record: &[u8], now: StoreTime, wall_now: ServiceTime) -> Option<Ledger> {
    let record = record.strip_prefix(&[FORMAT])?;
    let Record::<Ledger> {
        epoch,
        at,
        wall,
        ledger,
    } = postcard::from_bytes(record).ok()?;
    if !ledger.is_plausible() {
        return None;
    }
    if epoch == now.epoch && at <= now.since.moved(SECOND) {
        return Some(ledger);
    }
    let passed = micros(wall_now.since(wall));
    let by = now.since.0.saturating_sub(at.0).saturating_sub(passed);
    let mut fresh = Ledger::new(now.since, wall_now);
    fresh.blocked = ledger.blocked.map(|block| block.moved(by));
    Some(fresh)
}

/// Updates a member's part of a record, and restores a lost record from the member's `copy`.
/// Returns the new record, its content, and what the member gets.
pub(crate) fn update_record(
    current: Option<&[u8]>,
    (at, now, wall): (StoreTime, LocalTime, ServiceTime),
    (me, report): (MemberId, &Report),
    policy: &Policy,
    is_alive: impl Fn(MemberId) -> bool,
    copy: impl FnOnce() -> Option<Ledger>,
) -> Result<(Vec<u8>, Ledger, Granted), &'static str> {
    let known = current.and_then(|current| decode(current, at, wall));
    let mut ledger = known
        .or_else(copy)
        .unwrap_or_else(|| Ledger::new(now, wall));
    ledger.expire_members(now, |other| other == me || is_alive(other));
    if !ledger.admits(me, now) {
        return Err("it has the maximum number of members");
    }
    let granted = ledger.update(me, report, policy, now);
    let record = if report.leaves {
        let mut others = ledger.clone();
        others.slots.retain(|slot| slot.id != me);
        encode(&others, at, wall)
    } else {
        encode(&ledger, at, wall)
    };
    if record.len() > MAX_RECORD {
        return Err("the limits do not fit into a record");
    }
    Ok((record, ledger, granted))
}

/// The record of a key in a store.
pub(crate) struct SharedRecord {
    pub(crate) store: Arc<dyn AnyStore>,
    pub(crate) key: RecordKey,
}

type BoxFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// A store of any type.
pub(crate) trait AnyStore: Send + Sync {
    fn update<'f>(
        &'f self,
        key: &'f RecordKey,
        change: Change<'f>,
    ) -> BoxFuture<'f, Result<(), StoreError>>;
    fn forget<'f>(&'f self, key: Option<&'f RecordKey>) -> BoxFuture<'f, Result<(), StoreError>>;
    fn location(&self) -> Cow<'_, str>;
    fn is_alive(&self, key: &RecordKey, member: MemberId) -> Option<bool>;
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limit::quota::reading::Block;
    use crate::rate_limit::quota::window::Window;
    use crate::rate_limit::tests::rules::reading;
    use crate::rate_limit::view::BlockReason;

    const HOUR: i64 = 3_600 * SECOND;

    fn at(epoch: u64, hours: i64) -> StoreTime {
        StoreTime {
            epoch,
            since: LocalTime(hours * HOUR),
        }
    }

    /// A record of the tenth hour, by both clocks, with a block of three more hours.
    fn record() -> Vec<u8> {
        let mut ledger = Ledger::new(LocalTime(0), ServiceTime(0));
        let (until, named) = (LocalTime(13 * HOUR), ServiceTime(13 * HOUR));
        ledger.blocked = Some(Block {
            until,
            named,
            reason: BlockReason::Ban,
        });
        ledger.slot(MemberId(1)).reserved = 5;
        encode(&ledger, at(1, 10), ServiceTime(10 * HOUR))
    }

    /// Returns for how many hours the record still blocks.
    fn blocked(now: StoreTime, wall: i64) -> Option<i64> {
        let ledger = decode(&record(), now, ServiceTime(wall * HOUR)).unwrap();
        ledger
            .blocked
            .map(|block| (block.until.0 - now.since.0) / HOUR)
    }

    #[test]
    fn a_wall_clock_that_is_set_changes_nothing_while_the_machine_runs() {
        for wall in [0, 11, 500] {
            assert_eq!(blocked(at(1, 11), wall), Some(2), "{wall}");
        }
    }

    #[test]
    fn a_block_outlives_a_reboot_by_the_wall_clock_and_nothing_else_does() {
        assert_eq!(blocked(at(2, 0), 11), Some(2));
        // The wall clock was set back meanwhile: no time has passed for it.
        assert_eq!(blocked(at(2, 0), 1), Some(3));
        let ledger = decode(&record(), at(2, 0), ServiceTime(11 * HOUR)).unwrap();
        assert_eq!(ledger.reserved(), 0);
        assert_eq!(
            decode(&record(), at(1, 11), ServiceTime(0))
                .unwrap()
                .reserved(),
            5
        );
    }

    #[test]
    fn a_record_from_the_future_is_from_before_the_stores_clock_was_set_back() {
        assert_eq!(blocked(at(1, 4), 11), Some(2));
    }

    #[test]
    fn a_truncated_record_or_one_of_another_format_is_ignored() {
        let record = record();
        let now = at(1, 11);
        for length in 0..record.len() {
            assert!(
                decode(&record[..length], now, ServiceTime(0)).is_none(),
                "{length}"
            );
        }
        let other = [&[FORMAT + 1], &record[1..]].concat();
        assert!(decode(&other, now, ServiceTime(0)).is_none());
    }

    #[test]
    fn a_member_that_the_store_knows_to_be_dead_holds_no_reservations() {
        let me = MemberId(2);
        for (is_dead, reserved, lost) in [(false, 5, 0), (true, 0, 5)] {
            let (_, ledger, _) = update_record(
                Some(&record()),
                (at(1, 11), LocalTime(11 * HOUR), ServiceTime(11 * HOUR)),
                (me, &Report::default()),
                &Policy::default(),
                |other| other != me && !is_dead,
                || None,
            )
            .unwrap();
            assert_eq!(
                (ledger.reserved(), ledger.lost.count()),
                (reserved, lost),
                "{is_dead}"
            );
            assert_eq!(
                ledger.members(LocalTime(11 * HOUR)),
                2 - usize::from(is_dead)
            );
        }
    }

    /// Updates a record as a member that leaves, with a copy to restore it from.
    fn leave(current: Option<&[u8]>, copy: Ledger) -> Result<(Vec<u8>, Ledger), &'static str> {
        let report = Report {
            leaves: true,
            ..Report::default()
        };
        let now = (at(1, 11), LocalTime(11 * HOUR), ServiceTime(11 * HOUR));
        let (me, policy) = (MemberId(2), Policy::default());
        let updated = update_record(
            current,
            now,
            (me, &report),
            &policy,
            |_| true,
            || Some(copy),
        )?;
        Ok((updated.0, updated.1))
    }

    #[test]
    fn a_member_that_leaves_removes_itself_alone() {
        let (written, known) =
            leave(Some(&record()), Ledger::new(LocalTime(0), ServiceTime(0))).unwrap();
        let members = |ledger: &Ledger| {
            ledger
                .slots
                .iter()
                .map(|slot| slot.id.0)
                .collect::<Vec<_>>()
        };
        let written = decode(&written, at(1, 11), ServiceTime(11 * HOUR)).unwrap();
        assert_eq!((members(&written), members(&known)), (vec![1], vec![1, 2]));
    }

    #[test]
    fn a_record_that_is_too_large_is_not_written() {
        let mut copy = Ledger::new(LocalTime(0), ServiceTime(0));
        let window = |_| {
            Window::open(
                reading(1_000, 900, 60).unwrap(),
                (1_000, 1),
                None,
                (LocalTime(0), ServiceTime(0)),
            )
        };
        copy.windows = (0..1_000).map(window).collect();
        assert!(leave(None, copy).is_err_and(|problem| problem.contains("do not fit")));
    }

    #[test]
    fn a_record_of_the_most_members_with_the_largest_figures_is_no_larger_than_it_may_be() {
        let mut ledger = Ledger::new(LocalTime(i64::MAX), ServiceTime(i64::MAX));
        for member in 0..64 {
            let slot = ledger.slot(MemberId(u64::MAX - member));
            (slot.reserved, slot.want, slot.got) = (1 << 32, 1 << 20, 1 << 32);
            (slot.previous, slot.weighted_use) = (1 << 32, 1 << 44);
        }
        let length = encode(&ledger, at(u64::MAX, 1 << 20), ServiceTime(i64::MAX)).len();
        assert!(length <= MAX_RECORD, "{length}");
    }
}
