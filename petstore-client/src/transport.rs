//! Makes one attempt, and knows no policy: no retry, no rate limit, no redirect.

use std::error::Error as _;
use std::time::Duration;
use std::{io, iter};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::time::{Instant, timeout_at};

use crate::error::{Error, Kind, Limit};
use crate::page::same_origin;
use crate::request::Request;

/// How much of the body of an answer that is not a success is read.
const MOST_OF_A_FAULT: usize = 64 * 1024;

/// A whole answer, whatever its status. Of one that is not a success the body may be cut.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An attempt without a whole answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the request cannot have reached the service.
    pub(crate) never_left: bool,
}

/// An answer whose head has come; its body may still be on the way.
#[derive(Debug)]
pub(crate) struct Answering(reqwest::Response);

/// Sends requests, to one origin only.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) http: reqwest::Client,
    pub(crate) home: url::Url,
    pub(crate) connect_timeout: Duration,
}

/// When an attempt has to end, and which limit says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) limit: Limit,
    pub(crate) after: Duration,
}

impl Deadline {
    pub(crate) fn new(at: Instant, limit: Limit, after: Duration) -> Self {
        Self { at, limit, after }
    }

    pub(crate) fn passed(self) -> Error {
        let (limit, after) = (self.limit, self.after);
        Error::new(Kind::Timeout { limit, after })
    }
}

impl Transport {
    pub(crate) async fn send(
        &self,
        request: &Request,
        authorization: HeaderValue,
        deadline: Deadline,
    ) -> Result<Answering, Failure> {
        let outgoing = self.prepare(request, authorization)?;
        match timeout_at(deadline.at, self.http.execute(outgoing)).await {
            Ok(Ok(response)) => Ok(Answering(response)),
            Ok(Err(error)) => Err(self.no_answer(error)),
            Err(_) => Err(Failure::lost(deadline.passed())),
        }
    }

    fn prepare(
        &self,
        request: &Request,
        authorization: HeaderValue,
    ) -> Result<reqwest::Request, Failure> {
        // The last guard before the key leaves: whatever built the request, it goes home only.
        if !same_origin(&request.url, &self.home) {
            return Err(Failure::unsent(Kind::InvalidRequest(
                "it leads to another origin than the base URL's".to_owned(),
            )));
        }
        let mut outgoing = reqwest::Request::new(request.method.clone(), request.url.clone());
        let headers = outgoing.headers_mut();
        headers.clone_from(&request.headers);
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        headers.insert(header::AUTHORIZATION, authorization);
        *outgoing.body_mut() = request.body.clone().map(reqwest::Body::from);
        Ok(outgoing)
    }

    fn no_answer(&self, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        if error.is_builder() {
            return Failure::unsent(Kind::InvalidRequest(error.to_string()));
        }
        if !error.is_connect() {
            return Failure::lost(Error::new(Kind::Interrupted(error)));
        }
        if error.is_timeout() {
            return Failure::unsent(Kind::Timeout {
                limit: Limit::Connect,
                after: self.connect_timeout,
            });
        }
        let origin = self.home.origin().ascii_serialization();
        Failure::unsent(match is_handshake(&error) {
            true => Kind::Tls { origin, source: error },
            false => Kind::Connect { origin, source: error },
        })
    }
}

/// Returns whether a connection came about and TLS over it did not: rustls says so as data that is
/// not valid, which nothing else reads before a request is sent.
fn is_handshake(error: &reqwest::Error) -> bool {
    let mut causes = iter::successors(error.source(), |&cause| cause.source());
    causes.any(|cause| cause.downcast_ref().is_some_and(is_invalid_data))
}

/// An I/O error is no cause of the one that it is wrapped in, but in it.
fn is_invalid_data(error: &io::Error) -> bool {
    let inner = || error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == io::ErrorKind::InvalidData || inner().is_some_and(is_invalid_data)
}

impl Failure {
    fn unsent(kind: Kind) -> Self {
        Self { error: Error::new(kind), never_left: true }
    }

    fn lost(error: Error) -> Self {
        Self { error, never_left: false }
    }
}

impl Answering {
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Reads the body, up to `most` bytes of a success, and as much as is useful of a fault.
    pub(crate) async fn read(self, deadline: Deadline, most: usize) -> Result<Reply, Failure> {
        let mut response = self.0;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let most = if status.is_success() { most } else { most.min(MOST_OF_A_FAULT) };
        let error = match timeout_at(deadline.at, body(&mut response, most)).await {
            Ok(Ok((body, Extent::Whole))) => return Ok(Reply { status, headers, body }),
            // The status says what matters: a fault whose body is cut is a fault all the same.
            Ok(Ok((body, Extent::Cut))) if !status.is_success() => {
                return Ok(Reply { status, headers, body });
            }
            _ if !status.is_success() => {
                return Ok(Reply { status, headers, body: Bytes::new() });
            }
            Ok(Ok((_, Extent::Cut))) => Error::new(Kind::BodyTooLarge { limit: most, status }),
            Ok(Err(error)) => Error::new(Kind::Interrupted(error.without_url())),
            Err(_) => deadline.passed(),
        };
        Err(Failure::lost(error))
    }
}

/// Whether a body was read to its end, or as far as was allowed.
enum Extent {
    Whole,
    Cut,
}

async fn body(response: &mut reqwest::Response, most: usize) -> reqwest::Result<(Bytes, Extent)> {
    let Some(first) = response.chunk().await? else {
        return Ok((Bytes::new(), Extent::Whole));
    };
    let Some(second) = response.chunk().await? else {
        // The usual case: one chunk, which is not copied.
        return Ok(within(first, most));
    };
    let mut whole = BytesMut::from(first);
    let mut next = Some(second);
    while let Some(chunk) = next {
        let room = most.saturating_add(1).saturating_sub(whole.len());
        whole.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if whole.len() > most {
            break;
        }
        next = response.chunk().await?;
    }
    Ok(within(whole.freeze(), most))
}

fn within(bytes: Bytes, most: usize) -> (Bytes, Extent) {
    if bytes.len() > most { (bytes.slice(..most), Extent::Cut) } else { (bytes, Extent::Whole) }
}
