//! Where a key's ledger lives: in this process, in a file, or in Redis. A store has one operation, the exchange
//! of a report for an answer, which is atomic.

#[cfg(feature = "file-store")]
pub(crate) mod file;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(test)]
pub(crate) mod simulated;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
#[cfg(any(feature = "file-store", feature = "redis"))]
use sha2::{Digest as _, Sha256};

use super::quota::instant::LedgerTime;
use super::quota::{Answer, Ledger, Report};

/// The number of the format, in the names of files and streams. All replicas of a stream must apply equal rules to
/// equal bytes. Raise it with any change of the rules, the report or the ledger. Processes with different numbers
/// share nothing.
#[cfg(any(feature = "file-store", feature = "redis"))]
const FORMAT: u32 = 2;

/// A store that processes share, for [`Limits::store`](crate::limits::Limits::store): a `FileStore` or a `RedisStore`.
#[derive(Debug, Clone)]
pub struct SharedStore(Kind);

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "a client has one")]
enum Kind {
    #[cfg(feature = "file-store")]
    File(file::FileStore),
    #[cfg(feature = "redis")]
    Redis(redis::RedisStore),
}

/// The store of one key's ledger.
#[allow(clippy::large_enum_variant, reason = "a key has one")]
pub(crate) enum KeyStore {
    /// The memory of this process.
    Memory(Mutex<Ledger>),
    #[cfg(feature = "file-store")]
    File(file::LedgerFile),
    #[cfg(feature = "redis")]
    Redis(redis::LedgerStream),
    #[cfg(test)]
    Simulated(simulated::SimulatedStore),
}

/// Why a store cannot be used. Its text never contains a key or a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError(String);

impl StoreError {
    pub(crate) fn new(problem: impl fmt::Display) -> Self {
        Self(problem.to_string())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

#[cfg(feature = "file-store")]
impl From<file::FileStore> for SharedStore {
    fn from(store: file::FileStore) -> Self {
        Self(Kind::File(store))
    }
}

#[cfg(feature = "redis")]
impl From<redis::RedisStore> for SharedStore {
    fn from(store: redis::RedisStore) -> Self {
        Self(Kind::Redis(store))
    }
}

impl SharedStore {
    /// Opens the ledger of a key at an origin. This does not use the store yet.
    #[cfg_attr(
        not(any(feature = "file-store", feature = "redis")),
        expect(unused_variables, reason = "no store exists")
    )]
    pub(crate) fn open(&self, origin: &str, authorization: &HeaderValue) -> KeyStore {
        match self.0 {
            #[cfg(feature = "file-store")]
            Kind::File(ref store) => KeyStore::File(store.ledger(&name_of(origin, authorization))),
            #[cfg(feature = "redis")]
            Kind::Redis(ref store) => {
                KeyStore::Redis(store.ledger(&name_of(origin, authorization)))
            }
        }
    }

    /// Returns all settings, which tell it from other stores. They may include a password.
    pub(crate) fn identity(&self) -> Vec<&[u8]> {
        match self.0 {
            #[cfg(feature = "file-store")]
            Kind::File(ref store) => store.identity().to_vec(),
            #[cfg(feature = "redis")]
            Kind::Redis(ref store) => store.identity().to_vec(),
        }
    }
}

impl KeyStore {
    /// Exchanges a report at once; `None` if that would take time. `now` is the time on the clock of the process.
    pub(crate) fn try_exchange(
        &self,
        report: &Report,
        now: LedgerTime,
    ) -> Option<Result<Answer, StoreError>> {
        match self {
            Self::Memory(ledger) => Some(Ok(exchange_in_memory(ledger, report, now))),
            #[cfg(feature = "file-store")]
            Self::File(store) => store.try_exchange(report),
            #[cfg(feature = "redis")]
            Self::Redis(_) => None,
            #[cfg(test)]
            Self::Simulated(_) => None,
        }
    }

    #[cfg_attr(
        not(any(feature = "file-store", feature = "redis")),
        expect(
            clippy::unused_async,
            reason = "only the memory of a process is a store"
        )
    )]
    pub(crate) async fn exchange(
        &self,
        report: &Report,
        now: LedgerTime,
    ) -> Result<Answer, StoreError> {
        match self {
            Self::Memory(ledger) => Ok(exchange_in_memory(ledger, report, now)),
            #[cfg(feature = "file-store")]
            Self::File(store) => store.exchange(report).await,
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.exchange(report).await,
            #[cfg(test)]
            Self::Simulated(store) => store.exchange(report).await,
        }
    }

    /// Returns the ledger as this process saw it last, and the time on the store's clock.
    pub(crate) fn last_seen(&self, now: LedgerTime) -> (Ledger, LedgerTime) {
        match self {
            Self::Memory(ledger) => (lock(ledger).clone(), now),
            #[cfg(feature = "file-store")]
            Self::File(store) => store.last_seen(),
            #[cfg(feature = "redis")]
            Self::Redis(store) => store.last_seen(),
            #[cfg(test)]
            Self::Simulated(store) => store.last_seen(),
        }
    }

    /// Returns whether only this process uses it.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Returns where a shared store is, without secrets.
    pub(crate) fn location(&self) -> Option<String> {
        match self {
            Self::Memory(_) => None,
            #[cfg(feature = "file-store")]
            Self::File(store) => Some(store.location()),
            #[cfg(feature = "redis")]
            Self::Redis(store) => Some(store.location()),
            #[cfg(test)]
            Self::Simulated(_) => Some("simulated".to_owned()),
        }
    }
}

fn exchange_in_memory(ledger: &Mutex<Ledger>, report: &Report, now: LedgerTime) -> Answer {
    let mut ledger = lock(ledger);
    // Its holders are clients of this process, which do not die.
    ledger.keep_alive(now);
    ledger.exchange(report, now)
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of a ledger: a hash of the key and the origin, in 32 hexadecimal digits. Checking a
/// guessed key takes a thousand hashes.
#[cfg(any(feature = "file-store", feature = "redis"))]
fn name_of(origin: &str, authorization: &HeaderValue) -> String {
    let begin = || Sha256::new().chain_update(authorization.as_bytes());
    let mut digest = begin()
        .chain_update(b"\npetstore limits\n")
        .chain_update(origin)
        .finalize();
    for _ in 0..1_000 {
        digest = begin().chain_update(digest).finalize();
    }
    let bytes = digest.iter().take(16);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}
