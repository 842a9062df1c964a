//! From a request to its answer: the front, which finds out who asks before the request is routed and
//! stamps the answer afterwards, and the table of routes. The connection is left to `accept`.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, UNIX_EPOCH},
};

use axum::{
    Router,
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, header::DATE, uri::PathAndQuery};
use httpdate::HttpDate;
use tower_service::Service;

use crate::{
    admin,
    clock::Clock,
    error::ApiError,
    exchange::KeyLabel,
    extract::{Head, KeyFault, Standing, Visit, bearer, credentials, key_flaw},
    fault::{Chosen, Facts, Faults},
    inject::{inject, leave_undone},
    journal::{Arrival, Caller, Journal, Recording},
    operation::Operation,
    quota::Rate,
    routes::{self, only},
    target,
    world::World,
};

const RATE_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const RATE_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RATE_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Answers requests; its clones share one world.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    world: Arc<World>,
    routes: Router,
}

impl Front {
    pub(crate) fn new(world: World) -> Self {
        let world = Arc::new(world);
        Self { routes: routes(Arc::clone(&world)), world }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.world.clock()
    }

    pub(crate) fn faults(&self) -> &Faults {
        self.world.faults()
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        self.world.journal()
    }

    /// Answers a request, and keeps it in the journal unless it is about the mock itself.
    pub(crate) async fn answer<B>(&mut self, caller: Caller, mut request: Request<B>) -> Response
    where
        B: hyper::body::Body<Data = bytes::Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let now = self.world.clock().since_epoch();
        let target = request.uri().path_and_query().map_or("*", PathAndQuery::as_str).into();
        target::make_plain(request.uri_mut());
        let (standing, rate, key) = self.admit(&request, now);
        if request.uri().path().starts_with("/_mock") {
            return self.route(caller, request, now, standing, rate).await;
        }
        let operation = Operation::of(request.method(), request.uri().path());
        let admission = standing.into();
        let flaw = key_flaw(&request, standing, &self.world);
        let credentials = credentials(request.headers(), standing);
        let arrival = Arrival { now, target, operation, key, flaw, credentials, admission, rate };
        let journal = Arc::clone(self.world.journal());
        let clock = self.world.clock().clone();
        let faults = self.faults_of(&request, operation, standing);
        let (mut recording, request) = Recording::begin(journal, clock, caller, arrival, request);
        let Some(mut faults) = faults else {
            let response = self.route(caller, request, now, standing, rate).await;
            return recording.end(response);
        };
        let method = request.method().clone();
        let mut response = if faults.is_processed() {
            self.route(caller, request, now, standing, rate).await
        } else {
            leave_undone(request).await
        };
        let clock = self.world.clock();
        let (delay, names) = faults.delay();
        names.into_iter().for_each(|name| recording.hit_by(name));
        if !delay.is_zero() {
            clock.sleep(delay).await;
        }
        let now = clock.since_epoch();
        stamp(response.headers_mut(), now, rate);
        let response = inject(&mut faults, now, &method, response, &mut recording).await;
        recording.end(response)
    }

    /// Chooses the faults that hit a request to the service. This is the order of arrival.
    fn faults_of<B>(
        &self,
        request: &Request<B>,
        operation: Option<Operation>,
        standing: Standing,
    ) -> Option<Chosen> {
        if matches!(standing, Standing::Outside) {
            return None;
        }
        let headers = request.headers();
        self.faults().choose(|| Facts { operation, key: bearer(headers).ok(), headers })
    }

    async fn route<B>(
        &mut self,
        caller: Caller,
        mut request: Request<B>,
        now: Duration,
        standing: Standing,
        rate: Option<Rate>,
    ) -> Response
    where
        B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let peer = caller.peer;
        let head = Head::of(request.headers());
        request.extensions_mut().insert(Visit { now, peer, standing, head });
        let mut response = match unless_panic(self.routes.call(request)).await {
            Some(Ok(response)) => response,
            None => ApiError::internal("the mock has a fault: please report it").into_response(),
        };
        stamp(response.headers_mut(), now, rate);
        response
    }

    /// Returns an answer to what never became a request that could be routed.
    pub(crate) fn refuse(&self, error: ApiError) -> http::Response<Bytes> {
        let now = self.world.clock().since_epoch();
        let mut response = error.into_answer();
        stamp(response.headers_mut(), now, Some(self.world.rate_of_strangers(now)));
        response
    }

    /// Finds out whether the key of a request lets it in. Under `/v1` every response has rate
    /// headers, whether it does or not.
    fn admit<B>(
        &self,
        request: &Request<B>,
        now: Duration,
    ) -> (Standing, Option<Rate>, Option<Arc<KeyLabel>>) {
        let rest = request.uri().path().strip_prefix("/v1");
        if !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return (Standing::Outside, None, None);
        }
        let known = bearer(request.headers())
            .and_then(|key| self.world.admit(key, now).ok_or(KeyFault::Unknown));
        match known {
            Ok((verdict, rate, key)) => (Standing::Known(verdict), Some(rate), Some(key)),
            Err(fault) => {
                let rate = self.world.rate_of_strangers(now);
                (Standing::Stranger(fault), Some(rate), None)
            }
        }
    }
}

fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route(
            "/v1/pets",
            get(routes::list_pets).post(routes::create_pet).fallback(only("GET, HEAD, POST")),
        )
        .route(
            "/v1/pets/{petId}",
            get(routes::get_pet)
                .route_layer(map_response(routes::deprecated))
                .fallback(only("GET, HEAD")),
        )
        .route("/v1/store/orders", get(routes::list_orders).fallback(only("GET, HEAD")))
        .merge(admin::Table::new(Arc::clone(&world)).into_router())
        .fallback(routes::unknown)
        .with_state(world)
}

/// Adds what every response has: the mock's own time and, under `/v1`, the quota.
fn stamp(headers: &mut HeaderMap, now: Duration, rate: Option<Rate>) {
    let date = HttpDate::from(UNIX_EPOCH + now).to_string();
    if let Ok(date) = HeaderValue::try_from(date) {
        headers.insert(DATE, date);
    }
    if let Some(rate) = rate {
        headers.insert(RATE_LIMIT, rate.limit.into());
        headers.insert(RATE_REMAINING, rate.remaining.into());
        headers.insert(RATE_RESET, rate.reset.into());
    }
}

/// Runs a future, and returns nothing if it panics: one bad request must not cost the connection.
async fn unless_panic<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        // Nothing is used again after a panic but the world, whose lock tolerates it.
        let step = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match step {
            Ok(poll) => poll.map(Some),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_answer_and_not_the_end() {
        assert_eq!(unless_panic(async { 7 }).await, Some(7));
        assert_eq!(unless_panic(async { panic!("on purpose") }).await, None::<()>);
    }
}
