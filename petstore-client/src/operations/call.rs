//! A call of an operation, and the task that runs it.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::field::Empty;
use tracing::instrument::{Instrumented, WithSubscriber as _};
use tracing::subscriber::NoSubscriber;
use tracing::{Instrument as _, Span};

use crate::call::run;
use crate::client::Client;
use crate::clock;
use crate::error::{CallStats, Error, ErrorKind, TimeoutKind};
use crate::events::TARGET;
use crate::http::base_url::same_origin;
use crate::options::{DEFAULT_TIMEOUT, RequestOptions, option_setters};
use crate::request::Request;
use crate::response::Response;

/// A task that still runs this long after its call's deadline is not being polled.
const TASK_GRACE: Duration = Duration::from_millis(250);

/// A call that has not started: await it, or change its limits first. It can be moved and spawned.
///
/// ```
/// # use std::time::Duration;
/// # use petstore_client::NewPet;
/// # async fn show(client: petstore_client::Client) -> Result<(), petstore_client::Error> {
/// let rex = client.pets().create(&NewPet::new("Rex", 7)).timeout(Duration::from_secs(2)).await?;
/// # let _ = rex;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    pub(super) client: Client,
    pub(super) request: Result<Request, Error>,
    pub(super) decode: Decode<T>,
}

impl<T: DeserializeOwned> Call<T> {
    /// Creates a call that decodes its response from JSON.
    pub(super) fn new(client: Client, request: Result<Request, Error>) -> Self {
        Self {
            client,
            request,
            decode: Response::decoded,
        }
    }
}

impl<T> Call<T> {
    option_setters!();

    fn options_mut(&mut self) -> &mut RequestOptions {
        &mut self.client.options
    }

    /// Changes the request, unless an earlier change failed.
    pub(super) fn try_map(
        mut self,
        change: impl FnOnce(&mut Request) -> Result<(), Error>,
    ) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request)
        {
            self.request = Err(error.with_operation(request.operation.clone()));
        }
        self
    }

    /// Sends the request. Awaiting the call does the same.
    ///
    /// # Errors
    ///
    /// The future fails if the call fails; see [`Error`].
    pub fn send(self) -> CallFuture<T> {
        CallFuture::new(self.client, self.request, self.decode)
    }

    /// Returns the request that would be sent, without `Authorization`.
    ///
    /// # Errors
    ///
    /// Fails if the request is invalid.
    pub fn build(self) -> Result<http::Request<Bytes>, Error> {
        self.client.build(&self.request?)
    }
}

impl<T> IntoFuture for Call<T> {
    type Output = Result<Response<T>, Error>;
    type IntoFuture = CallFuture<T>;

    fn into_future(self) -> CallFuture<T> {
        self.send()
    }
}

/// A running call: await it.
///
/// It starts when it is first polled, and continues even if it is not polled again. It can be
/// spawned, stored or used in `select!`. Dropping it cancels the call, but a sent request may still
/// arrive. It needs a Tokio runtime with time and I/O. Key providers and event hooks do not have
/// the caller's task-locals.
#[must_use = "a call does nothing until it is polled"]
pub struct CallFuture<T> {
    call: Work<(RawResult, Span)>,
    decode: Decode<T>,
}

pub(crate) type Decode<T> = fn(Response<Bytes>) -> Result<Response<T>, Error>;
type RawResult = Result<Response<Bytes>, Error>;
type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<T> CallFuture<T> {
    pub(crate) fn new(client: Client, request: Result<Request, Error>, decode: Decode<T>) -> Self {
        Self {
            call: Box::pin(run_in_span(client, request)),
            decode,
        }
    }
}

impl<T> Future for CallFuture<T> {
    type Output = Result<Response<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let (response, span) = ready!(self.call.as_mut().poll(context));
        let result = response.and_then(self.decode);
        if let Err(error) = &result {
            span.record("otel.status_code", "ERROR");
            span.record("error.type", tracing::field::display(error.kind()));
        }
        Poll::Ready(result)
    }
}

impl<T> fmt::Debug for CallFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").finish_non_exhaustive()
    }
}

/// Runs a call. Also returns its span, in which the result of decoding is recorded.
async fn run_in_span(client: Client, request: Result<Request, Error>) -> (RawResult, Span) {
    let request = match request {
        Ok(request) => request,
        Err(error) => return (Err(error), Span::none()),
    };
    let span = tracing::info_span!(
        target: TARGET,
        "call",
        otel.kind = "client",
        otel.status_code = Empty,
        operation = &*request.operation,
        http.request.method = request.method.as_str(),
        url.template = request.template,
        server.address = client.base_url().host_str(),
        http.response.status_code = Empty,
        error.type = Empty,
        http.request.resend_count = Empty,
        petstore.attempts = Empty,
        petstore.wait_ms = Empty,
    );
    let result = match CallTask::spawn(client, request, span.clone()) {
        Ok(task) => task.result().await,
        Err(error) => Err(error),
    };
    (result, span)
}

/// Checks the request before anything is sent.
fn check(client: &Client, request: &Request) -> Result<(), Error> {
    if client.options.max_attempts == Some(0) {
        return Err(Error::invalid(
            "the number of attempts cannot be used: it must be at least 1",
        ));
    }
    // The last check before the key is sent: the request must go to the base URL's origin.
    if !same_origin(&request.url, client.base_url()) {
        return Err(Error::invalid(
            "it leads to another origin than the base URL's",
        ));
    }
    Handle::try_current()
        .map(drop)
        .map_err(|_| cannot_run("there is no Tokio runtime"))
}

fn cannot_run(problem: &str) -> Error {
    Error::new(
        ErrorKind::Runtime,
        format!("the call cannot run: {problem}"),
    )
}

/// The task that runs a call. Without it, a started call that is no longer polled would keep its
/// permit, and block every other call with the key. Dropping it drops the call's state immediately,
/// even if the runtime never runs again.
struct CallTask {
    handle: JoinHandle<RawResult>,
    work: Arc<Mutex<Option<Instrumented<Work<RawResult>>>>>,
    may_have_acted: Arc<AtomicBool>,
    operation: Cow<'static, str>,
    idempotent: bool,
    timeout: Duration,
    deadline: Instant,
}

impl CallTask {
    fn spawn(client: Client, request: Request, span: Span) -> Result<Self, Error> {
        let (operation, idempotent) = (request.operation.clone(), request.idempotent);
        check(&client, &request).map_err(|error| error.with_operation(operation.clone()))?;
        let timeout = client.options.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let deadline = clock::after(clock::now(), timeout);
        let may_have_acted = Arc::new(AtomicBool::new(false));
        let mut work: Work<RawResult> =
            Box::pin(run(client, request, deadline, Arc::clone(&may_have_acted)));
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        if !subscriber.is::<NoSubscriber>() {
            work = Box::pin(work.with_subscriber(subscriber));
        }
        let work = Arc::new(Mutex::new(Some(work.instrument(span))));
        let handle = tokio::spawn(Running(Arc::clone(&work)));
        Ok(Self {
            handle,
            work,
            may_have_acted,
            operation,
            idempotent,
            timeout,
            deadline,
        })
    }

    /// Waits for the task to end.
    async fn result(mut self) -> RawResult {
        let error = match timeout_at(self.deadline + TASK_GRACE, &mut self.handle).await {
            Ok(Ok(result)) => return result,
            Ok(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => cannot_run("its runtime was shut down"),
            },
            Err(_) => Error::timed_out(TimeoutKind::Call, self.timeout, true),
        };
        let may_have_acted = self.may_have_acted.load(Ordering::Acquire);
        let stats = CallStats {
            may_have_acted,
            idempotent: self.idempotent,
            ..CallStats::default()
        };
        Err(error
            .with_operation(self.operation.clone())
            .with_stats(stats))
    }
}

impl Drop for CallTask {
    fn drop(&mut self) {
        self.handle.abort();
        // If it is locked, the call is being polled, and the abort takes effect afterwards.
        let work = self.work.try_lock().ok().and_then(|mut work| work.take());
        drop(work);
    }
}

struct Running(Arc<Mutex<Option<Instrumented<Work<RawResult>>>>>);

impl Future for Running {
    type Output = RawResult;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The task has been dropped, and will be aborted soon.
        let Some(work) = slot.as_mut() else {
            return Poll::Pending;
        };
        let result = ready!(Pin::new(work).poll(context));
        *slot = None;
        Poll::Ready(result)
    }
}
