//! Tests of the retry loop with a scripted service.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::super::limits::CallLimits;
use super::super::record::CallRecord;
use super::*;
use crate::auth::{ApiKey, provider_fn};
use crate::backoff::Backoff;
use crate::client::closing::Closing;
use crate::error::ErrorResponse;
use crate::events::Events;
use crate::options::RequestOptions;
use crate::rate_limit::Limits;
use crate::request::Request;
use crate::retry::{FailedAttempt, Retries, RetryAdvice, RetryBudget, RetryPolicy};

/// What the service does with one attempt.
#[derive(Clone, Copy)]
enum Act {
    Status(u16),
    /// A 5xx or 429 with this `Retry-After`, in seconds.
    Later(u16, u64),
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
        _: &Arc<Limiter>,
        permit: Permit,
        observer: &mut Observer<'_>,
    ) -> Result<StatusCode, Error> {
        let key = credential.authorization.to_str().unwrap();
        self.keys.push(key.replace("Bearer ", ""));
        observer.sending(&HeaderMap::new());
        let response = |status: u16, headers: HeaderMap| {
            let mut response = http::Response::new(Bytes::new());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            *response.headers_mut() = headers;
            response
        };
        let mut blocked = None;
        let response = match self.acts.pop_front().unwrap_or(Act::Status(200)) {
            Act::Status(status) => response(status, HeaderMap::new()),
            Act::Later(status, seconds) => {
                let headers = [(http::header::RETRY_AFTER, seconds.into())];
                let headers = headers.into_iter().collect();
                blocked = permit.observe(StatusCode::from_u16(status).unwrap(), &headers);
                response(status, headers)
            }
        };
        let response = observer.finished(Ok(response), |_| Bytes::new())?;
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
    classifier: Option<fn(&FailedAttempt<'_>) -> RetryAdvice>,
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
        let mut policy = RetryPolicy::new().backoff(backoff).budget(self.budget);
        if let Some(classifier) = self.classifier {
            policy = policy.classifier(classifier);
        }
        let retries = Retries::new(policy);
        let now = clock::now();
        let _in_flight = retries.begin_call(now);
        let limits = CallLimits::new(&self.options, retries.max_attempts(), now);
        let base = "http://127.0.0.1/v1".parse().unwrap();
        // A limiter without quotas: every request is permitted unless a 429 blocks.
        let limits_off = Limits::new().enabled(false);
        let limiters = ClientLimiters::new(base, limits_off).isolated(None);
        let closing = Closing::default();
        let rules = Rules {
            request: &self.request,
            limits: &limits,
            retries: &retries,
            closing: &closing,
        };
        let events = Events::default();
        let record = CallRecord::new("test".into(), self.request.idempotent, now);
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
    scene.classifier = Some(|_| RetryAdvice::Stop);
    assert_eq!(sent(scene).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_key_is_replaced_once_without_using_an_attempt() {
    let rotating = || {
        let mut scene = Scene::new(Method::POST);
        scene.options.max_attempts = Some(1);
        scene.credentials = Credentials::provided(provider_fn(async |rejected: Option<ApiKey>| {
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
async fn the_key_is_asked_for_once_more_after_a_long_wait() {
    for (seconds, keys, sent) in [
        (4, ["one", "one", "new"], ["one", "one"]),
        (6, ["one", "one", "new"], ["one", "new"]),
        (6, ["one", "one", "one"], ["one", "one"]),
    ] {
        let mut scene = Scene::new(Method::GET);
        let keys = Mutex::new(keys.into_iter());
        scene.credentials = Credentials::provided(provider_fn(move |_| {
            let key = keys.lock().unwrap().next().unwrap();
            std::future::ready(Ok(ApiKey::new(key)))
        }));
        let outcome = scene.run(&[Act::Later(429, seconds)]).await;
        assert_eq!(outcome.result.unwrap(), StatusCode::OK);
        assert_eq!(outcome.keys, sent, "{seconds} s");
    }
}
