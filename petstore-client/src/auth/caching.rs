//! Caches the key of another provider, and keeps it while that provider fails.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

use super::failure::SharedFailure;
use super::key::ApiKey;
use super::provider::ApiKeyProvider;
use crate::clock;
use crate::error::BoxError;
use crate::logging::TARGET;

/// How long calls wait for a new key after the last one has expired.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// The shortest and longest time between two attempts to get a new key.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Caches the key of another provider for some time.
///
/// After four fifths of `ttl`, it asks the provider for the next key in the background. If the
/// provider fails, the cache keeps the last key and logs one warning (target `petstore_client`). It
/// asks again after a fifth of `ttl`, but at least a second and at most a minute later. At most one
/// request to the provider runs at a time. All callers that wait for it get its result, even if that
/// is an error.
///
/// After a 401, it asks the provider at once. If that fails too, the call fails with
/// [`ErrorKind::Credentials`](crate::ErrorKind::Credentials). The key is not dropped: each further call
/// tries it once more, because the service may have rejected it only for a moment.
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

type FailureHook = Arc<dyn Fn(&BoxError) + Send + Sync>;

struct Cache<P> {
    provider: P,
    ttl: Duration,
    hooks: Mutex<Vec<FailureHook>>,
    state: Mutex<CacheState>,
    /// Locked while the provider runs.
    asking: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct CacheState {
    known: Option<Known>,
    /// When the latest request for a new key began, whether or not it has ended.
    asked_at: Option<Instant>,
    is_failing: bool,
    /// How many requests for a key have failed, and the latest failure.
    failures: u64,
    last_failure: Option<SharedFailure>,
    /// How many times the key was invalidated.
    invalidations: u64,
}

#[derive(Clone)]
struct Known {
    key: ApiKey,
    /// When to ask for the next key.
    ask_at: Instant,
    ends_at: Instant,
}

/// What to do for a call.
enum Lookup {
    Use(ApiKey),
    /// Use this key, and ask for the next one meanwhile.
    UseAndRefresh(ApiKey),
    /// Wait for the next key for a short time, then use this one.
    Refresh(ApiKey),
    Ask,
}

impl<P: ApiKeyProvider> CachingProvider<P> {
    /// Caches each key of `provider` for `ttl`.
    pub fn new(provider: P, ttl: Duration) -> Self {
        Self(Arc::new(Cache {
            provider,
            ttl,
            hooks: Mutex::default(),
            state: Mutex::default(),
            asking: Arc::default(),
        }))
    }

    /// Adds a function that receives the error when the warning is logged. That happens once, when
    /// the provider begins to fail and the last key stays in use. The function should return
    /// quickly.
    ///
    /// ```
    /// use std::time::Duration;
    /// use petstore_client::{ApiKey, auth::CachingProvider};
    ///
    /// let keys = CachingProvider::new(ApiKey::new("s3cret"), Duration::from_secs(300))
    ///     .on_failure(|error| eprintln!("the vault is down: {error}"));
    /// # let _ = keys;
    /// ```
    #[must_use]
    pub fn on_failure(self, hook: impl Fn(&BoxError) + Send + Sync + 'static) -> Self {
        lock(&self.0.hooks).push(Arc::new(hook));
        self
    }

    /// Drops the cached key. The next request asks the provider, and fails if the provider fails.
    pub fn invalidate(&self) {
        let mut state = self.0.state();
        state.known = None;
        // A request that is in progress may return the old key.
        state.invalidations += 1;
    }
}

impl<P: ApiKeyProvider> ApiKeyProvider for CachingProvider<P> {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let cache = &self.0;
        match cache.look_up(rejected) {
            Lookup::Use(key) => Ok(key),
            Lookup::UseAndRefresh(key) => {
                cache.refresh();
                Ok(key)
            }
            Lookup::Refresh(key) => {
                cache.refresh();
                Ok(cache.refreshed().await.unwrap_or(key))
            }
            Lookup::Ask => cache.ask_for(rejected).await,
        }
    }
}

impl<P: ApiKeyProvider> Cache<P> {
    fn look_up(&self, rejected: Option<&ApiKey>) -> Lookup {
        let state = self.state();
        let now = clock::now();
        match &state.known {
            Some(known) if rejected != Some(&known.key) => {
                let key = known.key.clone();
                if now < known.ask_at {
                    Lookup::Use(key)
                } else if now < known.ends_at || state.is_failing {
                    Lookup::UseAndRefresh(key)
                } else {
                    Lookup::Refresh(key)
                }
            }
            _ => Lookup::Ask,
        }
    }

    /// Asks for the next key in the background, unless that is in progress.
    fn refresh(self: &Arc<Self>) {
        let Ok(turn) = Arc::clone(&self.asking).try_lock_owned() else {
            return;
        };
        self.state().asked_at = Some(clock::now());
        let cache = Arc::clone(self);
        tokio::spawn(async move { cache.ask(None, &turn).await });
    }

    /// Waits for a limited time until the background request returns a key.
    async fn refreshed(&self) -> Option<ApiKey> {
        let asked_at = self.state().asked_at?;
        let end = clock::after(asked_at, MAX_WAIT);
        let turn = timeout_at(end, self.asking.lock()).await;
        drop(turn);
        self.state().known.as_ref().map(|known| known.key.clone())
    }

    /// Asks the provider for a key, because the cache has no usable one. Shares the result of a
    /// request that is in progress.
    async fn ask_for(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        let failures = self.state().failures;
        let turn = Arc::clone(&self.asking).lock_owned().await;
        if let Lookup::Use(key) = self.look_up(rejected) {
            return Ok(key);
        }
        if let Some(failure) = self.failure_since(failures) {
            return Err(failure.into());
        }
        self.ask(rejected, &turn).await
    }

    /// Returns the latest failure, if there are more than this many.
    fn failure_since(&self, failures: u64) -> Option<SharedFailure> {
        let state = self.state();
        if state.failures == failures {
            return None;
        }
        state.last_failure.clone()
    }

    async fn ask(
        &self,
        rejected: Option<&ApiKey>,
        _turn: &OwnedMutexGuard<()>,
    ) -> Result<ApiKey, BoxError> {
        let invalidations = self.state().invalidations;
        match self.provider.api_key(rejected).await {
            Ok(key) => {
                self.keep(&key, invalidations);
                Ok(key)
            }
            Err(error) => Err(self.fail(error).into()),
        }
    }

    /// Keeps a key, unless it was asked for before the latest of the invalidations.
    fn keep(&self, key: &ApiKey, invalidations: u64) {
        let now = clock::now();
        let mut state = self.state();
        if state.invalidations != invalidations {
            return;
        }
        state.known = Some(Known {
            key: key.clone(),
            ask_at: clock::after(now, self.ttl / 5 * 4),
            ends_at: clock::after(now, self.ttl),
        });
        state.is_failing = false;
    }

    /// Records a failure, and reports it if it is the first of several.
    fn fail(&self, error: BoxError) -> SharedFailure {
        let now = clock::now();
        let mut state = self.state();
        let was_failing = std::mem::replace(&mut state.is_failing, true);
        if let Some(known) = &mut state.known {
            let pause = (self.ttl / 5).clamp(MIN_PAUSE, MAX_PAUSE);
            known.ask_at = clock::after(now, pause);
        }
        let has_key = state.known.is_some();
        drop(state);
        if has_key && !was_failing {
            self.report(&error);
        }
        let failure = SharedFailure::new(error);
        let mut state = self.state();
        state.failures += 1;
        state.last_failure = Some(failure.clone());
        failure
    }

    /// Reports a failure to the hooks and the log.
    fn report(&self, error: &BoxError) {
        let hooks = lock(&self.hooks).clone();
        for hook in hooks {
            hook(error);
        }
        let error = &**error as &(dyn std::error::Error + 'static);
        tracing::warn!(
            target: TARGET,
            error,
            "no new API key: the provider failed; the last key stays in use"
        );
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;
    use crate::auth::provider_fn;

    const TTL: Duration = Duration::from_secs(300);

    /// A vault that counts its readers, takes a second, and can be down.
    fn vault(
        down: &Arc<Mutex<bool>>,
        asked: &Arc<AtomicU32>,
    ) -> CachingProvider<impl ApiKeyProvider> {
        let (down, asked) = (Arc::clone(down), Arc::clone(asked));
        let provider = provider_fn(move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            let is_down = *down.lock().unwrap();
            async move {
                sleep(Duration::from_secs(1)).await;
                if is_down {
                    return Err("the vault is down".into());
                }
                Ok(ApiKey::new(format!("key-{number}")))
            }
        });
        CachingProvider::new(provider, TTL)
    }

    fn key(number: u32) -> ApiKey {
        ApiKey::new(format!("key-{number}"))
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_key_is_fetched_ahead_of_time_without_a_wait() {
        let (down, asked) = (Arc::default(), Arc::default());
        let keys = vault(&down, &asked);
        assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        advance(TTL / 5 * 4 - Duration::from_secs(1)).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        advance(Duration::from_secs(1)).await;
        let start = clock::now();
        for _ in 0..8 {
            assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        }
        assert_eq!(clock::now(), start, "no call waits for the vault");
        sleep(Duration::from_secs(2)).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(2));
        assert_eq!(asked.load(Ordering::Relaxed), 2, "one at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn a_vault_that_is_down_for_an_hour_fails_no_call() {
        let (down, asked) = (Arc::default(), Arc::default());
        let told = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&told);
        let keys = vault(&down, &asked).on_failure(move |error| {
            assert_eq!(error.to_string(), "the vault is down");
            counter.fetch_add(1, Ordering::Relaxed);
        });
        keys.api_key(None).await.unwrap();
        *down.lock().unwrap() = true;
        for _ in 0..3_600 {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        }
        let asked_down = asked.load(Ordering::Relaxed) - 1;
        assert!((50..70).contains(&asked_down), "{asked_down}");
        assert_eq!(told.load(Ordering::Relaxed), 1, "told once");
        *down.lock().unwrap() = false;
        sleep(MAX_PAUSE).await;
        keys.api_key(None).await.unwrap();
        sleep(Duration::from_secs(2)).await;
        assert_ne!(keys.api_key(None).await.unwrap(), key(1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_key_is_replaced_early_without_waiting_for_the_vault() {
        let (down, asked) = (Arc::default(), Arc::default());
        let keys = vault(&down, &asked);
        keys.api_key(None).await.unwrap();
        advance(2 * TTL).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(2));
        *down.lock().unwrap() = true;
        advance(2 * TTL).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(2));
        let start = clock::now();
        assert_eq!(keys.api_key(None).await.unwrap(), key(2));
        assert_eq!(clock::now(), start, "the next call does not wait again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_or_invalid_key_is_asked_for_once() {
        let (down, asked) = (Arc::default(), Arc::default());
        let keys = vault(&down, &asked);
        keys.api_key(None).await.unwrap();
        let rejected = key(1);
        let calls = (0..4).map(|_| keys.api_key(Some(&rejected)));
        for result in futures_util::future::join_all(calls).await {
            assert_eq!(result.unwrap(), key(2));
        }
        keys.invalidate();
        for _ in 0..3 {
            assert_eq!(keys.api_key(None).await.unwrap(), key(3));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3, "once after each");
        *down.lock().unwrap() = true;
        assert!(keys.api_key(Some(&key(3))).await.is_err());
    }

    /// A vault that is down and takes 300 ms to say so.
    fn sealed(asked: &Arc<AtomicU32>) -> CachingProvider<impl ApiKeyProvider> {
        let asked = Arc::clone(asked);
        let provider = provider_fn(move |_| {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            async move {
                sleep(Duration::from_millis(300)).await;
                Err(format!("sealed, {number}").into())
            }
        });
        CachingProvider::new(provider, TTL)
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_wait_for_one_failure_share_it() {
        for callers in [8, 64] {
            let asked = Arc::default();
            let keys = sealed(&asked);
            let began = clock::now();
            let tasks: Vec<_> = (0..callers)
                .map(|_| {
                    let keys = keys.clone();
                    tokio::spawn(async move { keys.api_key(None).await })
                })
                .collect();
            for task in tasks {
                let error = task.await.unwrap().unwrap_err();
                assert_eq!(error.to_string(), "sealed, 1");
            }
            assert_eq!(clock::now() - began, Duration::from_millis(300));
            assert_eq!(asked.load(Ordering::Relaxed), 1);
            let error = keys.api_key(None).await.unwrap_err();
            assert_eq!(error.to_string(), "sealed, 2", "a later caller asks again");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_leaves_the_question_to_the_next() {
        let asked = Arc::default();
        let keys = sealed(&asked);
        let first = tokio::time::timeout(Duration::from_millis(100), keys.api_key(None));
        let (first, second) = tokio::join!(first, keys.api_key(None));
        assert!(first.is_err());
        assert_eq!(second.unwrap_err().to_string(), "sealed, 2");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_fetched_before_it_was_invalidated_is_not_kept() {
        let (down, asked) = (Arc::default(), Arc::default());
        let keys = vault(&down, &asked);
        keys.api_key(None).await.unwrap();
        advance(TTL / 5 * 4).await;
        assert_eq!(keys.api_key(None).await.unwrap(), key(1));
        sleep(Duration::from_millis(500)).await;
        assert_eq!(asked.load(Ordering::Relaxed), 2, "the vault is asked");
        keys.invalidate();
        let calls = (0..8).map(|_| keys.api_key(None));
        for result in futures_util::future::join_all(calls).await {
            assert_eq!(result.unwrap(), key(3));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }
}
