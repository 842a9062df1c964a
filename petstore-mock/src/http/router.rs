//! The function that every request passes through.

use std::{borrow::Cow, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{
    HeaderName, HeaderValue, Method, StatusCode, Version,
    header::{ALLOW, CONNECTION, CONTENT_LENGTH, EXPECT, ORIGIN},
    uri::PathAndQuery,
};
use tower_service::Service as _;

use super::{
    admin,
    admission::{AdmissionResult, admit},
    common_headers,
    credentials::bearer,
    error::{ApiError, ErrorCode},
    handlers::{self, CheckedKey},
    params::normalize_path,
};
use crate::{
    exchange::Admission,
    fault::{ActiveFaults, RequestView},
    journal::{AddedPet, Arrival, Caller, Observed, Recording},
    operation::Operation,
    state::AppState,
};

/// The header with which a request chooses a fault, if that is enabled.
const FAULT_HEADER: HeaderName = HeaderName::from_static("x-mock-fault");

/// The journal's note about a delay on a frozen clock.
const FROZEN_NOTE: &str = "delayed until the frozen clock was moved";

/// Answers requests. Clones share one state.
#[derive(Clone, Debug)]
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
        mut request: Request,
    ) -> http::Response<Observed> {
        let app = &self.app;
        let target = request
            .uri()
            .path_and_query()
            .map_or("*", PathAndQuery::as_str)
            .into();
        normalize_path(request.uri_mut());
        // The request counts in its quota, whatever happens next.
        let AdmissionResult { arrival, error } = admit(app, &caller, target, &request);
        let Arrival {
            now: arrived,
            operation,
            admission,
            rate,
            ..
        } = arrival;
        if admission != Admission::Rejected && request.uri().path().starts_with("/_mock") {
            request.extensions_mut().insert(admin::Peer(caller.peer));
            return self.administer(arrived, request).await;
        }
        // The service answers a 401, after errors of the path. Every other refusal comes before it.
        let (key, refusal) = match error {
            Some(error) if admission == Admission::Anonymous => (Err(error), None),
            refusal => (Ok(arrival.key.as_ref().map(|key| key.number())), refusal),
        };
        let cors = &app.settings().cors;
        let is_preflight = rate.is_some() && cors.is_preflight(&request);
        let is_from_a_page = rate.is_some() && request.headers().contains_key(ORIGIN);
        let (mut faults, refusal) = match self.faults(&arrival, &request) {
            _ if is_preflight => (None, refusal),
            Ok(faults) => (faults, refusal),
            Err(error) => (None, refusal.or(Some(error))),
        };
        let (method, version) = (request.method().clone(), request.version());
        // A client that waits for `100 Continue` has not sent its body yet.
        let expects_continue = request.headers().contains_key(EXPECT);
        let journal = Arc::clone(app.journal());
        let (mut recording, request) = Recording::begin(journal, caller, arrival, request);
        // Some faults skip the service.
        let mut response = match refusal {
            Some(error) => error.to_response(),
            None if is_preflight => cors.preflight(app.settings().routes.methods()),
            None if faults.as_ref().is_some_and(ActiveFaults::skips_service) => {
                ActiveFaults::unavailable()
            }
            None => self.respond(operation, arrived, key, request).await,
        };
        if method == Method::HEAD {
            remove_body(&mut response);
        }
        if !expects_continue {
            recording.discard_body().await;
        }
        if let Some(AddedPet(id)) = response.extensions().get().copied() {
            recording.update(|record| record.added = Some(id));
        }
        let mut now = arrived;
        if let Some(faults) = &mut faults {
            // The clock is read before the hits are counted, because a test that sees the hit may
            // advance the clock.
            let delayed_from = app.clock().since_epoch();
            let (delay, names) = faults.delay();
            recording.update(|record| record.faults.extend(names.into_iter().map(Cow::from)));
            if !delay.is_zero() {
                if app.clock().pace() == 0.0 {
                    recording.update(|record| record.note = Some(FROZEN_NOTE));
                    warn_of_frozen_clock();
                }
                app.clock()
                    .wait_until(delayed_from.saturating_add(delay))
                    .await;
            }
            // The time of the response, after the delay.
            now = app.clock().since_epoch();
        }
        common_headers::add(response.headers_mut(), now, rate, operation);
        if is_from_a_page {
            cors.open(response.headers_mut());
        }
        // Faults come after all headers, because they can change them.
        if let Some(faults) = &mut faults {
            let names = faults.change(&mut response, now, method == Method::HEAD);
            let is_lost = ActiveFaults::loses_response(&response);
            recording.update(|record| {
                record.faults.extend(names.into_iter().map(Cow::from));
                *record.lost.get_mut() = is_lost;
            });
        }
        if version != Version::HTTP_2 && recording.has_unread_body() {
            // The rest of the body must not be read as a request (RFC 9112, section 9.6).
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        // The recording ends last, so that it contains what the client receives.
        recording.end(response)
    }

    /// Lets a handler answer a request.
    async fn respond(
        &self,
        operation: Option<Operation>,
        arrived: Duration,
        key: CheckedKey,
        request: Request,
    ) -> http::Response<Bytes> {
        // After a panic, only the state is reused, whose locks tolerate it.
        let answer = AssertUnwindSafe(handlers::answer(
            &self.app, operation, arrived, key, request,
        ));
        match answer.catch_unwind().await {
            Ok(answer) => answer.unwrap_or_else(|error| error.to_response()),
            Err(_) => ApiError::panicked().to_response(),
        }
    }

    /// Answers a request to the administration. Such requests are neither counted nor recorded.
    async fn administer(&self, now: Duration, request: Request) -> http::Response<Observed> {
        let mut response = call(&self.administration, request).await;
        common_headers::add(response.headers_mut(), now, None, None);
        response.map(Observed::from)
    }

    /// Selects the faults of a request to the service. The order of arrival, for faults, is the
    /// order of these calls.
    fn faults(
        &self,
        arrival: &Arrival,
        request: &Request,
    ) -> Result<Option<ActiveFaults>, ApiError> {
        if matches!(arrival.admission, Admission::Outside | Admission::Rejected) {
            return Ok(None);
        }
        let (operation, headers) = (arrival.operation, request.headers());
        let named = if self.app.settings().fault_header {
            headers.get(FAULT_HEADER)
        } else {
            None
        };
        let (method, path) = (request.method(), request.uri().path());
        let request = || RequestView::new(operation, method, path, bearer(headers).ok());
        let chosen = self.app.faults().choose(named, request);
        chosen.map_err(|error| ApiError::new(ErrorCode::InvalidParameter, error.to_string()))
    }
}

#[expect(clippy::print_stderr, reason = "explains a hanging test")]
fn warn_of_frozen_clock() {
    eprintln!(
        "petstore-mock: a delay waits for the clock, which is frozen: advance it, or let it run"
    );
}

/// Calls a handler of the administration. Turns a panic into a 500, and axum's 405 into an Error
/// object.
async fn call(routes: &Router, request: Request) -> Response {
    // Only the state is used again after a panic, and its locks tolerate that.
    let called = AssertUnwindSafe(routes.clone().call(request))
        .catch_unwind()
        .await;
    let Ok(Ok(response)) = called else {
        return ApiError::panicked().into_response();
    };
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
