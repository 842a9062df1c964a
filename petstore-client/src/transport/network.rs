//! Sends one attempt, without retries, rate limits or redirects.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::builtin::{Builtin, ReadTimeout, read_body};
use super::custom::{BoxTransport, ResponseLimit, Transport as _, TransportError};
use super::mark::SendMark;
use crate::error::{Error, ErrorResponse, MAX_ERROR_BODY, TimeoutKind};
use crate::request::Request;

/// The limits of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptLimits {
    pub(crate) deadline: Instant,
    /// The time limit that expires at the deadline.
    pub(crate) limit: (TimeoutKind, Duration),
    pub(crate) read_timeout: Duration,
    pub(crate) max_bytes: usize,
}

impl AttemptLimits {
    fn timed_out(&self, sent: bool) -> Error {
        let (kind, after) = self.limit;
        Error::timed_out(kind, after, sent)
    }
}

/// Sends requests to a service.
pub(crate) struct Network {
    /// The origin of the base URL, for messages.
    origin: String,
    route: Route,
}

pub(crate) enum Route {
    Builtin(Builtin),
    /// A transport of the program, which may wrap the built-in one.
    Custom(BoxTransport),
}

impl Network {
    pub(crate) fn new(base: &Url, route: Route) -> Self {
        Self {
            origin: base.origin().ascii_serialization(),
            route,
        }
    }

    /// Sends a request with these headers instead of its own. Sets `mark` before the service can
    /// receive it. Returns when the head of the response has arrived.
    pub(crate) async fn send(
        &self,
        request: &Request,
        headers: HeaderMap,
        limits: &AttemptLimits,
        mark: &SendMark,
    ) -> Result<reqwest::Response, Error> {
        let result = match &self.route {
            Route::Builtin(builtin) => {
                let (method, url) = (request.method.clone(), request.url.clone());
                let sending =
                    builtin.start(method, url, headers, request.body.clone(), mark.clone());
                timeout_at(limits.deadline, pin!(sending)).await
            }
            Route::Custom(transport) => {
                let mut outgoing = request.to_http(headers)?;
                let extensions = outgoing.extensions_mut();
                extensions.insert(ResponseLimit(limits.max_bytes));
                extensions.insert(ReadTimeout(limits.read_timeout));
                extensions.insert(mark.hand_out());
                let sending = transport.send(outgoing);
                let response = timeout_at(limits.deadline, pin!(sending)).await;
                response.map(|response| response.map(reqwest::Response::from))
            }
        };
        match result {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let error = error.into_error(&self.origin, limits.max_bytes);
                // A program's transport may send a request several times, and fail to connect the
                // last time.
                let is_builtin = matches!(self.route, Route::Builtin(_));
                Err(if mark.is_sent() && !is_builtin {
                    error.with_earlier_send()
                } else {
                    error
                })
            }
            Err(_) => Err(limits.timed_out(mark.revoke())),
        }
    }
}

/// Reads the body of a response: at most `max_bytes` of a success, and 64 KiB of an error.
pub(crate) async fn read(
    mut response: reqwest::Response,
    limits: &AttemptLimits,
) -> Result<http::Response<Bytes>, Error> {
    let status = response.status();
    let is_error = !status.is_success();
    let max = if is_error {
        limits.max_bytes.min(MAX_ERROR_BODY)
    } else {
        limits.max_bytes
    };
    let reading = read_body(&mut response, max, limits.read_timeout);
    let body = match timeout_at(limits.deadline, pin!(reading)).await {
        Ok(body) => body.map_err(|error| error.into_error("", max)),
        Err(_) => Err(limits.timed_out(true)),
    };
    let headers = std::mem::take(response.headers_mut());
    let body = match body {
        Ok(body) if body.len() <= max => body,
        // The status of an error matters more than the end of its body.
        Ok(body) if is_error => body.slice(..max),
        Err(_) if is_error => Bytes::new(),
        Ok(_) => {
            let response = ErrorResponse {
                status,
                headers,
                ..ErrorResponse::default()
            };
            let error = TransportError::body_too_large().into_error("", max);
            return Err(error.with_response(response));
        }
        Err(error) => return Err(error),
    };
    let mut whole = http::Response::new(body);
    (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
    Ok(whole)
}
