//! Sends one attempt of a call.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, header};

use super::limits::CallLimits;
use super::observer::Observer;
use super::record::CallRecord;
use super::retry_loop::Sender;
use super::spans::AttemptSpan;
use crate::auth::Credential;
use crate::client::Core;
use crate::error::{Error, ErrorResponse};
use crate::rate_limit::{BlockReason, Blocked, Limiter, Permit};
use crate::request::Request;
use crate::transport::{AttemptLimits, read};
use crate::wire::redact::Redactor;

/// Sends a call's request through its client's transport.
pub(super) struct NetworkSender<'c> {
    core: &'c Core,
    request: &'c Request,
    limits: &'c CallLimits,
    record: &'c CallRecord,
}

impl<'c> NetworkSender<'c> {
    pub(super) fn new(
        core: &'c Core,
        request: &'c Request,
        limits: &'c CallLimits,
        record: &'c CallRecord,
    ) -> Self {
        Self {
            core,
            request,
            limits,
            record,
        }
    }
}

impl Sender for NetworkSender<'_> {
    type Answer = (Response<Bytes>, Redactor);

    async fn send(
        &mut self,
        credential: &Credential,
        limiter: &Arc<Limiter>,
        permit: Permit,
        observer: &mut Observer<'_>,
    ) -> Result<Self::Answer, Error> {
        let redactor = Redactor::new(&credential.authorization);
        let span = AttemptSpan::new(self.request, observer.attempt());
        let headers = span.in_scope(|| {
            let mut headers = self.request.with_defaults(&self.core.headers);
            observer.prepare(&mut headers);
            observer.sending(&headers);
            headers
        });
        let limits = self.limits.attempt(observer.attempt_began());
        let result = {
            let exchange = self.exchange(headers, credential, &redactor, permit, &limits);
            // Pinned here, because it is large and each move copies it.
            let exchange = pin!(exchange);
            span.instrument(exchange).await
        };
        let (result, blocked) = match result {
            Ok((response, blocked)) => (Ok(response), blocked),
            Err(error) => (Err(error), None),
        };
        // The body of a success keeps the key if it contains it; only events show it without the
        // key.
        let shown_body = |response: &Response<Bytes>| redactor.removed(response.body().clone());
        span.record(&result);
        let finished = span.in_scope(|| observer.finished(result, shown_body));
        drop(span);
        let response = finished?;
        if response.status().is_success() {
            return Ok((response, redactor));
        }
        let response = ErrorResponse::new(response);
        let error = match blocked {
            Some(blocked) => {
                let blocked = explained(blocked, &response, limiter);
                observer.throttled(blocked, limiter.must_warn(blocked));
                Error::rate_limited(blocked).with_response(response)
            }
            None => Error::from_response(response),
        };
        Err(observer.complete(error))
    }
}

impl NetworkSender<'_> {
    /// Sends the request and reads the response. Removes the key from the headers, and from the
    /// body of a response that is not a success. Also returns the block that a 429 begins.
    async fn exchange(
        &self,
        mut headers: HeaderMap,
        credential: &Credential,
        redactor: &Redactor,
        permit: Permit,
        limits: &AttemptLimits,
    ) -> Result<(Response<Bytes>, Option<Blocked>), Error> {
        headers.insert(header::AUTHORIZATION, credential.authorization.clone());
        let network = &self.core.network;
        let mark = self.record.mark_sending();
        let sent = network.send(self.request, headers, limits, &mark).await;
        let mut pending = match sent {
            Ok(pending) => pending,
            Err(error) => {
                if !error.was_sent() {
                    permit.not_sent();
                }
                return Err(error);
            }
        };
        let blocked = if pending.status().is_success() && !mark.may_be_sent() {
            // The program's transport answered without the service, for example from a cache.
            permit.not_sent();
            None
        } else {
            // The limiter learns of the head at once: reading the body may take long.
            permit.observe(pending.status(), pending.headers())
        };
        redactor.remove(pending.headers_mut());
        let mut response = read(pending, limits).await?;
        if !response.status().is_success() {
            *response.body_mut() = redactor.removed(std::mem::take(response.body_mut()));
        }
        Ok((response, blocked))
    }
}

/// Adds the reason that only the body of a 429 tells.
fn explained(blocked: Blocked, response: &ErrorResponse, limiter: &Arc<Limiter>) -> Blocked {
    if response.code.as_deref() != Some("key_banned") {
        return blocked;
    }
    limiter.record_ban();
    Blocked {
        reason: BlockReason::Ban,
        ..blocked
    }
}
