//! The task that runs a call. Without it, a started call that is no longer polled would keep its
//! permit, and block every other call with the key.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout_at;
use tracing::instrument::{Instrumented, WithSubscriber as _};
use tracing::subscriber::NoSubscriber;
use tracing::{Instrument as _, Span};

use super::limits::CallLimits;
use super::run;
use crate::client::Client;
use crate::error::{CallStats, Error, ErrorKind};
use crate::http::base_url::same_origin;
use crate::request::Request;
use crate::response::Response;

/// A task that still runs this long after its call's deadline is not being polled.
const TASK_GRACE: Duration = Duration::from_millis(250);

type RawResult = Result<Response<Bytes>, Error>;
type Work = Instrumented<Pin<Box<dyn Future<Output = RawResult> + Send>>>;

/// A call on a task of its own. Dropping it drops the call's state immediately, even if the runtime
/// never runs again.
pub(crate) struct CallTask {
    handle: JoinHandle<RawResult>,
    work: Arc<Mutex<Option<Work>>>,
    may_have_acted: Arc<AtomicBool>,
    operation: Cow<'static, str>,
    idempotent: bool,
    limits: CallLimits,
}

impl CallTask {
    /// Starts a call.
    pub(crate) fn spawn(client: Client, request: Request, span: Span) -> Result<Self, Error> {
        let (operation, idempotent) = (request.operation.clone(), request.idempotent);
        check(&client, &request).map_err(|error| error.with_operation(operation.clone()))?;
        let limits = CallLimits::new(&client.options);
        let may_have_acted = Arc::new(AtomicBool::new(false));
        let call = run(client.core, request, limits, Arc::clone(&may_have_acted));
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let call: Pin<Box<dyn Future<Output = RawResult> + Send>> =
            if subscriber.is::<NoSubscriber>() {
                Box::pin(call)
            } else {
                Box::pin(call.with_subscriber(subscriber))
            };
        let work = Arc::new(Mutex::new(Some(call.instrument(span))));
        let handle = tokio::spawn(Running(Arc::clone(&work)));
        Ok(Self {
            handle,
            work,
            may_have_acted,
            operation,
            idempotent,
            limits,
        })
    }

    /// Waits for the task to end.
    pub(crate) async fn result(mut self) -> RawResult {
        let error = match timeout_at(self.limits.deadline() + TASK_GRACE, &mut self.handle).await {
            Ok(Ok(result)) => return result,
            Ok(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => cannot_run("its runtime was shut down"),
            },
            Err(_) => self.limits.timed_out(true),
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

struct Running(Arc<Mutex<Option<Work>>>);

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
