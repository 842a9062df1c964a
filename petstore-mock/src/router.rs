//! From a request to its answer: the front, which finds out who asks before the request is routed and
//! stamps the answer afterwards, and the table of routes. The connection is left to `accept`.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use axum::{BoxError, Router, response::IntoResponse};
use bytes::Bytes;
use http::{
    Request, Response,
    header::{EXPECT, ORIGIN},
    uri::PathAndQuery,
};
use hyper::body::Body;
use tower_service::Service;

use crate::{
    admin,
    clock::Clock,
    error::ApiError,
    exchange::KeyLabel,
    extract::{Head, KeyFault, Standing, Visit, bearer, credentials, key_flaw},
    fault::{Chosen, Facts},
    inject::{inject, leave_undone},
    journal::{Arrival, Caller, Journal, Observed, Recording, Tee},
    operation::Operation,
    quota::Rate,
    routes,
    stamp::stamp,
    target,
    world::{Admitted, World},
};

/// Answers requests; its clones share one world.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    world: Arc<World>,
    administration: Router,
}

/// An answer that is there, or one that has to be waited for: most are there, and cost no future.
pub(crate) enum Answer {
    Now(Response<Observed>),
    Later(Pin<Box<dyn Future<Output = Response<Observed>> + Send>>),
}

/// What was found out about a request that has to be waited for.
struct Call {
    visit: Visit,
    operation: Option<Operation>,
    rate: Option<Rate>,
    is_from_a_page: bool,
}

impl Front {
    pub(crate) fn new(world: Arc<World>) -> Self {
        let administration = admin::Table::new(Arc::clone(&world)).into_router();
        Self { world, administration }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.world.clock()
    }

    pub(crate) fn journal(&self) -> &Arc<Journal> {
        self.world.journal()
    }

    /// Answers a request, and keeps it in the journal unless it is about the mock itself.
    pub(crate) fn answer<B>(&self, caller: Caller, mut request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        let now = self.world.clock().since_epoch();
        let target = request.uri().path_and_query().map_or("*", PathAndQuery::as_str).into();
        target::make_plain(request.uri_mut());
        let cors = &self.world.settings().cors;
        if is_of_the_service(request.uri().path()) && cors.is_preflight(&request) {
            let response = self.finish(cors.preflight(), now, self.strangers(now), true);
            return Answer::Now(response.map(Observed::from));
        }
        let is_from_a_page = request.headers().contains_key(ORIGIN);
        let (standing, rate, key) = self.admit(&request, now);
        let visit = Visit { now, peer: caller.peer, standing, head: Head::of(request.headers()) };
        if request.uri().path().starts_with("/_mock") {
            let front = self.clone();
            let answer = async move { front.administer(visit, request).await.map(Observed::from) };
            return Answer::Later(Box::pin(answer));
        }
        let operation = Operation::of(request.method(), request.uri().path());
        let admission = standing.into();
        let flaw = key_flaw(&request, standing, &self.world);
        let credentials = credentials(request.headers(), standing);
        let arrival = Arrival { now, target, operation, key, flaw, credentials, admission, rate };
        let journal = Arc::clone(self.world.journal());
        let clock = self.world.clock().clone();
        let faults = self.faults_of(&request, operation, standing);
        let (recording, request) = Recording::begin(journal, clock, caller, arrival, request);
        let has_body = !request.body().is_end_stream();
        if faults.is_none() && operation != Some(Operation::CreatePet) && !has_body {
            let response = self.look(visit, operation, &request);
            return Answer::Now(recording.end(self.finish(response, now, rate, is_from_a_page)));
        }
        let call = Call { visit, operation, rate, is_from_a_page };
        let front = self.clone();
        Answer::Later(Box::pin(async move { front.work(call, request, recording, faults).await }))
    }

    /// Answers what has to be waited for.
    async fn work<B>(
        &self,
        call: Call,
        request: Request<Tee<B>>,
        mut recording: Recording,
        faults: Option<Chosen>,
    ) -> Response<Observed>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
    {
        let Call { visit, operation, rate, is_from_a_page } = call;
        // A client that waits for `100 Continue` has not sent its body yet.
        let is_sent = !request.headers().contains_key(EXPECT);
        let unread = is_sent.then(|| request.body().clone());
        let Some(mut faults) = faults else {
            let response = self.serve(visit, operation, request).await;
            discard(unread).await;
            recording.note_added(&response);
            return recording.end(self.finish(response, visit.now, rate, is_from_a_page));
        };
        let method = request.method().clone();
        let response = if faults.is_processed() {
            self.serve(visit, operation, request).await
        } else {
            leave_undone(request).await
        };
        discard(unread).await;
        recording.note_added(&response);
        let clock = self.world.clock();
        let (delay, names) = faults.delay();
        names.into_iter().for_each(|name| recording.hit_by(name));
        if !delay.is_zero() {
            clock.sleep(delay).await;
        }
        let now = clock.since_epoch();
        let response = self.finish(response, now, rate, is_from_a_page);
        let response = inject(&mut faults, now, &method, response, &mut recording);
        recording.end(response)
    }

    /// Adds what every answer of the service has.
    fn finish(
        &self,
        mut response: Response<Bytes>,
        now: Duration,
        rate: Option<Rate>,
        is_from_a_page: bool,
    ) -> Response<Bytes> {
        stamp(response.headers_mut(), now, rate);
        if is_from_a_page && rate.is_some() {
            self.world.settings().cors.open(response.headers_mut());
        }
        response
    }

    /// Returns the quota that those without a valid key are told of.
    fn strangers(&self, now: Duration) -> Option<Rate> {
        Some(self.world.rate_of_strangers(now))
    }

    async fn serve<B>(
        &self,
        visit: Visit,
        operation: Option<Operation>,
        request: Request<B>,
    ) -> Response<Bytes>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        if operation != Some(Operation::CreatePet) {
            return self.look(visit, operation, &request);
        }
        let served = unless_panic(routes::add(&self.world, visit, request)).await;
        served.unwrap_or_else(|| ApiError::mine().into_answer())
    }

    fn look<B>(
        &self,
        visit: Visit,
        operation: Option<Operation>,
        request: &Request<B>,
    ) -> Response<Bytes> {
        let look = || routes::look(&self.world, visit, operation, request);
        let looked = catch_unwind(AssertUnwindSafe(look));
        looked.unwrap_or_else(|_| ApiError::mine().into_answer())
    }

    async fn administer<B>(&self, visit: Visit, mut request: Request<B>) -> axum::response::Response
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        request.extensions_mut().insert(visit);
        let mut response = match unless_panic(self.administration.clone().call(request)).await {
            Some(Ok(response)) => response,
            None => ApiError::mine().into_response(),
        };
        stamp(response.headers_mut(), visit.now, None);
        response
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
        self.world.faults().choose(|| Facts { operation, key: bearer(headers).ok(), headers })
    }

    /// Returns an answer to what never became a request that could be routed.
    pub(crate) fn refuse(&self, error: ApiError) -> http::Response<Bytes> {
        let now = self.world.clock().since_epoch();
        let mut response = error.into_answer();
        stamp(response.headers_mut(), now, self.strangers(now));
        response
    }

    /// Finds out whether the key of a request lets it in. Under `/v1` every response has rate
    /// headers, whether it does or not.
    fn admit<B>(
        &self,
        request: &Request<B>,
        now: Duration,
    ) -> (Standing, Option<Rate>, Option<Arc<KeyLabel>>) {
        if !is_of_the_service(request.uri().path()) {
            return (Standing::Outside, None, None);
        }
        let known = bearer(request.headers())
            .and_then(|key| self.world.admit(key, now).ok_or(KeyFault::Unknown));
        match known {
            Ok(Admitted { verdict, rate, label }) => {
                (Standing::Known(verdict), Some(rate), Some(label))
            }
            Err(fault) => (Standing::Stranger(fault), self.strangers(now), None),
        }
    }
}

async fn discard<B: Body<Data = Bytes> + Unpin>(unread: Option<Tee<B>>) {
    if let Some(body) = unread {
        body.discard().await;
    }
}

fn is_of_the_service(path: &str) -> bool {
    path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
