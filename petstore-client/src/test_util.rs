//! Tools to test programs that use the client, without a socket (feature `test-util`).
//!
//! A function replaces the service: [`client`] creates a client for it, and [`FakeService`] records
//! the requests. [`ErrorBuilder`] and [`Response::from_parts`] create values
//! that normally only the client creates. The crate `petstore-mock` provides the whole service with
//! quotas, bans and faults, over a real socket.
//!
//! ```
//! use petstore_client::{Client, Error, NewPet, http::StatusCode, test_util};
//!
//! // What is tested.
//! async fn adopt(client: &Client, name: &str) -> Result<i64, Error> {
//!     Ok(client.pets().create(&NewPet::new(name, 7)).await?.id)
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let client = test_util::client(|request| match (request.method().as_str(), request.uri().path()) {
//!     ("POST", "/v1/pets") => test_util::json(StatusCode::CREATED, &NewPet::new("Rex", 7).into_pet(5)),
//!     _ => test_util::problem(StatusCode::NOT_FOUND, "pet_not_found", "no such pet"),
//! });
//! assert_eq!(adopt(&client, "Rex").await.unwrap(), 5);
//! # });
//! ```

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response as HttpResponse, StatusCode, header};
use serde::Serialize;
use serde_json::json;
use url::Url;

use crate::client::Client;
use crate::client::builder::ClientBuilder;
use crate::clock;
use crate::error::{CallStats, Error, ErrorKind, ErrorResponse, TimeoutKind};
use crate::rate_limit::{BlockReason, Blocked, Quota, QuotaWindow};
use crate::response::{Meta, Response};
use crate::retry::{Backoff, RetryPolicy, may_have_acted};
use crate::transport::{Transport, TransportError};
use crate::wire::redact::Redactor;

/// The base URL of [`client`].
const BASE_URL: &str = "https://petstore.test/v1";

/// A transport that calls a function instead of the service, and records the requests. To read the
/// requests later, keep a clone.
///
/// ```
/// use petstore_client::test_util::{self, FakeService};
/// use petstore_client::transport::TransportError;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let down = FakeService::new(|_| Err(TransportError::connect("refused")));
/// let client = test_util::builder().transport(down.clone()).build().unwrap();
/// assert!(client.pets().list().await.unwrap_err().is_connect());
/// assert_eq!(down.requests().len(), 4);
/// # });
/// ```
pub struct FakeService<F>(Arc<Fake<F>>);

struct Fake<F> {
    respond: F,
    requests: Mutex<Vec<Request<Bytes>>>,
}

impl<F> FakeService<F>
where
    F: Fn(&Request<Bytes>) -> Result<HttpResponse<Bytes>, TransportError> + Send + Sync + 'static,
{
    /// Turns a function into a service.
    pub fn new(respond: F) -> Self {
        Self(Arc::new(Fake {
            respond,
            requests: Mutex::default(),
        }))
    }

    /// Returns the requests so far, without `Authorization`.
    #[must_use]
    pub fn requests(&self) -> Vec<Request<Bytes>> {
        lock(&self.0.requests).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F> Transport for FakeService<F>
where
    F: Fn(&Request<Bytes>) -> Result<HttpResponse<Bytes>, TransportError> + Send + Sync + 'static,
{
    async fn send(&self, request: Request<Bytes>) -> Result<HttpResponse<Bytes>, TransportError> {
        let mut shown = request.clone();
        shown.headers_mut().remove(header::AUTHORIZATION);
        lock(&self.0.requests).push(shown);
        (self.0.respond)(&request)
    }
}

/// Clones share the function and the recorded requests.
impl<F> Clone for FakeService<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> fmt::Debug for FakeService<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeService").finish_non_exhaustive()
    }
}

/// Returns a client of a [`FakeService`]. It shares no limits with other clients, and retries
/// without delay. Its base URL is `https://petstore.test/v1`.
///
/// # Panics
///
/// Never, because its settings are valid.
pub fn client<F>(respond: F) -> Client
where
    F: Fn(&Request<Bytes>) -> Result<HttpResponse<Bytes>, TransportError> + Send + Sync + 'static,
{
    builder()
        .transport(FakeService::new(respond))
        .build()
        .expect("these settings are valid")
}

/// Returns the builder that [`client`] uses, without a transport.
pub fn builder() -> ClientBuilder {
    Client::builder(BASE_URL)
        .api_key("test-key")
        .retry(RetryPolicy::new().backoff(Backoff::new().max(Duration::ZERO)))
        .isolated_limits()
}

/// Responds with JSON.
///
/// # Errors
///
/// Fails if the value cannot be serialized as JSON.
pub fn json(
    status: StatusCode,
    body: &(impl Serialize + ?Sized),
) -> Result<HttpResponse<Bytes>, TransportError> {
    let body = serde_json::to_vec(body).map_err(TransportError::interrupted)?;
    let mut response = HttpResponse::new(body.into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// Responds with an Error object of the service (specification, section 2).
///
/// # Errors
///
/// Never fails. The return type is that of a [`FakeService`] function.
pub fn problem(
    status: StatusCode,
    code: &str,
    message: &str,
) -> Result<HttpResponse<Bytes>, TransportError> {
    json(
        status,
        &json!({"code": code, "message": message, "status": status.as_u16()}),
    )
}

/// Creates an [`Error`], to test code that handles errors.
///
/// ```
/// use std::time::Duration;
/// use petstore_client::{ErrorKind, test_util::ErrorBuilder};
///
/// let error = ErrorBuilder::new(ErrorKind::RateLimited).retry_after(Duration::from_secs(5)).build();
/// assert!(error.is_rate_limited());
/// assert_eq!(error.retry_after(), Some(Duration::from_secs(5)));
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct ErrorBuilder {
    kind: ErrorKind,
    response: Option<HttpResponse<Bytes>>,
    retry_after: Duration,
    stats: CallStats,
}

impl ErrorBuilder {
    /// Starts an error of this kind, after one attempt.
    pub fn new(kind: ErrorKind) -> Self {
        let status = match kind {
            ErrorKind::Unauthorized => StatusCode::UNAUTHORIZED,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Gone => StatusCode::GONE,
            ErrorKind::Rejected => StatusCode::BAD_REQUEST,
            ErrorKind::Server => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            _ => {
                let may_have_acted = Error::new(kind, "").was_sent();
                let stats = CallStats {
                    attempts: 1,
                    may_have_acted,
                    ..CallStats::default()
                };
                return Self {
                    kind,
                    response: None,
                    retry_after: Duration::ZERO,
                    stats,
                };
            }
        };
        Self::response(status, "")
    }

    /// Starts the error for a response other than a success. Its kind follows from the status.
    pub fn response(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let mut response = HttpResponse::new(body.into());
        *response.status_mut() = status;
        let may_have_acted = may_have_acted(status);
        Self {
            kind: ErrorKind::Rejected,
            response: Some(response),
            retry_after: Duration::from_secs(60),
            stats: CallStats {
                attempts: 1,
                may_have_acted,
                ..CallStats::default()
            },
        }
    }

    /// Sets [`retry_after`](Error::retry_after) and [`retry_at`](Error::retry_at), for a rate limit
    /// or a 5xx. That of a 5xx is rounded up to whole seconds, as `Retry-After` has them.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = wait;
        if let Some(response) = &mut self.response {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        self
    }

    /// Sets [`attempts`](Error::attempts).
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.stats.attempts = attempts;
        self
    }

    /// Sets [`may_have_been_processed`](Error::may_have_been_processed).
    pub fn may_have_been_processed(mut self, yes: bool) -> Self {
        self.stats.may_have_acted = yes;
        self
    }

    /// Creates the error.
    #[must_use]
    pub fn build(self) -> Error {
        let error = match self.response {
            Some(response) if response.status() == StatusCode::TOO_MANY_REQUESTS => {
                let until = clock::wall() + self.retry_after;
                let blocked = Blocked::new(BlockReason::Unknown, until, self.retry_after);
                Error::rate_limited(blocked).with_response(ErrorResponse::new(response))
            }
            Some(response) => Error::from_response(ErrorResponse::new(response)),
            None if self.kind == ErrorKind::Timeout => {
                Error::timed_out(TimeoutKind::Attempt, Duration::from_secs(30), true)
            }
            None => Error::new(self.kind, "made for a test"),
        };
        error.with_stats(self.stats)
    }
}

impl<T> Response<T> {
    /// Creates a response, for tests.
    pub fn from_parts(value: T, meta: Meta) -> Self {
        Self::new(value, meta)
    }
}

impl Default for Meta {
    /// Creates the metadata of a 200 without headers at the first attempt, for tests.
    fn default() -> Self {
        let url = Url::parse(BASE_URL).expect("valid URL");
        let request = crate::request::Request::new("test", Method::GET, url);
        let stats = CallStats {
            attempts: 1,
            ..CallStats::default()
        };
        let redactor = Redactor::new(&HeaderValue::from_static(""));
        let headers = HeaderMap::new();
        Self::new(request, StatusCode::OK, headers, None, stats, redactor)
    }
}

impl QuotaWindow {
    /// Creates a window, for tests.
    #[must_use]
    pub fn new(quota: Quota, limit: u64, remaining: u64, reset: SystemTime) -> Self {
        Self {
            quota,
            limit,
            remaining,
            reset,
        }
    }
}

impl Blocked {
    /// Creates a block, for tests.
    #[must_use]
    pub fn new(reason: BlockReason, until: SystemTime, remaining: Duration) -> Self {
        Self {
            reason,
            until,
            remaining,
        }
    }
}
