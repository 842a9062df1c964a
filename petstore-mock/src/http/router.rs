//! The function that every request passes through.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode, Version,
    header::{ALLOW, CONNECTION, CONTENT_LENGTH, ORIGIN},
    uri::PathAndQuery,
};
use hyper::body::Incoming;
use tower_service::Service as _;

use super::{
    admin,
    admission::{admit, bearer},
    body::{MAX_BODY_BYTES, ReadBody},
    common_headers,
    error::{ApiError, ErrorCode},
    handlers,
};
use crate::{
    cors,
    exchange::{Admission, Arrival, Caller, Captured},
    fault::{ActiveFaults, RequestView, injected},
    journal::{Observed, Recording},
    state::AppState,
};

/// Answers requests. Clones share one state.
#[derive(Clone)]
pub(crate) struct Service {
    app: Arc<AppState>,
    administration: Router,
}

impl Service {
    pub(crate) fn new(app: Arc<AppState>) -> Self {
        let administration = admin::router(&app);
        Self {
            app,
            administration,
        }
    }

    pub(crate) fn app(&self) -> &Arc<AppState> {
        &self.app
    }

    /// Handles a request. Comments give the reason for the order of the steps.
    pub(crate) async fn pass(
        &self,
        caller: Caller,
        mut request: Request<Incoming>,
    ) -> http::Response<Observed> {
        let app = &self.app;
        let target = request
            .uri()
            .path_and_query()
            .map_or("*", PathAndQuery::as_str)
            .into();
        // The request counts in its quota, whatever happens next.
        let (arrival, mut refusal) = admit(app, target, &request);
        let (arrived, operation, rate) = (arrival.now, arrival.operation, arrival.rate);
        if request.uri().path().starts_with("/_mock") {
            request.extensions_mut().insert(caller);
            return self.administer(arrived, request.map(Body::new)).await;
        }
        let has_cors = rate.is_some() && app.settings().cors;
        // The browser sends a preflight by itself: no fault hits it, and it is not recorded.
        if has_cors && cors::is_preflight(&request) {
            let mut response = cors::preflight().map(Observed::from);
            common_headers::add(response.headers_mut(), arrived, rate, None);
            return response;
        }
        let is_from_a_page = has_cors && request.headers().contains_key(ORIGIN);
        let key = arrival.key.as_ref().map(|key| key.number());
        let mut faults = ActiveFaults::default();
        match self.faults(&arrival, &request) {
            Ok(chosen) => faults = chosen,
            Err(error) => refusal = refusal.or(Some(error)),
        }
        let (request, body) = request.into_parts();
        let is_head = request.method == Method::HEAD;
        let mut recording = Recording::begin(Arc::clone(app.journal()), caller, arrival, &request);
        let body = ReadBody::new(body, MAX_BODY_BYTES).await;
        let is_partial = body.is_partial();
        recording.record().body = Captured::new(body.read(), !is_partial);
        // Some faults skip the service.
        let mut response = match refusal {
            Some(error) => error.to_response(),
            None if faults.skips_service() => injected(503),
            None => {
                let recording = &mut recording;
                handlers::answer(app, operation, arrived, key, &request, body, recording)
                    .unwrap_or_else(|error| error.to_response())
            }
        };
        if is_head {
            remove_body(&mut response);
        }
        let mut now = arrived;
        if !faults.is_empty() {
            self.delay(&mut faults, &mut recording).await;
            now = app.clock().since_epoch();
        }
        common_headers::add(response.headers_mut(), now, rate, operation);
        if is_from_a_page {
            cors::open(response.headers_mut());
        }
        // Faults come after all headers, because they can change them.
        if !faults.is_empty() {
            let (names, plan) = faults.change(&mut response, now, is_head);
            recording.hit(names, plan.end().is_some());
            response.extensions_mut().insert(plan);
        }
        if is_partial && request.version != Version::HTTP_2 {
            // The rest of the body must not be read as a request (RFC 9112, section 9.6).
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        // The recording ends last, so that it contains what the client receives.
        recording.end(response)
    }

    /// Waits as long as the faults delay the response.
    async fn delay(&self, faults: &mut ActiveFaults, recording: &mut Recording) {
        let clock = self.app.clock();
        // The clock is read before the hits are counted, because a test that sees the hit may advance
        // the clock.
        let from = clock.since_epoch();
        let (delay, names) = faults.delay();
        recording.hit(names, false);
        if delay.is_zero() {
            return;
        }
        if clock.is_frozen() {
            recording.record().note = Some("delayed until the frozen clock was moved");
            warn_of_frozen_clock();
        }
        clock.wait_until(from.saturating_add(delay)).await;
    }

    /// Answers a request to the administration. Such requests are neither counted nor recorded.
    async fn administer(&self, now: Duration, request: Request<Body>) -> http::Response<Observed> {
        let mut response = call(&self.administration, request).await;
        common_headers::add(response.headers_mut(), now, None, None);
        response.map(Observed::from)
    }

    /// Selects the faults of a request to the service. The order of arrival, for faults, is the
    /// order of these calls.
    fn faults<B>(&self, arrival: &Arrival, request: &Request<B>) -> Result<ActiveFaults, ApiError> {
        if arrival.admission == Admission::Outside {
            return Ok(ActiveFaults::default());
        }
        let headers = request.headers();
        let chosen = if self.app.settings().fault_header {
            headers.get("x-mock-fault")
        } else {
            None
        };
        let view = RequestView::new(
            arrival.operation,
            request.method(),
            request.uri().path(),
            bearer(headers).ok(),
            chosen,
        );
        let faults = self.app.faults().choose(view);
        faults.map_err(|problem| ApiError::new(ErrorCode::InvalidParameter, problem))
    }
}

#[expect(clippy::print_stderr, reason = "explains a hanging test")]
fn warn_of_frozen_clock() {
    eprintln!(
        "petstore-mock: a delay waits for the clock, which is frozen: advance it, or let it run"
    );
}

/// Calls a handler of the administration. Turns axum's 405 into an Error object.
async fn call(routes: &Router, request: Request<Body>) -> Response {
    let Ok(response) = routes.clone().call(request).await;
    if response.status() == StatusCode::METHOD_NOT_ALLOWED
        && let Some(allow) = response.headers().get(ALLOW)
    {
        let allow = String::from_utf8_lossy(allow.as_bytes()).replace(',', ", ");
        return ApiError::method_not_allowed(&allow).into_response();
    }
    response
}

/// Removes the body of a response to `HEAD`, and keeps its length.
fn remove_body(response: &mut http::Response<Bytes>) {
    let body = std::mem::take(response.body_mut());
    if !body.is_empty() {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, body.len().into());
    }
}
