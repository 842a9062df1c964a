//! The public face of a failure: accessors and words over a private kind.

use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};

use crate::headers::{RateLimit, date, rate_limit, service_time};

use super::{Kind, Quota, ServiceFault};

/// What a call had been through when it failed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Journey {
    /// Attempts that were made.
    pub(crate) attempts: u32,
    /// Time spent waiting between them, or before the first.
    pub(crate) waited: Duration,
    /// Whether the service may have acted on one of them.
    pub(crate) maybe_processed: bool,
    /// Whether sending the request again does no more than sending it once.
    pub(crate) repeatable: bool,
}

/// Why a call failed.
///
/// The kind is private, so that more can be told apart later: ask with the `is_…` methods.
/// `Display` is one sentence that names the operation and what to do about it, safe to print on a
/// terminal; [`source`](std::error::Error::source) is the cause below.
///
/// ```
/// # async fn call(client: petstore_client::Client) {
/// match client.store().orders().await {
///     Ok(orders) => println!("{} bytes", orders.to_string().len()),
///     Err(error) if error.is_rate_limited() => println!("again at {:?}", error.retry_at()),
///     Err(error) => eprintln!("{error}"),
/// }
/// # }
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    operation: Option<Cow<'static, str>>,
    journey: Journey,
}

impl Error {
    pub(crate) fn new(kind: Kind) -> Self {
        Self(Box::new(Inner { kind, operation: None, journey: Journey::default() }))
    }

    pub(crate) fn config(part: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::new(Kind::Config { part, problem })
    }

    pub(crate) fn invalid(problem: impl Into<String>) -> Self {
        Self::new(Kind::InvalidRequest(problem.into()))
    }

    pub(crate) fn of(mut self, operation: impl Into<Cow<'static, str>>) -> Self {
        self.0.operation = Some(operation.into());
        self
    }

    pub(crate) fn after(mut self, journey: Journey) -> Self {
        self.0.journey = journey;
        self
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0.kind
    }

    pub(super) fn fault(&self) -> Option<&ServiceFault> {
        match &self.0.kind {
            Kind::Service(fault) => Some(fault),
            Kind::RateLimited { refusal, .. } => refusal.as_ref(),
            _ => None,
        }
    }

    /// Returns the status of the response, where one came.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match &self.0.kind {
            Kind::Decode { status, .. } | Kind::BodyTooLarge { status, .. } => Some(*status),
            _ => self.fault().map(|f| f.status),
        }
    }

    /// Returns the service's `code`: an open set of values, as it came.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.fault()?.code.as_deref()
    }

    /// Returns the service's `message` as it came, which may hold control characters.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.fault()?.message.as_deref()
    }

    /// Returns the body of the response, cut to 2,000 characters and made printable.
    #[must_use]
    pub fn body(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::Decode { body, .. } => Some(body),
            _ => self.fault().map(|f| f.body.as_str()),
        }
    }

    /// Returns the headers of the answer that was not a success.
    #[must_use]
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.fault().map(|f| &f.headers)
    }

    /// Returns the quota that the refusal describes (specification, section 8).
    #[must_use]
    pub fn rate_limit(&self) -> Option<RateLimit> {
        let headers = self.headers()?;
        rate_limit(headers, service_time(headers))
    }

    /// Returns the service's own time when it answered (`Date`), where an answer came.
    #[must_use]
    pub fn date(&self) -> Option<SystemTime> {
        date(self.headers()?)
    }

    /// Returns where in the JSON decoding failed, such as `[3].categoryId`, cut to 200 characters
    /// and made printable; `.` is the whole.
    #[must_use]
    pub fn decode_path(&self) -> Option<&str> {
        match &self.0.kind {
            Kind::Decode { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the instant, on the service's clock, from which requests are taken again.
    #[must_use]
    pub fn retry_at(&self) -> Option<SystemTime> {
        match &self.0.kind {
            Kind::RateLimited { limited, .. } => Some(limited.until),
            _ => None,
        }
    }

    /// Returns how long it was until [`retry_at`](Self::retry_at) when the error arose. Unlike
    /// that, it does not depend on the local clock being right.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.0.kind {
            Kind::RateLimited { limited, .. } => Some(limited.wait),
            _ => None,
        }
    }

    /// Returns which limit held the call back.
    #[must_use]
    pub fn quota(&self) -> Option<Quota> {
        match &self.0.kind {
            Kind::RateLimited { limited, .. } => Some(limited.quota),
            _ => None,
        }
    }

    /// Returns the operation, by the specification's name (`listPets`) or as method and path.
    #[must_use]
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// Returns how many attempts were made; 0 where the call failed before the first.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.journey.attempts
    }

    /// Returns how long the call waited: between attempts, for rate limits, and for other calls
    /// with the key ([`HeldBy`](crate::HeldBy)).
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.0.journey.waited
    }

    /// Returns whether the service may have acted on the request all the same: its answer was
    /// lost, or it failed while working on it. Where this is `false`, sending again cannot do the
    /// thing twice.
    #[must_use]
    pub fn may_have_been_processed(&self) -> bool {
        self.0.journey.maybe_processed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.0.operation {
            write!(f, "{operation} failed: ")?;
        }
        self.0.kind.fmt(f)?;
        if self.may_have_been_processed() && !self.0.journey.repeatable {
            f.write_str("; the request may have been processed: look before you send it again")?;
        }
        match (self.attempts(), self.waited().as_secs()) {
            (0 | 1, 0) => Ok(()),
            (0 | 1, waited) => write!(f, " (after {waited} s of waiting)"),
            (attempts, 0) => write!(f, " (after {attempts} attempts)"),
            (attempts, waited) => {
                write!(f, " (after {attempts} attempts and {waited} s of waiting)")
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("journey", &self.0.journey)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.kind.source()
    }
}
