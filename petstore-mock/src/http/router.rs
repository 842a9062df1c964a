//! The routes of the service, and the one function that every request runs through.

use std::{panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{
    Method,
    header::{EXPECT, ORIGIN},
    uri::PathAndQuery,
};
use http_body_util::BodyExt;
use tower_service::Service as _;

use super::{
    admin,
    auth::{RequestContext, admit},
    common_headers,
    credentials::bearer,
    error::ApiError,
    handlers::{create_pet, get_pet, list_orders, list_pets, method_not_allowed, not_found},
    params::normalize_path,
};
use crate::{
    exchange::Admission,
    fault::{ActiveFaults, RequestView},
    journal::{Arrival, Caller, Observed, Recording},
    operation::Operation,
    state::AppState,
};

/// How much is read of a request that a fault keeps from the service: more than that takes.
const MAX_SKIPPED_BYTES: usize = 2 * 1024 * 1024;

/// What the journal says of a delay that can't pass by itself.
const FROZEN_NOTE: &str = "its delay waited for the clock, which was frozen";

/// Answers requests; its clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    app: Arc<AppState>,
    service: Router,
    administration: Router,
}

impl Service {
    pub(crate) fn new(app: Arc<AppState>) -> Self {
        let service = Router::new()
            .route(Operation::ListPets.path(), get(list_pets).post(create_pet))
            .route(Operation::GetPet.path(), get(get_pet))
            .route(Operation::ListOrders.path(), get(list_orders))
            .method_not_allowed_fallback(method_not_allowed)
            .fallback(not_found)
            .with_state(Arc::clone(&app));
        let administration = admin::router(&app);
        Self { app, service, administration }
    }

    pub(crate) fn app(&self) -> &AppState {
        &self.app
    }

    /// Runs a request through everything that concerns all requests, in this order; each step says
    /// why it stands where it does.
    pub(crate) async fn pass(
        &self,
        caller: Caller,
        mut request: Request,
    ) -> http::Response<Observed> {
        let app = &self.app;
        let sent = request.uri().path_and_query().map_or("*", PathAndQuery::as_str).into();
        normalize_path(request.uri_mut());
        // Counts the request against its quota, whatever happens to it next.
        let context = admit(app, &caller, &request, app.clock().since_epoch());
        request.extensions_mut().insert(context.clone());
        if context.admission != Admission::Rejected && is_administration(&request) {
            return self.administer(&context, request).await;
        }
        let cors = &app.settings().cors;
        let is_preflight = context.rate.is_some() && cors.is_preflight(&request);
        let is_from_a_page = context.rate.is_some() && request.headers().contains_key(ORIGIN);
        let mut faults = self.choose_faults(&context, &request, is_preflight);
        let method = request.method().clone();
        // A client that waits for `100 Continue` has not sent its body yet.
        let expects_continue = request.headers().contains_key(EXPECT);
        let (journal, clock) = (Arc::clone(app.journal()), app.clock().clone());
        let arrival = arrival(&context, sent);
        let (mut recording, request) = Recording::begin(journal, clock, caller, arrival, request);
        // A refused request gets its error before there is a 404; a fault that skips the service does
        // not ask it.
        let mut response = match context.refused() {
            Some(error) => error.to_response(),
            None if is_preflight => cors.preflight(),
            None if faults.as_ref().is_some_and(ActiveFaults::skips_service) => skip(request).await,
            None => route(self.service.clone(), request).await,
        };
        if !expects_continue {
            recording.discard_body().await;
        }
        recording.note_added(&response);
        let mut now = context.now;
        if let Some(faults) = &mut faults {
            let (delay, names) = faults.delay();
            names.into_iter().for_each(|name| recording.hit_by(name));
            if !delay.is_zero() {
                if app.clock().pace() == 0.0 {
                    recording.note(FROZEN_NOTE);
                    warn_of_frozen_clock();
                }
                app.clock().sleep(delay).await;
            }
            // The time at which the response leaves: after the delay.
            now = app.clock().since_epoch();
        }
        common_headers::add(response.headers_mut(), now, context.rate, context.operation);
        if is_from_a_page {
            cors.open(response.headers_mut());
        }
        // Faults may change every header, so they follow all that add one.
        if let Some(faults) = &mut faults {
            let names = faults.change(&mut response, now, method == Method::HEAD);
            names.into_iter().for_each(|name| recording.hit_by(name));
            if ActiveFaults::loses_response(&response) {
                recording.lose();
            }
        }
        // Sees what the client sees: last.
        recording.end(response)
    }

    /// Refuses what never became a request, and records that; `head` is how it began.
    pub(crate) fn refuse(
        &self,
        caller: Caller,
        head: &[u8],
        error: &ApiError,
    ) -> http::Response<Bytes> {
        let now = self.app.clock().since_epoch();
        let mut response = error.to_response();
        let rate = self.app.anonymous_rate(now);
        common_headers::add(response.headers_mut(), now, Some(rate), None);
        let (journal, clock) = (Arc::clone(self.app.journal()), self.app.clock().clone());
        Recording::refusal(journal, clock, caller, rate, head).end(response.clone());
        response
    }

    /// Answers the mock's own paths, which are neither counted nor recorded.
    async fn administer(
        &self,
        context: &RequestContext,
        request: Request,
    ) -> http::Response<Observed> {
        let called = AssertUnwindSafe(self.administration.clone().call(request));
        let mut response = match called.catch_unwind().await {
            Ok(Ok(response)) => response,
            Err(_) => ApiError::panicked().into_response(),
        };
        common_headers::add(response.headers_mut(), context.now, None, None);
        response.map(Observed::from)
    }

    /// Chooses the faults of a request to the service. This is the order of arrival.
    fn choose_faults(
        &self,
        context: &RequestContext,
        request: &Request,
        is_preflight: bool,
    ) -> Option<ActiveFaults> {
        if is_preflight || matches!(context.admission, Admission::Outside | Admission::Rejected) {
            return None;
        }
        let (operation, headers) = (context.operation, request.headers());
        self.app.faults().choose(|| RequestView { operation, key: bearer(headers).ok(), headers })
    }
}

#[expect(clippy::print_stderr, reason = "a test that hangs in silence is hard to find out about")]
fn warn_of_frozen_clock() {
    eprintln!(
        "petstore-mock: a delay waits for the clock, which is frozen: advance it, or let it run"
    );
}

fn is_administration(request: &Request) -> bool {
    request.uri().path().starts_with("/_mock")
}

fn arrival(context: &RequestContext, target: Arc<str>) -> Arrival {
    let RequestContext { now, operation, admission, rate, credentials, .. } = *context;
    let (key, flaw) = (context.key.clone(), context.flaw.clone());
    Arrival { now, target, operation, key, flaw, credentials, admission, rate }
}

/// Calls the routes; a panic there is a 500, and not the end of the connection.
async fn route(mut routes: Router, request: Request) -> http::Response<Bytes> {
    // Nothing is used again after a panic but the state, whose locks tolerate it.
    match AssertUnwindSafe(routes.call(request)).catch_unwind().await {
        Ok(Ok(response)) => whole(response).await,
        Err(_) => ApiError::panicked().to_response(),
    }
}

/// Takes the body out of a response. The service's own are there in one piece.
async fn whole(response: Response) -> http::Response<Bytes> {
    let (parts, mut body) = response.into_parts();
    let mut whole = Bytes::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            whole = if whole.is_empty() { data } else { [whole, data].concat().into() };
        }
    }
    http::Response::from_parts(parts, whole)
}

/// Answers a request that a fault keeps from the service. Its body is read all the same, as the service
/// would: or the client might lose the response while it is still sending.
async fn skip(request: Request) -> http::Response<Bytes> {
    let mut body: Body = request.into_body();
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MAX_SKIPPED_BYTES {
            break;
        }
    }
    ActiveFaults::unavailable()
}
