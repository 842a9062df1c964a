//! Keeps the limiters of a process, and what is known of each key and origin. That outlives the clients: it is
//! kept until the last window and block have ended.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use url::Url;

use super::limiter::Limiter;
use super::limiter_clock::{LimiterClock, TimeSource};
use super::policy::Policy;
use super::quota::instant::LedgerTime;
use super::settings::Limits;
use super::store::{KeyStore, SharedStore};

/// The maximum number of unused keys.
const MAX_KEPT: usize = 1_024;

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(TimeSource::default()));

/// The keys of a process, found by a digest of key, origin and store. The seeds differ in each process, and neither
/// the key nor the store's password is stored here.
struct Registry {
    seeds: [RandomState; 2],
    keys: Mutex<Keys>,
    clock: Arc<LimiterClock>,
}

#[derive(Default)]
struct Keys {
    by_digest: HashMap<[u64; 2], Key>,
    /// The number of keys at which the next sweep happens.
    sweep_at: usize,
}

/// A key at an origin: where its ledger is, and a limiter for each policy.
struct Key {
    store: Arc<KeyStore>,
    limiters: Vec<(Policy, Arc<Limiter>)>,
}

/// The limiters of a client: one, or one per key with a key provider.
pub(crate) struct ClientLimiters {
    base: Url,
    policy: Policy,
    /// The store through which processes share limits, if any.
    store: Option<SharedStore>,
    /// The limiters of an isolated client.
    isolated: Option<Arc<Registry>>,
    /// The limiter of the last key.
    last: Mutex<Option<(HeaderValue, Arc<Limiter>)>>,
}

impl ClientLimiters {
    pub(crate) fn new(base: Url, limits: Limits) -> Self {
        Self {
            base,
            policy: limits.policy(),
            store: limits.into_store(),
            isolated: None,
            last: Mutex::default(),
        }
    }

    /// Isolates the limiters from other clients. They use the clock of a test, if `time` is given.
    #[cfg(feature = "test-util")]
    pub(crate) fn isolated(self, time: Option<TimeSource>) -> Self {
        Self {
            isolated: Some(Arc::new(Registry::new(time.unwrap_or_default()))),
            ..self
        }
    }

    /// Returns the limiters of a client with another key and the same settings.
    pub(crate) fn of_another_key(&self) -> Self {
        Self {
            base: self.base.clone(),
            policy: self.policy,
            store: self.store.clone(),
            isolated: self.isolated.clone(),
            last: Mutex::default(),
        }
    }

    /// Returns the limiter of a key.
    pub(crate) fn get(&self, authorization: &HeaderValue) -> Arc<Limiter> {
        if let Some((key, limiter)) = &*self.latest()
            && key == authorization
        {
            return Arc::clone(limiter);
        }
        let registry = self.isolated.as_deref().unwrap_or(&REGISTRY);
        let limiter = registry.limiter(&self.base, self.store.as_ref(), self.policy, authorization);
        *self.latest() = Some((authorization.clone(), Arc::clone(&limiter)));
        limiter
    }

    /// Returns the last used limiter.
    pub(crate) fn last(&self) -> Option<Arc<Limiter>> {
        let latest = self.latest();
        latest.as_ref().map(|(_, limiter)| Arc::clone(limiter))
    }

    fn latest(&self) -> MutexGuard<'_, Option<(HeaderValue, Arc<Limiter>)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registry {
    fn new(time: TimeSource) -> Self {
        Self {
            seeds: [RandomState::new(), RandomState::new()],
            keys: Mutex::default(),
            clock: Arc::new(LimiterClock::start(time)),
        }
    }

    fn limiter(
        &self,
        base: &Url,
        store: Option<&SharedStore>,
        policy: Policy,
        authorization: &HeaderValue,
    ) -> Arc<Limiter> {
        let origin = base.origin().ascii_serialization();
        // Two stores with the same settings count as the same store.
        let identity = store.map(SharedStore::identity);
        let key = (&origin, identity, authorization.as_bytes());
        let digest = self.seeds.each_ref().map(|seed| seed.hash_one(&key));
        if let Some(key) = self.keys().by_digest.get_mut(&digest) {
            return key.limiter(policy, &self.clock);
        }
        // The name of a stored ledger is a slow hash, for which no other call should wait.
        let store = match store {
            Some(store) => store.open(&origin, authorization),
            None => KeyStore::Memory(Mutex::default()),
        };
        let mut keys = self.keys();
        keys.sweep(self.clock.now());
        // Another task may have opened it meanwhile.
        let key = keys.by_digest.entry(digest).or_insert_with(|| Key {
            store: Arc::new(store),
            limiters: Vec::new(),
        });
        key.limiter(policy, &self.clock)
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn limiter(&mut self, policy: Policy, clock: &Arc<LimiterClock>) -> Arc<Limiter> {
        // Clients with limits of their own may come and go.
        self.limiters
            .retain(|(known, limiter)| *known == policy || Arc::strong_count(limiter) > 1);
        if let Some((_, limiter)) = self.limiters.iter().find(|(known, _)| *known == policy) {
            return Arc::clone(limiter);
        }
        let limiter = Limiter::new(Arc::clone(clock), Arc::clone(&self.store), policy);
        self.limiters.push((policy, Arc::clone(&limiter)));
        limiter
    }

    fn is_used(&self) -> bool {
        let mut limiters = self.limiters.iter();
        limiters.any(|(_, limiter)| Arc::strong_count(limiter) > 1)
    }

    /// Returns for how long something is still known of the key.
    fn matters_for(&self, now: LedgerTime) -> i64 {
        let (ledger, store_now) = self.store.last_seen(now);
        ledger.idle_from().since(ledger.time(store_now))
    }
}

impl Keys {
    /// Drops unused keys of which nothing is known any more. If too many are left, also drops those whose windows
    /// end first.
    fn sweep(&mut self, now: LedgerTime) {
        if self.by_digest.len() < self.sweep_at {
            return;
        }
        self.by_digest
            .retain(|_, key| key.is_used() || key.matters_for(now) > 0);
        let unused = self.by_digest.iter().filter(|(_, key)| !key.is_used());
        let mut unused: Vec<_> = unused
            .map(|(digest, key)| (key.matters_for(now), *digest))
            .collect();
        if let Some(excess) = unused.len().checked_sub(MAX_KEPT * 3 / 4) {
            unused.sort_unstable();
            for (_, digest) in unused.drain(..excess) {
                self.by_digest.remove(&digest);
            }
        }
        // This keeps the cost of sweeping constant for each new key.
        self.sweep_at = (self.by_digest.len() * 5 / 4).max(16);
    }
}
