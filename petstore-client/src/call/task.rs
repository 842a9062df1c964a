//! Runs a call on its own task.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument as _;
use tracing::field::Empty;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::core::{Core, Request};
use super::lifecycle::run;
use crate::clock;
use crate::error::{CallStats, Error, Failure, TimeoutKind};
use crate::events::TARGET;
use crate::options::{CallLimits, RequestOptions};
use crate::response::Response;

/// How much later than the call's own deadline its task is given up: it is not run.
const TASK_GRACE: Duration = Duration::from_millis(250);

/// A call that runs: await it.
///
/// It starts when it is first polled, and goes on whether or not it is polled again; it may be
/// spawned, kept or selected over. Dropping it ends the call at once: a request that has been sent
/// may still arrive. It needs a Tokio runtime with time and I/O; what its key provider and its
/// hooks see are not the caller's task-locals.
#[must_use = "a call does nothing until it is polled"]
pub struct CallFuture<T> {
    call: Pin<Box<dyn Future<Output = Result<Response<Bytes>, Error>> + Send>>,
    decode: Decode<T>,
}

pub(crate) type Decode<T> = fn(Response<Bytes>) -> Result<Response<T>, Error>;

impl<T> CallFuture<T> {
    pub(crate) fn new(
        core: Arc<Core>,
        request: Result<Request, Error>,
        options: RequestOptions,
        decode: Decode<T>,
    ) -> Self {
        Self { call: Box::pin(run_on_task(core, request, options)), decode }
    }
}

impl<T> Future for CallFuture<T> {
    type Output = Result<Response<T>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let response = std::task::ready!(self.call.as_mut().poll(context));
        Poll::Ready(response.and_then(self.decode))
    }
}

impl<T> fmt::Debug for CallFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").finish_non_exhaustive()
    }
}

/// Runs a call on its own task. A call that is started and then not polled would otherwise
/// keep its permit, and hold up every other call with the key.
async fn run_on_task(
    core: Arc<Core>,
    request: Result<Request, Error>,
    options: RequestOptions,
) -> Result<Response<Bytes>, Error> {
    let request = request?;
    let operation = request.operation.clone();
    if let Some((setting, problem)) = options.problem() {
        let problem = format!("the {setting} cannot be used: {problem}");
        return Err(Error::invalid(problem).with_operation(operation));
    }
    if Handle::try_current().is_err() {
        return Err(
            Error::new(Failure::Runtime("there is no Tokio runtime")).with_operation(operation)
        );
    }
    let limits = core.limits.with(&options);
    let deadline = clock::after(clock::now(), limits.timeout);
    let idempotent = request.idempotent;
    let mut task = CallTask::spawn(core, request, limits, deadline);
    let failure = match timeout_at(deadline + TASK_GRACE, &mut task.handle).await {
        Ok(Ok(result)) => return result,
        Ok(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Failure::Runtime("its runtime was shut down"),
        },
        Err(_) => Failure::Timeout { limit: TimeoutKind::Call, after: limits.timeout, sent: true },
    };
    // How far it got is not known here.
    let stats = CallStats { may_have_acted: true, idempotent, ..CallStats::default() };
    Err(Error::new(failure).with_operation(operation).with_stats(stats))
}

type Work = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Error>> + Send>>;

/// The task that runs a call. Dropping it drops what the call holds at once, also where the
/// runtime is never driven again.
struct CallTask {
    handle: JoinHandle<Result<Response<Bytes>, Error>>,
    slot: Arc<Mutex<Option<Work>>>,
}

impl CallTask {
    fn spawn(core: Arc<Core>, request: Request, limits: CallLimits, deadline: Instant) -> Self {
        let span = tracing::info_span!(
            target: TARGET,
            "call",
            otel.kind = "client",
            operation = &*request.operation,
            http.request.method = request.http.method.as_str(),
            url.template = request.template,
            server.address = core.base.as_url().host_str(),
            http.response.status_code = Empty,
            error.type = Empty,
            http.request.resend_count = Empty,
            petstore.attempts = Empty,
            petstore.wait_ms = Empty,
        );
        let call = run(core, request, limits, deadline).instrument(span);
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let work: Work = if subscriber.is::<NoSubscriber>() {
            Box::pin(call)
        } else {
            Box::pin(call.with_subscriber(subscriber))
        };
        let slot = Arc::new(Mutex::new(Some(work)));
        Self { handle: tokio::spawn(Running(Arc::clone(&slot))), slot }
    }
}

impl Drop for CallTask {
    fn drop(&mut self) {
        self.handle.abort();
        // Where it is locked, the call is being polled: the abort takes effect after that.
        let work = self.slot.try_lock().ok().and_then(|mut slot| slot.take());
        drop(work);
    }
}

struct Running(Arc<Mutex<Option<Work>>>);

impl Future for Running {
    type Output = Result<Response<Bytes>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What was taken out has been dropped; the abort is on its way.
        let Some(work) = slot.as_mut() else { return Poll::Pending };
        let result = std::task::ready!(work.as_mut().poll(context));
        *slot = None;
        Poll::Ready(result)
    }
}
