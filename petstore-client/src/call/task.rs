//! A started call. It runs in the task that polls it. If that task stops polling it, or belongs to
//! another runtime, the call moves to a separate task.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep_until};
use tracing::instrument::{Instrumented, WithSubscriber as _};
use tracing::subscriber::NoSubscriber;
use tracing::{Instrument as _, Span};

use super::limits::CallLimits;
use super::record::{CallRecord, next_call_id};
use super::run;
use super::spans::{call_span, record_error};
use super::watch::{Watch, Watched};
use crate::client::{Client, Core};
use crate::error::Error;
use crate::events::{CallOutcome, Ended, Event};
use crate::http::base_url::same_origin;
use crate::request::Request;
use crate::response::Response;

/// If a task still runs this long after its call's deadline, nobody polls the task.
const TASK_GRACE: Duration = Duration::from_millis(250);

type RawResult = Result<Response<Bytes>, Error>;
type Work = Instrumented<Pin<Box<dyn Future<Output = RawResult> + Send>>>;

/// A started call. Dropping it drops the call's state immediately, even if its runtime never runs
/// again.
pub(crate) struct RunningCall {
    shared: Arc<SharedCall>,
    core: Arc<Core>,
    span: Span,
    has_ended: bool,
}

/// A started call. Several tasks may poll it. It is also the waker of its own work.
pub(super) struct SharedCall {
    state: Mutex<CallState>,
    wakers: Mutex<Wakers>,
    /// How many times the call has been polled.
    polls: AtomicU32,
    /// Whether the call was woken since it was last polled.
    is_woken: AtomicBool,
    is_dropped: AtomicBool,
    /// The runtime on which the call began, whose timers and connections it uses.
    runtime: Handle,
    watch: Arc<Watch>,
    record: Arc<CallRecord>,
    limits: CallLimits,
}

enum CallState {
    Working(Work),
    /// The call ended on its own task.
    Ended(Box<RawResult>),
    Panicked(Box<dyn Any + Send>),
    /// The call's runtime ended first.
    RuntimeEnded,
    /// The result was returned, or the call was dropped.
    Gone,
}

#[derive(Default)]
struct Wakers {
    caller: Option<Waker>,
    /// The call's own task, if it has one.
    task: Option<Waker>,
    has_task: bool,
    /// Expires if the call's task on another runtime does not end the call in time.
    overdue: Option<Pin<Box<Sleep>>>,
}

impl RunningCall {
    /// Starts a call. The caller must poll it.
    pub(crate) fn start(client: Client, request: Request) -> Result<Self, Error> {
        let (runtime, watch) = match check(&client, &request) {
            Ok(found) => found,
            Err(error) => return Err(error.with_operation(request.operation)),
        };
        let span = call_span(&request);
        let limits = CallLimits::new(&client.options);
        let record = CallRecord::new(request.operation.clone(), request.idempotent);
        let record = Arc::new(record);
        let core = Arc::clone(&client.core);
        let call = run(client.core, request, limits, Arc::clone(&record));
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let call: Pin<Box<dyn Future<Output = RawResult> + Send>> =
            if subscriber.is::<NoSubscriber>() {
                Box::pin(call)
            } else {
                Box::pin(call.with_subscriber(subscriber))
            };
        let shared = SharedCall {
            state: Mutex::new(CallState::Working(call.instrument(span.clone()))),
            wakers: Mutex::default(),
            polls: AtomicU32::new(0),
            is_woken: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            watch,
            runtime,
            record,
            limits,
        };
        Ok(Self {
            shared: Arc::new(shared),
            core,
            span,
            has_ended: false,
        })
    }

    /// Records the end of the call in its span and as an event.
    pub(crate) fn end(&mut self, result: Result<StatusCode, &Error>) {
        self.has_ended = true;
        let outcome = match result {
            Ok(status) => CallOutcome::Succeeded(status),
            Err(error) => CallOutcome::Failed(error),
        };
        if let Err(error) = result {
            record_error(&self.span, error);
        }
        self.notify(outcome);
    }

    fn notify(&self, outcome: CallOutcome<'_>) {
        let record = &self.shared.record;
        let stats = record.stats();
        self.span.in_scope(|| {
            self.core.events.notify(|| {
                Event::Ended(Ended {
                    operation: record.operation(),
                    call_id: record.id(),
                    attempts: stats.attempts,
                    waited: stats.waited,
                    elapsed: record.elapsed(),
                    outcome,
                })
            });
        });
    }

    /// Polls the call: in the current task, if that is on the call's runtime.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<RawResult> {
        let shared = &self.shared;
        shared.set_caller(context.waker());
        let is_here = Handle::try_current().is_ok_and(|here| here.id() == shared.runtime.id());
        if is_here {
            // If it is locked, its own task is polling it, and will wake the caller.
            return match shared.try_state() {
                Some(mut state) => shared.poll_work(&mut state),
                None => Poll::Pending,
            };
        }
        Arc::clone(shared).move_to_task();
        match shared.state().take_end() {
            Some(end) => Poll::Ready(shared.result(end)),
            None => shared.poll_overdue(context),
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        if !self.has_ended {
            // A second panic of a panicking thread would end the program.
            let _ = catch_unwind(AssertUnwindSafe(|| self.notify(CallOutcome::Cancelled)));
        }
        self.shared.is_dropped.store(true, Ordering::SeqCst);
        self.shared.drop_work();
        let task = self.shared.wakers().task.take();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl CallState {
    /// Takes the final state, if the call has ended.
    fn take_end(&mut self) -> Option<Self> {
        match self {
            Self::Working(_) => None,
            _ => Some(std::mem::replace(self, Self::Gone)),
        }
    }
}

impl Watched for SharedCall {
    fn polls(&self) -> u32 {
        self.polls.load(Ordering::Acquire)
    }

    fn move_to_task(self: Arc<Self>) {
        if self.is_dropped.load(Ordering::SeqCst) {
            return;
        }
        let had_task = std::mem::replace(&mut self.wakers().has_task, true);
        if !had_task {
            self.runtime.clone().spawn(CallTask(self));
        }
    }
}

impl SharedCall {
    /// Polls the work in the current task.
    fn poll_work(self: &Arc<Self>, state: &mut CallState) -> Poll<RawResult> {
        self.is_woken.store(false, Ordering::Release);
        self.polls.fetch_add(1, Ordering::AcqRel);
        let mut work = match std::mem::replace(state, CallState::Gone) {
            CallState::Working(work) => work,
            end => return Poll::Ready(self.result(end)),
        };
        let waker = Waker::from(Arc::clone(self));
        // If the work panics, the state stays `Gone`.
        match Pin::new(&mut work).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => {
                *state = CallState::Working(work);
                Poll::Pending
            }
        }
    }

    /// Returns the result of a call that has ended.
    fn result(&self, end: CallState) -> RawResult {
        match end {
            CallState::Ended(result) => *result,
            CallState::Panicked(panic) => resume_unwind(panic),
            CallState::RuntimeEnded => Err(self
                .record
                .complete(Error::cannot_run("its runtime was shut down"))),
            CallState::Working(_) | CallState::Gone => Err(self
                .record
                .complete(Error::cannot_run("the call has already ended"))),
        }
    }

    /// Ends a call whose runtime no longer polls it, after the deadline.
    fn poll_overdue(&self, context: &mut Context<'_>) -> Poll<RawResult> {
        if Handle::try_current().is_err() {
            return Poll::Pending;
        }
        let mut wakers = self.wakers();
        let end = self.limits.deadline() + TASK_GRACE;
        let overdue = wakers
            .overdue
            .get_or_insert_with(|| Box::pin(sleep_until(end)));
        if overdue.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        drop(wakers);
        self.drop_work();
        Poll::Ready(Err(self.record.complete(self.limits.timed_out(true))))
    }

    fn set_caller(&self, waker: &Waker) {
        let mut wakers = self.wakers();
        if !wakers
            .caller
            .as_ref()
            .is_some_and(|caller| caller.will_wake(waker))
        {
            let old = wakers.caller.replace(waker.clone());
            drop(wakers);
            drop(old);
        }
    }

    fn wake_caller(&self) {
        let caller = self.wakers().caller.take();
        if let Some(caller) = caller {
            caller.wake();
        }
    }

    /// Drops the work, unless a task polls it at this moment.
    fn drop_work(&self) {
        if let Some(mut state) = self.try_state() {
            let dropped = std::mem::replace(&mut *state, CallState::Gone);
            drop(state);
            drop(dropped);
        }
    }

    /// Returns the state, unless it is in use at this moment.
    fn try_state(&self) -> Option<MutexGuard<'_, CallState>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wakers(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the tasks that poll the call.
impl Wake for SharedCall {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = self.wakers();
        let (caller, task) = (wakers.caller.clone(), wakers.task.clone());
        let has_task = wakers.has_task;
        drop(wakers);
        if !has_task && !self.is_woken.swap(true, Ordering::AcqRel) {
            let call = Arc::clone(self);
            self.watch.add(call, &self.runtime);
        }
        for waker in [task, caller].into_iter().flatten() {
            waker.wake();
        }
    }
}

/// The task of a call that its caller left unpolled.
struct CallTask(Arc<SharedCall>);

impl Future for CallTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = &self.0;
        shared.wakers().task = Some(context.waker().clone());
        let Some(mut state) = shared.try_state() else {
            // The caller is polling it, but may stop doing so. Check again.
            context.waker().wake_by_ref();
            return Poll::Pending;
        };
        if !matches!(*state, CallState::Working(_)) {
            return Poll::Ready(());
        }
        let polled = catch_unwind(AssertUnwindSafe(|| shared.poll_work(&mut state)));
        *state = match polled {
            Ok(Poll::Ready(result)) => CallState::Ended(Box::new(result)),
            Err(panic) => CallState::Panicked(panic),
            Ok(Poll::Pending) => {
                drop(state);
                if !shared.is_dropped.load(Ordering::SeqCst) {
                    return Poll::Pending;
                }
                shared.drop_work();
                return Poll::Ready(());
            }
        };
        drop(state);
        shared.wake_caller();
        Poll::Ready(())
    }
}

impl Drop for CallTask {
    /// Runs at the end of the task, or of its runtime.
    fn drop(&mut self) {
        if let Some(mut state) = self.0.try_state()
            && matches!(*state, CallState::Working(_))
        {
            let work = std::mem::replace(&mut *state, CallState::RuntimeEnded);
            drop(state);
            drop(work);
        }
        self.0.wake_caller();
    }
}

/// Reports a call that could not start.
pub(crate) fn report_unstarted(core: &Core, error: &Error) {
    core.events.notify(|| {
        Event::Ended(Ended {
            operation: error.operation().unwrap_or_default(),
            call_id: next_call_id(),
            attempts: 0,
            waited: Duration::ZERO,
            elapsed: Duration::ZERO,
            outcome: CallOutcome::Failed(error),
        })
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
