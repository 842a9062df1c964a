//! A started call, as its caller has it: starts, reports and drops it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::StatusCode;
use tokio::runtime::Handle;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;
use tracing::{Instrument as _, Span};

use super::limits::CallLimits;
use super::record::{CallRecord, next_call_id};
use super::run;
use super::shared_call::{RawResult, SharedCall};
use super::spans::{call_span, record_error};
use super::watch::Watch;
use crate::client::{Client, Core};
use crate::error::Error;
use crate::events::{Event, EventKind};
use crate::request::Request;
use crate::wire::base_url::same_origin;

/// A started call. Dropping it drops the call's state immediately, even if its runtime never runs
/// again.
pub(crate) struct RunningCall {
    shared: Arc<SharedCall>,
    core: Arc<Core>,
    span: Span,
    has_ended: bool,
}

impl RunningCall {
    /// Starts a call. The caller must poll it.
    pub(crate) fn start(client: Client, request: Request) -> Result<Self, Error> {
        let (runtime, watch) = match check(&client, &request) {
            Ok(found) => found,
            Err(error) => return Err(error.with_operation(request.operation)),
        };
        let span = call_span(&request);
        let limits = CallLimits::new(&client.options, client.core.retries.max_attempts());
        let record = CallRecord::new(request.operation.clone(), request.idempotent);
        let record = Arc::new(record);
        let core = Arc::clone(&client.core);
        let call = run(client.core, request, limits, Arc::clone(&record));
        let mut call: Pin<Box<dyn Future<Output = RawResult> + Send>> = Box::pin(call);
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        if !subscriber.is::<NoSubscriber>() {
            call = Box::pin(call.with_subscriber(subscriber));
        }
        let work = call.instrument(span.clone());
        let shared = SharedCall::new(work, runtime, watch, record, limits);
        Ok(Self {
            shared,
            core,
            span,
            has_ended: false,
        })
    }

    /// Records the end of the call in its span and as an event.
    pub(crate) fn end(&mut self, result: Result<StatusCode, &Error>) {
        self.has_ended = true;
        if let Err(error) = result {
            record_error(&self.span, error);
        }
        self.notify(Some(result));
    }

    fn notify(&self, result: Option<Result<StatusCode, &Error>>) {
        let record = self.shared.record();
        let stats = record.stats();
        self.span.in_scope(|| {
            self.core.events.notify(|| Event {
                operation: Some(record.operation()),
                call_id: Some(record.id()),
                kind: EventKind::Ended {
                    result,
                    attempts: stats.attempts,
                    waited: stats.waited,
                    elapsed: record.elapsed(),
                },
            });
        });
    }

    /// Polls the call: in the current task, if that is on the call's runtime.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<RawResult> {
        self.shared.poll(context)
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !self.has_ended {
            // A second panic of a panicking thread would end the program.
            let _ = catch_unwind(AssertUnwindSafe(|| self.notify(None)));
        }
        self.shared.abandon();
    }
}

/// Reports a call that could not start.
pub(crate) fn report_unstarted(core: &Core, error: &Error) {
    core.events.notify(|| Event {
        operation: error.operation(),
        call_id: Some(next_call_id()),
        kind: EventKind::Ended {
            result: Some(Err(error)),
            attempts: 0,
            waited: Duration::ZERO,
            elapsed: Duration::ZERO,
        },
    });
}

/// Checks the request before anything is sent. Returns the current runtime, and its watch.
fn check(client: &Client, request: &Request) -> Result<(Handle, Arc<Watch>), Error> {
    if client.options.max_attempts == Some(0) {
        return Err(Error::invalid(
            "the number of attempts cannot be used: it must be at least 1",
        ));
    }
    // The last check before the key is sent: the request must go to the base URL's origin.
    if !same_origin(&request.url, client.base_url()) {
        return Err(Error::invalid("its URL is not on the base URL's origin"));
    }
    let Ok(runtime) = Handle::try_current() else {
        return Err(Error::cannot_run("there is no Tokio runtime"));
    };
    let watch = Watch::of(&runtime);
    watch.drivers().check(client.core.network.needs_io())?;
    Ok((runtime, watch))
}
