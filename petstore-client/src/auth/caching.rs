//! Caches the key of another provider, and keeps it while that provider fails.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::key::ApiKey;
use super::provider::{ApiKeyProvider, SharedFailure, share};
use crate::clock;
use crate::error::BoxError;
use crate::logging::TARGET;

/// How long a call waits for the next key after the last one has expired.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// The shortest and longest time from a failure of the provider to the next request for a key.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Caches each key of another provider for `ttl`.
///
/// One request to the provider runs at a time, and all calls that need its key get its result. After
/// four fifths of `ttl`, the cache asks for the next key in the background. After `ttl`, one call
/// waits for that key, for at most two seconds.
///
/// If the provider fails, the last key stays in use, and one warning is logged (target
/// `petstore_client`). The cache asks again after a fifth of `ttl`: at least a second, at most a minute.
///
/// After a 401, the cache asks at once. If the provider fails then, the call fails with
/// [`ErrorKind::Credentials`](crate::ErrorKind::Credentials). The next call tries the last key once more,
/// because the service may have rejected it only for a moment.
///
/// Clones share the key. To [`invalidate`](Self::invalidate) it later, keep one.
///
/// ```
/// use std::time::Duration;
/// use petstore_client::auth::{CachingProvider, provider_fn};
/// use petstore_client::{ApiKey, Client};
///
/// let vault = provider_fn(|_rejected| async { Ok(ApiKey::new("from the vault")) });
/// let keys = CachingProvider::new(vault, Duration::from_secs(300));
/// let client = Client::builder("https://petstore.example/v1")
///     .api_key_provider(keys.clone())
///     .build()?;
/// // The program learns of a rotation.
/// keys.invalidate();
/// # let _ = client;
/// # Ok::<(), petstore_client::Error>(())
/// ```
pub struct CachingProvider<P>(Arc<Cache<P>>);

struct Cache<P> {
    provider: P,
    ttl: Duration,
    state: Mutex<CacheState>,
    /// Locked while the provider runs.
    asking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct CacheState {
    known: Option<Known>,
    /// How many times the key was invalidated.
    invalidations: u64,
    /// The latest failure, and when it happened. `None` after a success.
    failure: Option<(Instant, SharedFailure)>,
}

#[derive(Clone)]
struct Known {
    key: ApiKey,
    refresh_at: Instant,
    expires_at: Instant,
}

impl<P: ApiKeyProvider> CachingProvider<P> {
    /// Caches each key of `provider` for `ttl`.
    pub fn new(provider: P, ttl: Duration) -> Self {
        Self(Arc::new(Cache {
            provider,
            ttl,
            state: Mutex::default(),
            asking: Arc::default(),
        }))
    }

    /// Drops the cached key. The next request asks the provider, and fails if the provider fails.
    pub fn invalidate(&self) {
        let mut state = self.0.state();
        state.known = None;
        state.invalidations += 1;
    }
}

impl<P: ApiKeyProvider> ApiKeyProvider for CachingProvider<P> {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let cache = &self.0;
        let Some(known) = cache.known(rejected) else {
            return cache.next_key(rejected).await;
        };
        let now = clock::now();
        if now >= known.refresh_at
            && let Some(refresh) = cache.refresh()
            && now >= known.expires_at
            && let Ok(Ok(Ok(next))) = timeout(MAX_WAIT, refresh).await
        {
            return Ok(next);
        }
        Ok(known.key)
    }
}

impl<P: ApiKeyProvider> Cache<P> {
    /// Returns the last key, unless it is the rejected one.
    fn known(&self, rejected: Option<&ApiKey>) -> Option<Known> {
        let known = self.state().known.clone()?;
        (rejected != Some(&known.key)).then_some(known)
    }

    /// Asks for the next key in the background, unless the provider already runs.
    fn refresh(self: &Arc<Self>) -> Option<JoinHandle<Result<ApiKey, BoxError>>> {
        let turn = Arc::clone(&self.asking).try_lock_owned().ok()?;
        let cache = Arc::clone(self);
        Some(tokio::spawn(async move {
            let result = cache.ask(None).await;
            drop(turn);
            result
        }))
    }

    /// Waits for the next key. Shares the result of a request that is in progress.
    async fn next_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let began = clock::now();
        let _turn = self.asking.lock().await;
        if let Some(known) = self.known(rejected) {
            return Ok(known.key);
        }
        if let Some((at, failure)) = &self.state().failure
            && *at > began
        {
            return Err(failure.clone().into());
        }
        self.ask(rejected).await
    }

    /// Asks the provider. The caller holds the lock `asking`.
    async fn ask(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let invalidations = self.state().invalidations;
        let result = self.provider.api_key(rejected).await;
        let now = clock::now();
        let mut state = self.state();
        match result {
            Ok(key) => {
                state.failure = None;
                // A key that was asked for before an invalidation may be the old one.
                if state.invalidations == invalidations {
                    state.known = Some(Known {
                        key: key.clone(),
                        refresh_at: clock::after(now, self.ttl / 5 * 4),
                        expires_at: clock::after(now, self.ttl),
                    });
                }
                Ok(key)
            }
            Err(error) => {
                let failure = share(error);
                let before = state.failure.replace((now, failure.clone()));
                if let Some(known) = &mut state.known {
                    let pause = (self.ttl / 5).clamp(MIN_PAUSE, MAX_PAUSE);
                    known.refresh_at = clock::after(now, pause);
                    drop(state);
                    if before.is_none() {
                        warn(&failure);
                    }
                }
                Err(failure.into())
            }
        }
    }
}

impl<P> Cache<P> {
    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn(failure: &SharedFailure) {
    // Subscribers show the causes of an error only if the field has this type.
    let error: &(dyn std::error::Error + 'static) = failure;
    tracing::warn!(
        target: TARGET,
        error,
        "no new API key: the provider failed; the last key stays in use"
    );
}

impl<P> Clone for CachingProvider<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P> fmt::Debug for CachingProvider<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachingProvider")
            .field("ttl", &self.0.ttl)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use futures_util::future::join_all;
    use tokio::time::{advance, sleep};

    use super::*;
    use crate::auth::provider_fn;

    const TTL: Duration = Duration::from_secs(300);
    const SECOND: Duration = Duration::from_secs(1);

    /// A vault that counts its readers, takes a second, and can be down.
    #[derive(Default)]
    struct Vault {
        asked: AtomicU32,
        is_down: AtomicBool,
    }

    impl Vault {
        fn cached(self: &Arc<Self>) -> CachingProvider<Arc<Self>> {
            CachingProvider::new(Arc::clone(self), TTL)
        }

        fn asked(&self) -> u32 {
            self.asked.load(Ordering::Relaxed)
        }

        fn set_down(&self, is_down: bool) {
            self.is_down.store(is_down, Ordering::Relaxed);
        }
    }

    impl ApiKeyProvider for Vault {
        async fn api_key(&self, _: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
            let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            sleep(SECOND).await;
            match self.is_down.load(Ordering::Relaxed) {
                true => Err(format!("sealed, {number}").into()),
                false => Ok(key(number)),
            }
        }
    }

    fn key(number: u32) -> ApiKey {
        ApiKey::new(format!("key-{number}"))
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_key_is_fetched_ahead_of_time_without_a_wait() {
        let vault = Arc::new(Vault::default());
        let keys = vault.cached();
        assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        advance(TTL / 5 * 4 - SECOND).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        assert_eq!(vault.asked(), 1);
        advance(SECOND).await;
        let start = clock::now();
        for _ in 0..8 {
            assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        }
        assert_eq!(clock::now(), start, "no call waits for the vault");
        sleep(2 * SECOND).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(2));
        assert_eq!(vault.asked(), 2, "one at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_vault_that_is_down_for_an_hour_ends_no_call() {
        let vault = Arc::new(Vault::default());
        let keys = vault.cached();
        keys.api_key(None).await.unwrap();
        vault.set_down(true);
        for _ in 0..3_600 {
            sleep(SECOND).await;
            assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        }
        let asked_down = vault.asked() - 1;
        assert!((50..70).contains(&asked_down), "{asked_down}");
        vault.set_down(false);
        sleep(MAX_PAUSE).await;
        assert_ne!(keys.api_key(None).await.unwrap(), key(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_vault_that_hangs_delays_one_call() {
        let asked = Arc::new(AtomicU32::new(0));
        let vault = provider_fn(move |_| {
            let is_first = asked.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if !is_first {
                    std::future::pending::<()>().await;
                }
                Ok(key(1))
            }
        });
        let keys = CachingProvider::new(vault, TTL);
        keys.api_key(None).await.unwrap();
        advance(2 * TTL).await;
        let start = clock::now();
        for _ in 0..8 {
            assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        }
        assert_eq!(clock::now() - start, MAX_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_or_invalid_key_is_asked_for_once() {
        let vault = Arc::new(Vault::default());
        let keys = vault.cached();
        keys.api_key(None).await.unwrap();
        let rejected = key(1);
        for result in join_all((0..4).map(|_| keys.api_key(Some(&rejected)))).await {
            assert_eq!(result.unwrap(), key(2));
        }
        keys.invalidate();
        for result in join_all((0..4).map(|_| keys.api_key(None))).await {
            assert_eq!(result.unwrap(), key(3));
        }
        assert_eq!(vault.asked(), 3, "once after each");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_fetched_before_it_was_invalidated_is_not_kept() {
        let vault = Arc::new(Vault::default());
        let keys = vault.cached();
        keys.api_key(None).await.unwrap();
        advance(TTL / 5 * 4).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        sleep(SECOND / 2).await;
        assert_eq!(vault.asked(), 2, "the vault is asked");
        keys.invalidate();
        for result in join_all((0..8).map(|_| keys.api_key(None))).await {
            assert_eq!(result.unwrap(), key(3));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_leaves_the_question_to_the_next() {
        let vault = Arc::new(Vault::default());
        let keys = vault.cached();
        let first = timeout(SECOND / 2, keys.api_key(None));
        let (first, second) = tokio::join!(first, keys.api_key(None));
        assert!(first.is_err());
        assert_eq!(second.unwrap(), key(2));
    }
}
