//! Keeps one limiter for each key and origin in a process. A limiter outlives its clients: it is
//! kept until its last window and block have ended.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use http::HeaderValue;
use url::Url;

use super::limiter::Limiter;
use super::shared::member_limiter;
use super::shared::store::SharedStore;
use super::time::TimeSource;
use crate::clock;

/// The maximum number of unused limiters.
const MAX_KEPT: usize = 1_024;

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry::new(TimeSource::default()));

/// The limiters, found by a digest of key and origin. The seeds differ in each process, and the key
/// itself is not stored.
struct Registry {
    seeds: [RandomState; 2],
    limiters: Mutex<Limiters>,
    time: TimeSource,
}

#[derive(Default)]
struct Limiters {
    by_digest: HashMap<[u64; 2], Arc<Limiter>>,
    /// The number of limiters at which the next sweep happens.
    sweep_at: usize,
}

/// The limiters of a client: one, or one per key with a key provider.
pub(crate) struct ClientLimiters {
    base: Url,
    /// The store through which processes share limits, if any.
    store: Option<SharedStore>,
    /// The limiters of an isolated client.
    isolated: Option<Arc<Registry>>,
    /// The limiter of the last key.
    last: Mutex<Option<(HeaderValue, Arc<Limiter>)>>,
}

impl ClientLimiters {
    pub(crate) fn new(base: Url, store: Option<SharedStore>) -> Self {
        Self {
            base,
            store,
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
            store: self.store.clone(),
            isolated: self.isolated.clone(),
            last: Mutex::default(),
        }
    }

    fn registry(&self) -> &Registry {
        self.isolated.as_deref().unwrap_or(&REGISTRY)
    }

    /// Returns the limiter of a key.
    pub(crate) fn get(&self, authorization: &HeaderValue) -> Arc<Limiter> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((key, limiter)) = &*last
            && key == authorization
        {
            return Arc::clone(limiter);
        }
        let limiter = self
            .registry()
            .limiter(&self.base, self.store.as_ref(), authorization);
        *last = Some((authorization.clone(), Arc::clone(&limiter)));
        limiter
    }

    /// Returns the last used limiter.
    pub(crate) fn last(&self) -> Option<Arc<Limiter>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(|(_, limiter)| Arc::clone(limiter))
    }
}

impl Registry {
    fn new(time: TimeSource) -> Self {
        Self {
            seeds: [RandomState::new(), RandomState::new()],
            limiters: Mutex::default(),
            time,
        }
    }

    fn limiter(
        &self,
        base: &Url,
        store: Option<&SharedStore>,
        authorization: &HeaderValue,
    ) -> Arc<Limiter> {
        let origin = base.origin().ascii_serialization();
        // Two stores with the same location count as the same store.
        let location = store.map(|store| store.location());
        let key = (origin.as_str(), location, authorization.as_bytes());
        let digest = self.seeds.each_ref().map(|seed| seed.hash_one(&key));
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = limiters.by_digest.get(&digest) {
            return Arc::clone(limiter);
        }
        limiters.sweep();
        let limiter = match store {
            Some(store) => member_limiter::create(self.time.clone(), store, &origin, authorization),
            None => Limiter::new(self.time.clone()),
        };
        limiters.by_digest.insert(digest, Arc::clone(&limiter));
        limiter
    }
}

impl Limiters {
    /// Drops unused limiters whose windows and blocks have ended. If too many are left, also drops
    /// those whose windows end first.
    fn sweep(&mut self) {
        if self.by_digest.len() < self.sweep_at {
            return;
        }
        let now = clock::now();
        self.by_digest
            .retain(|_, limiter| Arc::strong_count(limiter) > 1 || limiter.idle_from() > now);
        let unused = self
            .by_digest
            .iter()
            .filter(|(_, limiter)| Arc::strong_count(limiter) == 1);
        let mut unused: Vec<_> = unused
            .map(|(key, limiter)| (limiter.idle_from(), *key))
            .collect();
        if let Some(excess) = unused.len().checked_sub(MAX_KEPT * 3 / 4) {
            unused.sort_unstable();
            for (_, digest) in unused.drain(..excess) {
                self.by_digest.remove(&digest);
            }
        }
        // This keeps the cost of sweeping constant for each created limiter.
        self.sweep_at = (self.by_digest.len() * 5 / 4).max(16);
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::time::Duration;

    use http::{HeaderMap, StatusCode};

    use super::super::shared::slot::MemberId;
    use super::super::shared::store::{Change, LimitStore, RecordKey, StoreError};
    use super::super::tests::waiting::acquire;
    use super::*;

    fn get(registry: &Registry, key: &str) -> Arc<Limiter> {
        let base = Url::parse("https://petstore.example/v1").unwrap();
        let limiter = registry.limiter(&base, None, &HeaderValue::from_str(key).unwrap());
        let limiters = registry.limiters.lock().unwrap();
        assert!(
            limiters.by_digest.len() <= limiters.sweep_at,
            "each new limiter sweeps"
        );
        limiter
    }

    async fn block(limiter: &Limiter, seconds: u64) {
        let permit = limiter.acquire(acquire(), |_| ()).await.unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", seconds.into());
        permit
            .observe(StatusCode::TOO_MANY_REQUESTS, &headers)
            .unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_block_is_known_after_the_last_client_is_gone() {
        let registry = Registry::new(TimeSource::default());
        block(&get(&registry, "Bearer one"), 30).await;
        for other in 0..100 {
            get(&registry, &format!("Bearer other {other}"));
        }
        assert_eq!(
            get(&registry, "Bearer one")
                .view(&acquire().policy)
                .throttled,
            1
        );
        tokio::time::advance(Duration::from_secs(31)).await;
        for other in 100..200 {
            get(&registry, &format!("Bearer other {other}"));
        }
        assert_eq!(
            get(&registry, "Bearer one")
                .view(&acquire().policy)
                .throttled,
            0
        );
        assert!(registry.limiters.lock().unwrap().by_digest.len() <= 32);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded_and_early_blocks_are_forgotten_first() {
        let registry = Registry::new(TimeSource::default());
        let held = get(&registry, "Bearer held");
        block(&get(&registry, "Bearer long"), 80_000).await;
        for key in 0..5_000 {
            block(&get(&registry, &format!("Bearer {key}")), 100 + key).await;
        }
        let count = registry.limiters.lock().unwrap().by_digest.len();
        assert!(
            (MAX_KEPT * 3 / 4..=MAX_KEPT + 2).contains(&count),
            "{count}"
        );
        let throttled = |key| get(&registry, &format!("Bearer {key}")).view(&acquire().policy);
        assert!((4_300..5_000).all(|key| throttled(key).throttled == 1));
        assert_eq!(
            get(&registry, "Bearer long")
                .view(&acquire().policy)
                .throttled,
            1
        );
        assert!(
            Arc::ptr_eq(&held, &get(&registry, "Bearer held")),
            "a client holds it"
        );
    }

    #[test]
    fn each_key_and_origin_has_its_own_limiter() {
        let registry = Registry::new(TimeSource::default());
        let one = get(&registry, "Bearer one");
        assert!(Arc::ptr_eq(&one, &get(&registry, "Bearer one")));
        assert!(!Arc::ptr_eq(&one, &get(&registry, "Bearer two")));
        let elsewhere = Url::parse("https://petstore.example:444/v1").unwrap();
        let elsewhere = registry.limiter(&elsewhere, None, &HeaderValue::from_static("Bearer one"));
        assert!(!Arc::ptr_eq(&one, &elsewhere));
    }

    #[test]
    fn a_client_whose_key_changes_uses_the_limiter_of_each_key() {
        let base = Url::parse("https://petstore.example/v1").unwrap();
        let limiters = ClientLimiters::new(base, None);
        let [one, two] = ["Bearer first", "Bearer second"].map(HeaderValue::from_static);
        let (first, second) = (limiters.get(&one), limiters.get(&two));
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&first, &limiters.get(&one)));
        assert!(
            limiters
                .last()
                .is_some_and(|last| Arc::ptr_eq(&last, &first))
        );
    }

    /// A store that fails.
    struct Failing;

    impl LimitStore for Failing {
        async fn update(&self, _: &RecordKey, _: Change<'_>) -> Result<(), StoreError> {
            Err(StoreError::new("update"))
        }

        async fn forget(&self, _: Option<&RecordKey>) -> Result<(), StoreError> {
            Err(StoreError::new("forget"))
        }

        fn location(&self) -> Cow<'_, str> {
            "nowhere".into()
        }

        fn is_alive(&self, _: &RecordKey, member: MemberId) -> Option<bool> {
            Some(member == MemberId(1))
        }
    }

    #[tokio::test]
    async fn a_store_that_clients_share_is_asked_for_everything() {
        let store: SharedStore = Arc::new(Arc::new(Failing));
        let key = RecordKey::of("", &HeaderValue::from_static("x"));
        let mut apply = |_: Option<&[u8]>, _| Vec::new();
        let updated = store
            .update(&key, Change::new(MemberId(1), &mut apply))
            .await;
        let errors = [updated, store.forget(None).await].map(|result| result.unwrap_err());
        assert_eq!(errors.map(|error| error.to_string()), ["update", "forget"]);
        assert_eq!(store.location(), "nowhere");
        let alive = [1, 2].map(|member| store.is_alive(&key, MemberId(member)));
        assert_eq!(alive, [Some(true), Some(false)]);
    }
}
