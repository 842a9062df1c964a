//! Errors as Error objects (specification, section 7), with their headers.

use std::{borrow::Cow, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde::Serialize;
use serde_json::json;

use crate::{
    clock::seconds_until,
    exchange::Rate,
    state::{ChangeError, Period},
    text::printable,
};

/// The media type of every body, including errors.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The values of `code` in the mock's errors.
///
/// The specification does not show them, so all of them are assumptions. A client must not rely on
/// them.
///
/// ```
/// use petstore_mock::ErrorCode;
///
/// assert_eq!(ErrorCode::KeyBanned.status(), 429);
/// assert_eq!(serde_json::to_string(&ErrorCode::KeyBanned)?, r#""key_banned""#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// 401: the key is missing or unknown.
    Unauthorized,
    /// 400: the body is invalid for the operation.
    InvalidBody,
    /// 400: a query parameter is invalid for the operation.
    InvalidParameter,
    /// 404: no pet has this id.
    PetNotFound,
    /// 404: the path does not exist.
    RouteNotFound,
    /// 405: the path does not support the method.
    MethodNotAllowed,
    /// 409: the input contradicts itself or the mock's state. Only the administration uses this
    /// code.
    Conflict,
    /// 415: the content type of the body is not JSON.
    UnsupportedMediaType,
    /// 413: the body is longer than 1 MiB, or 16 MiB for the administration.
    PayloadTooLarge,
    /// 429: a quota of the key is exhausted.
    RateLimitExceeded,
    /// 429: the key is banned.
    KeyBanned,
    /// 410: the deprecated operation has been removed.
    OperationRemoved,
    /// 500: an internal error of the mock.
    InternalError,
    /// 507: the data file cannot be written, usually because the disk is full.
    InsufficientStorage,
}

impl ErrorCode {
    /// Returns the HTTP status of the code.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidBody | Self::InvalidParameter => 400,
            Self::Unauthorized => 401,
            Self::PetNotFound | Self::RouteNotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::OperationRemoved => 410,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RateLimitExceeded | Self::KeyBanned => 429,
            Self::InternalError => 500,
            Self::InsufficientStorage => 507,
        }
    }
}

/// A response that is an error.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    code: ErrorCode,
    message: Cow<'static, str>,
    /// The header that this error requires.
    header: Option<(HeaderName, HeaderValue)>,
}

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            header: None,
        }
    }

    fn with(self, name: HeaderName, value: impl Into<HeaderValue>) -> Self {
        Self {
            header: Some((name, value.into())),
            ..self
        }
    }

    /// The key is missing or unknown. The challenge is that of RFC 6750, section 3.
    pub(crate) fn unauthorized(
        message: impl Into<Cow<'static, str>>,
        challenge: &'static str,
    ) -> Self {
        Self::new(ErrorCode::Unauthorized, message)
            .with(WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    }

    /// The path does not exist. `overview` says which do.
    pub(crate) fn route_not_found(method: &Method, path: &str, overview: &str) -> Self {
        let slash = if path.len() > 1 && path.ends_with('/') {
            " (paths have no trailing slash)"
        } else {
            ""
        };
        let (method, path) = (printable(method.as_str()), printable(path));
        let message = format!("unknown path {method} {path}{slash}: {overview}");
        Self::new(ErrorCode::RouteNotFound, message)
    }

    /// The path does not support the method. `allow` lists the methods that it supports.
    pub(crate) fn method_not_allowed(allow: &str) -> Self {
        let message = format!("this path takes {allow}: use one of these methods");
        let allow = HeaderValue::try_from(allow).expect("methods are a valid value");
        Self::new(ErrorCode::MethodNotAllowed, message).with(ALLOW, allow)
    }

    /// A quota is exhausted.
    pub(crate) fn exhausted(period: Period, rate: Rate, now: Duration) -> Self {
        let wait = seconds_until(Duration::from_secs(rate.reset), now);
        let limit = rate.limit;
        let period = period.with_article();
        let plural = if limit == 1 { "" } else { "s" };
        let message = format!(
            "this key's quota of {limit} request{plural} {period} is used up: wait {wait} s"
        );
        Self::new(ErrorCode::RateLimitExceeded, message).with(RETRY_AFTER, wait)
    }

    /// The key is banned until this time, since the Unix epoch.
    pub(crate) fn banned(until: Duration, now: Duration) -> Self {
        let wait = seconds_until(until, now);
        let message = format!("this key is banned: wait {wait} s");
        Self::new(ErrorCode::KeyBanned, message).with(RETRY_AFTER, wait)
    }
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        let code = match error {
            ChangeError::Unsaved(_) => ErrorCode::InsufficientStorage,
            ChangeError::OutOfIds => ErrorCode::InternalError,
            ChangeError::NoSuchPet(_) => ErrorCode::PetNotFound,
            ChangeError::IdTaken(_) | ChangeError::NotAnObject => ErrorCode::Conflict,
        };
        let mut message = error.to_string();
        if code == ErrorCode::PetNotFound {
            message += "; GET /v1/pets lists all pets";
        }
        Self::new(code, message)
    }
}

impl ApiError {
    /// Returns the response with an Error object.
    pub(crate) fn to_response(&self) -> http::Response<Bytes> {
        let status = self.code.status();
        let body = json!({"code": self.code, "message": self.message, "status": status});
        let mut response = http::Response::new(Bytes::from(body.to_string()));
        *response.status_mut() =
            StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.extend(self.header.clone());
        response
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.to_response().map(Body::from)
    }
}
