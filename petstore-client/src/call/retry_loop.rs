//! The retry loop: authorize, acquire a permit, send, decide, wait, repeat.
//!
//! All decisions are made by the arguments: the credentials, the limiter and the retry policy. The
//! observer records what happens. The loop itself knows neither sockets nor events.

use std::time::Duration;

use http::Method;
use tokio::time::{Instant, timeout_at};

use super::limits::CallLimits;
use super::observer::Observer;
use crate::auth::{Credential, Credentials};
use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::rate_limit::{Acquire, ClientLimiters, Limiter, Permit, Policy};
use crate::request::Request;
use crate::retry::{Retries, RetryDecision};

/// After a longer wait, the call asks the key provider again: the key may have rotated.
const REAUTHORIZE_AFTER: Duration = Duration::from_secs(5);

/// Sends one attempt of a call.
pub(super) trait Sender {
    /// A success.
    type Answer;

    /// Sends the request once. Uses up the permit. Returns a complete error for anything other than a
    /// success.
    fn send(
        &mut self,
        credential: &Credential,
        limiter: &Limiter,
        permit: Permit<'_>,
        observer: &mut Observer<'_>,
    ) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// What limits a call and its retries.
#[derive(Clone, Copy)]
pub(super) struct Rules<'c> {
    /// The request says whether it is idempotent.
    pub(super) request: &'c Request,
    /// The deadline, the number of attempts and the maximum wait.
    pub(super) limits: &'c CallLimits,
    /// The back-off, the budget and the classifier.
    pub(super) retries: &'c Retries,
    /// How the client uses the quotas.
    pub(super) policy: Policy,
}

/// Sends a request as often as the rules allow.
pub(super) async fn retry_loop<S: Sender, F: Future<Output = ()>>(
    rules: Rules<'_>,
    credentials: &Credentials,
    limiters: &ClientLimiters,
    sender: &mut S,
    sleep: impl Fn(Duration) -> F,
    observer: &mut Observer<'_>,
) -> Result<S::Answer, Error> {
    let limits = rules.limits;
    let mut progress = Progress::new(rules);
    let mut schedule = rules.retries.schedule();
    let mut replacement = None;
    loop {
        let is_replacement = replacement.is_some();
        let credential = match replacement.take() {
            Some(credential) => credential,
            None => limits.in_time(credentials.get()).await?,
        };
        let limiter = limiters.get(&credential.authorization);
        let (permit, waited) = progress.acquire(&limiter, observer).await?;
        if waited > REAUTHORIZE_AFTER && credential.may_rotate() && !is_replacement {
            // The provider may be slow. Without the permit, other calls do not have to wait for it.
            permit.not_sent();
            replacement = Some(limits.in_time(credentials.get()).await?);
            continue;
        }
        let sent = clock::now();
        if sent >= limits.deadline() {
            permit.not_sent();
            return Err(limits.timed_out(false));
        }
        let result = sender.send(&credential, &limiter, permit, observer).await;
        let error = match result {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match rules.retries.decide(&error, rules.request) {
            RetryDecision::Fail => return Err(explained(error, rules.request)),
            RetryDecision::Acquire => {
                if let Err(error) = progress.check_block(error) {
                    observer.exhausted(&error);
                    return Err(error);
                }
            }
            RetryDecision::BackOff => {
                let Some(delay) = progress.delay(&error, schedule.next()) else {
                    observer.exhausted(&error);
                    return Err(error);
                };
                observer.retrying(&error, delay);
                sleep(delay).await;
            }
            RetryDecision::Reauthorize => {
                if !progress.may_reauthorize() {
                    return Err(error);
                }
                let other = credentials.replace(&credential, sent);
                replacement = limits.in_time(other).await?;
                if replacement.is_none() {
                    return Err(error);
                }
            }
        }
    }
}

/// Explains the error that ends a call. A `DELETE` whose first response was lost finds nothing.
fn explained(error: Error, request: &Request) -> Error {
    let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Gone);
    if request.method == Method::DELETE && is_missing && error.may_have_been_processed() {
        error.with_earlier_deletion()
    } else {
        error
    }
}

/// What a call has used of its limits.
struct Progress<'c> {
    rules: Rules<'c>,
    /// The used part of `max_wait`.
    blocked_for: Duration,
    has_reauthorized: bool,
    /// Whether the next attempt is sent even if the rate limits are known to be used up.
    forced: bool,
    /// The call's place in the limiter's queue. Retries keep it.
    place: Option<u64>,
}

impl<'c> Progress<'c> {
    fn new(rules: Rules<'c>) -> Self {
        Self {
            rules,
            blocked_for: Duration::ZERO,
            has_reauthorized: false,
            forced: rules.request.forced,
            place: None,
        }
    }

    /// Waits until the limiter permits a request. Returns the permit and the duration of the wait.
    async fn acquire<'l>(
        &mut self,
        limiter: &'l Limiter,
        observer: &mut Observer<'_>,
    ) -> Result<(Permit<'l>, Duration), Error> {
        let limits = self.rules.limits;
        let began = clock::now();
        let request = Acquire {
            place: self.place,
            priority: limits.priority(),
            policy: self.rules.policy,
            latest: self.latest_unblocked(began),
            forced: std::mem::take(&mut self.forced),
            lease: limits.lease(),
        };
        let mut was_blocked = false;
        let acquired = limiter.acquire(request, |wait| {
            was_blocked |= wait.blocked.is_some();
            observer.waiting(wait);
        });
        let acquired = timeout_at(limits.deadline(), acquired).await;
        observer.check_store(limiter);
        let waited = match &acquired {
            Ok(Ok(permit)) if !permit.has_waited() => Duration::ZERO,
            _ => clock::now().saturating_duration_since(began),
        };
        observer.waited(waited);
        if was_blocked {
            self.blocked_for += waited;
        }
        match acquired {
            Ok(Ok(permit)) => {
                self.place = Some(permit.place());
                Ok((permit, waited))
            }
            Ok(Err(blocked)) => {
                let allowed = self.allowed_wait(clock::now());
                Err(Error::rate_limited(blocked).with_allowed_wait(allowed))
            }
            Err(_) => Err(limits.timed_out(false)),
        }
    }

    /// Fails if no attempt is left, or if a 429 blocks for longer than the call may wait.
    fn check_block(&self, error: Error) -> Result<(), Error> {
        if !self.may_try_again(&error) {
            return Err(error);
        }
        let now = clock::now();
        match error.retry_after() {
            Some(wait) if clock::after(now, wait) > self.latest_unblocked(now) => {
                Err(error.with_allowed_wait(self.allowed_wait(now)))
            }
            _ => Ok(()),
        }
    }

    /// Returns how long to wait before another attempt: the back-off plus the `Retry-After` of a
    /// 5xx. It delays only this call. Returns `None` if the attempts, the time or the budget are
    /// used up.
    fn delay(&mut self, error: &Error, backoff: Duration) -> Option<Duration> {
        let asked = error.retry_after().unwrap_or_default();
        let delay = backoff.saturating_add(asked);
        let now = clock::now();
        let end = clock::after(now, delay);
        if !self.may_try_again(error) || end >= self.rules.limits.deadline() {
            return None;
        }
        if !asked.is_zero() && end > self.latest_unblocked(now) {
            return None;
        }
        if !self.rules.retries.spend() {
            return None;
        }
        self.blocked_for += asked;
        Some(delay)
    }

    /// Returns whether the call may use another key. It may do so once.
    fn may_reauthorize(&mut self) -> bool {
        !std::mem::replace(&mut self.has_reauthorized, true)
    }

    fn may_try_again(&self, error: &Error) -> bool {
        // An attempt whose key was replaced does not count.
        let counted = error.attempts() - u32::from(self.has_reauthorized);
        counted < self.rules.limits.max_attempts()
    }

    /// Returns the latest instant until which rate limits may block the next attempt.
    fn latest_unblocked(&self, now: Instant) -> Instant {
        let limits = self.rules.limits;
        let left = limits.max_wait().saturating_sub(self.blocked_for);
        clock::after(now, left).min(limits.deadline())
    }

    fn allowed_wait(&self, now: Instant) -> Duration {
        self.latest_unblocked(now).saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::super::record::CallRecord;
    use super::*;
    use crate::auth::{ApiKey, provider_fn};
    use crate::backoff::Backoff;
    use crate::error::{ErrorResponse, TimeoutKind};
    use crate::events::Events;
    use crate::options::RequestOptions;
    use crate::retry::{Classifier, RetryAdvice, RetryBudget};

    /// What the service does with one attempt.
    #[derive(Clone, Copy)]
    enum Act {
        Status(u16),
        /// A 5xx or 429 with this `Retry-After`, in seconds.
        Later(u16, u64),
        NotSent,
        Lost,
    }

    /// A service that follows a script, and records the keys that it gets.
    struct Script {
        acts: VecDeque<Act>,
        keys: Vec<String>,
    }

    impl Sender for Script {
        type Answer = StatusCode;

        async fn send(
            &mut self,
            credential: &Credential,
            _: &Limiter,
            permit: Permit<'_>,
            observer: &mut Observer<'_>,
        ) -> Result<StatusCode, Error> {
            let key = credential.authorization.to_str().unwrap();
            self.keys.push(key.replace("Bearer ", ""));
            observer.begin_attempt();
            observer.sending(None);
            let response = |status: u16, headers: HeaderMap| {
                let mut response = http::Response::new(Bytes::new());
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                *response.headers_mut() = headers;
                Ok(response)
            };
            let mut blocked = None;
            let result = match self.acts.pop_front().unwrap_or(Act::Status(200)) {
                Act::Status(status) => response(status, HeaderMap::new()),
                Act::Later(status, seconds) => {
                    let headers = [(http::header::RETRY_AFTER, seconds.into())];
                    let headers = headers.into_iter().collect();
                    blocked = permit.observe(StatusCode::from_u16(status).unwrap(), &headers);
                    response(status, headers)
                }
                Act::NotSent => {
                    permit.not_sent();
                    Err(Error::new(ErrorKind::Connect, "refused"))
                }
                Act::Lost => Err(Error::timed_out(
                    TimeoutKind::Attempt,
                    Duration::from_secs(1),
                    true,
                )),
            };
            let response = observer.finished(None, Duration::ZERO, result, |_| Bytes::new())?;
            if response.status().is_success() {
                return Ok(response.status());
            }
            let response = ErrorResponse::new(response);
            let error = match blocked {
                Some(blocked) => Error::rate_limited(blocked).with_response(response),
                None => Error::from_response(response),
            };
            Err(observer.complete(error))
        }
    }

    /// A call with scripted attempts and recorded pauses.
    struct Scene {
        request: Request,
        options: RequestOptions,
        budget: RetryBudget,
        classifier: Option<Classifier>,
        credentials: Credentials,
    }

    /// What a call did.
    struct Outcome {
        result: Result<StatusCode, Error>,
        pauses: Vec<Duration>,
        keys: Vec<String>,
    }

    impl Scene {
        fn new(method: Method) -> Self {
            let url = "http://127.0.0.1/v1/pets".parse().unwrap();
            let authorization = ApiKey::new("one").authorization().unwrap();
            Self {
                request: Request::new("test", method, url),
                options: RequestOptions::new(),
                budget: RetryBudget::new(),
                classifier: None,
                credentials: Credentials::Fixed(authorization),
            }
        }

        async fn run(self, acts: &[Act]) -> Outcome {
            let seconds = Duration::from_secs;
            let backoff = Backoff::new().initial(seconds(1)).max(seconds(1));
            let retries = Retries::new(backoff, self.classifier, self.budget);
            let _in_flight = retries.begin_call();
            let limits = CallLimits::new(&self.options);
            let base = "http://127.0.0.1/v1".parse().unwrap();
            // A limiter without quotas: every request is permitted unless a 429 blocks.
            let policy = Policy {
                rate_limiting: false,
                ..Policy::default()
            };
            let limiters = ClientLimiters::new(base, None).isolated(None);
            let rules = Rules {
                request: &self.request,
                limits: &limits,
                retries: &retries,
                policy,
            };
            let events = Events::default();
            let record = CallRecord::new("test".into(), self.request.idempotent);
            let mut observer = Observer::new(&events, &self.request, &record);
            let mut script = Script {
                acts: acts.iter().copied().collect(),
                keys: Vec::new(),
            };
            let pauses = Mutex::new(Vec::new());
            let sleep = |delay| {
                pauses.lock().unwrap().push(delay);
                std::future::ready(())
            };
            let credentials = &self.credentials;
            let result = retry_loop(
                rules,
                credentials,
                &limiters,
                &mut script,
                sleep,
                &mut observer,
            )
            .await;
            Outcome {
                result,
                pauses: pauses.into_inner().unwrap(),
                keys: script.keys,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_retried_after_a_pause_until_an_attempt_succeeds() {
        let acts = [Act::Status(503), Act::Lost, Act::NotSent];
        let outcome = Scene::new(Method::GET).run(&acts).await;
        assert_eq!(outcome.result.unwrap(), StatusCode::OK);
        assert_eq!((outcome.pauses.len(), outcome.keys.len()), (3, 4));
        let max = Duration::from_millis(1_001);
        assert!(outcome.pauses.iter().all(|pause| *pause <= max));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_maybe_processed_is_retried_only_if_idempotent() {
        let lost = Scene::new(Method::POST).run(&[Act::Lost]).await;
        assert!(lost.result.unwrap_err().may_have_been_processed());
        assert_eq!(lost.keys.len(), 1);
        let refused = Scene::new(Method::POST).run(&[Act::NotSent]).await;
        assert_eq!((refused.pauses.len(), refused.keys.len()), (1, 2));
        let mut declared = Scene::new(Method::POST);
        declared.request.idempotent = true;
        assert_eq!(declared.run(&[Act::Lost]).await.keys.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_budget_and_time_limit_the_retries() {
        let failures = [Act::Status(503); 9];
        let sent = async |scene: Scene| {
            let outcome = scene.run(&failures).await;
            assert_eq!(outcome.pauses.len() + 1, outcome.keys.len());
            outcome.result.unwrap_err().attempts()
        };
        assert_eq!(sent(Scene::new(Method::GET)).await, 4);
        let mut scene = Scene::new(Method::GET);
        scene.options.max_attempts = Some(7);
        assert_eq!(sent(scene).await, 7);
        let mut scene = Scene::new(Method::GET);
        scene.options.timeout = Some(Duration::ZERO);
        let outcome = scene.run(&failures).await;
        assert!(outcome.result.unwrap_err().is_timeout());
        assert_eq!(outcome.keys.len(), 0, "nothing is sent after the deadline");
        let mut scene = Scene::new(Method::GET);
        scene.options.max_attempts = Some(9);
        scene.budget = RetryBudget::new().ratio(0.0).min_per_second(0);
        assert_eq!(
            sent(scene).await,
            4,
            "three retries for each call in flight"
        );
        let mut scene = Scene::new(Method::GET);
        scene.classifier = Some(Box::new(|_| RetryAdvice::Stop));
        assert_eq!(sent(scene).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_retry_after_of_a_5xx_is_added_to_the_pause() {
        let acts = [Act::Later(503, 40), Act::Later(503, 70)];
        let outcome = Scene::new(Method::GET).run(&acts).await;
        assert!(outcome.result.is_ok());
        // The back-off is random, and practically never 0.
        assert!(outcome.pauses[0] > Duration::from_secs(40));
        assert!(outcome.pauses[1] > Duration::from_secs(70));
        let acts = [Act::Later(503, 60), Act::Later(503, 61)];
        let outcome = Scene::new(Method::GET).run(&acts).await;
        assert_eq!(outcome.pauses.len(), 1, "121 s are more than max_wait");
        assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Server);
    }

    #[tokio::test(start_paused = true)]
    async fn a_429_is_waited_out_by_the_limiter_without_a_pause() {
        let began = clock::now();
        let outcome = Scene::new(Method::POST).run(&[Act::Later(429, 30)]).await;
        assert!(outcome.result.is_ok());
        assert_eq!((outcome.pauses.len(), outcome.keys.len()), (0, 2));
        let waited = clock::now() - began;
        assert!(waited >= Duration::from_secs(30), "{waited:?}");
        let outcome = Scene::new(Method::GET).run(&[Act::Later(429, 121)]).await;
        let error = outcome.result.unwrap_err();
        assert!(error.is_rate_limited() && outcome.keys.len() == 1);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_first_attempt_ignores_what_is_known_of_the_limits() {
        let mut scene = Scene::new(Method::GET);
        scene.request.forced = true;
        let began = clock::now();
        let outcome = scene.run(&[Act::Later(429, 30)]).await;
        assert!(outcome.result.is_ok());
        let waited = clock::now() - began;
        assert!(waited >= Duration::from_secs(30), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_delete_that_finds_nothing_says_why() {
        let explained = "; an earlier attempt, whose response was lost, may have deleted it";
        for status in [404, 410] {
            let missing = Act::Status(status);
            let outcome = Scene::new(Method::DELETE).run(&[Act::Lost, missing]).await;
            let error = outcome.result.unwrap_err().to_string();
            assert!(error.contains(explained), "{error}");
            for (method, acts) in [
                (Method::DELETE, vec![missing]),
                (Method::DELETE, vec![Act::NotSent, missing]),
                (Method::GET, vec![Act::Lost, missing]),
            ] {
                let error = Scene::new(method).run(&acts).await.result.unwrap_err();
                assert!(!error.to_string().contains(explained), "{error}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_key_is_replaced_once_without_using_an_attempt() {
        let rotating = || {
            let mut scene = Scene::new(Method::POST);
            scene.options.max_attempts = Some(1);
            scene.credentials =
                Credentials::provided(provider_fn(async |rejected: Option<ApiKey>| {
                    let key = if rejected.is_some() { "two" } else { "one" };
                    Ok(ApiKey::new(key))
                }));
            scene
        };
        let outcome = rotating().run(&[Act::Status(401)]).await;
        assert!(outcome.result.is_ok());
        assert_eq!(outcome.keys, ["one", "two"]);
        let outcome = rotating().run(&[Act::Status(401); 3]).await;
        assert_eq!(outcome.keys, ["one", "two"]);
        assert_eq!(outcome.result.unwrap_err().attempts(), 2);
        let outcome = Scene::new(Method::GET).run(&[Act::Status(401)]).await;
        assert_eq!(outcome.keys, ["one"], "a fixed key has no replacement");
    }

    #[tokio::test(start_paused = true)]
    async fn the_key_is_asked_for_again_after_a_long_wait() {
        let mut scene = Scene::new(Method::GET);
        let keys = Mutex::new(["one", "one", "two"].into_iter());
        scene.credentials = Credentials::provided(provider_fn(move |_| {
            let key = keys.lock().unwrap().next().unwrap();
            std::future::ready(Ok(ApiKey::new(key)))
        }));
        let outcome = scene.run(&[Act::Later(429, 6)]).await;
        assert_eq!(outcome.result.unwrap(), StatusCode::OK);
        assert_eq!(outcome.keys, ["one", "two"]);
    }
}
