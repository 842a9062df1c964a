//! A started call: runs in the task that polls it, reports its end, and frees everything when dropped.
//!
//! If that task stops polling the call, or belongs to another runtime, the call moves to a task of its
//! own. Otherwise it would keep its permit and hold up all other calls with the key, for example during
//! the body of a `select!`.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep_until};
use tracing::instrument::{Instrumented, WithSubscriber as _};
use tracing::subscriber::NoSubscriber;
use tracing::{Instrument as _, Span};

use super::check::check;
use super::limits::CallLimits;
use super::record::{CallRecord, next_call_id};
use super::run;
use super::spans::{call_span, record_error};
use super::watch::{Watched, watch};
use crate::client::{Client, Core};
use crate::clock;
use crate::error::Error;
use crate::events::{Event, EventKind};
use crate::request::Request;
use crate::response::Response;

/// If a call's own task still runs this long after the deadline, nobody polls that task.
const TASK_GRACE: Duration = Duration::from_millis(250);

type RawResult = Result<Response<Bytes>, Error>;
type Work = Instrumented<Pin<Box<dyn Future<Output = RawResult> + Send>>>;

/// A started call, as its caller has it. Dropping it drops the call's state immediately, even if its
/// runtime never runs again.
pub(crate) struct RunningCall {
    shared: Arc<SharedCall>,
    core: Arc<Core>,
    span: Span,
    has_ended: bool,
}

impl RunningCall {
    /// Starts a call. The caller must poll it.
    pub(crate) fn start(client: Client, request: Request) -> Result<Self, Error> {
        let runtime = match check(&client, &request) {
            Ok(runtime) => runtime,
            Err(error) => return Err(error.with_operation(request.operation)),
        };
        let span = call_span(&request);
        let now = clock::now();
        let limits = CallLimits::new(&client.options, client.core.retries.max_attempts(), now);
        let record = CallRecord::new(request.operation.clone(), request.idempotent, now);
        let record = Arc::new(record);
        let core = Arc::clone(&client.core);
        let call = run(client.core, request, limits, Arc::clone(&record));
        let mut call: Pin<Box<dyn Future<Output = RawResult> + Send>> = Box::pin(call);
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        if !subscriber.is::<NoSubscriber>() {
            call = Box::pin(call.with_subscriber(subscriber));
        }
        let work = call.instrument(span.clone());
        let shared = Arc::new(SharedCall {
            state: Mutex::new(CallState::Working(work)),
            attention: Mutex::default(),
            runtime,
            record,
            limits,
        });
        Ok(Self {
            shared,
            core,
            span,
            has_ended: false,
        })
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<RawResult> {
        self.shared.poll(context)
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
        let record = &self.shared.record;
        let event = || {
            let stats = record.stats();
            Event {
                operation: Some(record.operation()),
                call_id: Some(record.id()),
                kind: EventKind::Ended {
                    result,
                    attempts: stats.attempts,
                    waited: stats.waited,
                    elapsed: record.elapsed(),
                },
            }
        };
        self.span.in_scope(|| self.core.events.notify(event));
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

/// A call that its caller and its own task poll. `attention` is locked for a moment only, and may be while `state` is;
/// never the other way round.
struct SharedCall {
    state: Mutex<CallState>,
    attention: Mutex<Attention>,
    /// The runtime on which the call began, whose timers and connections it uses.
    runtime: Handle,
    record: Arc<CallRecord>,
    limits: CallLimits,
}

enum CallState {
    Working(Work),
    /// The call's own task ended it, or panicked, or ended itself with its runtime.
    Ended(Box<thread::Result<RawResult>>),
    /// The result was returned, or the call was dropped.
    Gone,
}

/// Who polls a call.
#[derive(Default)]
struct Attention {
    caller: Option<Waker>,
    /// Whether the call was woken since it was last polled.
    is_woken: bool,
    /// Whether it was seen since then that the call is not polled.
    is_unpolled: bool,
    /// Whether it is checked that the caller answers when it is woken.
    is_watched: bool,
    /// Whether the call has its own task, which alone polls it from then on.
    has_task: bool,
    task: Option<Waker>,
    /// Expires if the call's own task does not end the call in time.
    overdue: Option<Pin<Box<Sleep>>>,
    is_dropped: bool,
}

impl SharedCall {
    /// Polls the call for its caller.
    fn poll(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<RawResult> {
        let is_here = Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id());
        if !is_here {
            Arc::clone(self).move_to_task();
        }
        let mut attention = self.attention();
        let has_task = attention.has_task;
        let caller = context.waker();
        let is_known = |known: &Waker| known.will_wake(caller);
        let old = if attention.caller.as_ref().is_some_and(is_known) {
            None
        } else {
            attention.caller.replace(caller.clone())
        };
        drop(attention);
        // Not under the lock: dropping a waker runs the program's code.
        drop(old);
        match self.try_state() {
            Some(state) if has_task && matches!(*state, CallState::Working(_)) => {}
            Some(mut state) => return self.poll_state(&mut state),
            // Its own task is polling it, and will wake the caller.
            None => {}
        }
        self.poll_overdue(context)
    }

    /// Polls the work in the current task.
    fn poll_state(self: &Arc<Self>, state: &mut CallState) -> Poll<RawResult> {
        let mut work = match std::mem::replace(state, CallState::Gone) {
            CallState::Working(work) => work,
            CallState::Ended(result) => match *result {
                Ok(result) => return Poll::Ready(result),
                Err(panic) => resume_unwind(panic),
            },
            CallState::Gone => return Poll::Ready(Err(self.cannot_run("it has already ended"))),
        };
        let mut attention = self.attention();
        attention.is_woken = false;
        attention.is_unpolled = false;
        drop(attention);
        let waker = Waker::from(Arc::clone(self));
        // If the work panics, the state stays `Gone`.
        let polled = Pin::new(&mut work).poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            *state = CallState::Working(work);
        }
        polled
    }

    /// Ends a call whose own task is not polled any more, after the deadline.
    fn poll_overdue(&self, context: &mut Context<'_>) -> Poll<RawResult> {
        if Handle::try_current().is_err() {
            return Poll::Pending;
        }
        let end = self.limits.deadline() + TASK_GRACE;
        let mut attention = self.attention();
        let overdue = &mut attention.overdue;
        let overdue = overdue.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if overdue.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        drop(attention);
        self.drop_work();
        Poll::Ready(Err(self.record.cut_short(self.limits.timed_out(true))))
    }

    /// Starts the call's own task, unless it has one or was dropped.
    fn move_to_task(self: Arc<Self>) {
        let mut attention = self.attention();
        if attention.is_dropped || std::mem::replace(&mut attention.has_task, true) {
            return;
        }
        drop(attention);
        self.runtime.clone().spawn(CallTask(self));
    }

    /// Drops the work of a call that its caller has dropped.
    fn abandon(&self) {
        let mut attention = self.attention();
        attention.is_dropped = true;
        let task = attention.task.take();
        drop(attention);
        self.drop_work();
        if let Some(task) = task {
            task.wake();
        }
    }

    fn wake_caller(&self) {
        let caller = self.attention().caller.take();
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

    fn cannot_run(&self, problem: &str) -> Error {
        self.record.cut_short(Error::cannot_run(problem))
    }

    /// Returns the state, unless it is in use at this moment.
    fn try_state(&self) -> Option<MutexGuard<'_, CallState>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn attention(&self) -> MutexGuard<'_, Attention> {
        self.attention
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the task that polls the call.
impl Wake for SharedCall {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut attention = self.attention();
        attention.is_woken = true;
        let waker = if attention.has_task {
            attention.task.clone()
        } else {
            attention.caller.clone()
        };
        let is_new = !attention.has_task && !attention.is_dropped && !attention.is_watched;
        attention.is_watched |= is_new;
        drop(attention);
        if is_new {
            let call = Arc::downgrade(self);
            watch(call, &self.runtime);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Watched for SharedCall {
    fn look(self: Arc<Self>) -> bool {
        let mut attention = self.attention();
        if !attention.is_woken || attention.is_dropped {
            attention.is_watched = false;
            return false;
        }
        if !std::mem::replace(&mut attention.is_unpolled, true) {
            return true;
        }
        drop(attention);
        self.move_to_task();
        false
    }
}

/// The own task of a call.
struct CallTask(Arc<SharedCall>);

impl Future for CallTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let call = &self.0;
        call.attention().task = Some(context.waker().clone());
        let Some(mut state) = call.try_state() else {
            // The caller is polling it for the last time.
            context.waker().wake_by_ref();
            return Poll::Pending;
        };
        if !matches!(*state, CallState::Working(_)) {
            return Poll::Ready(());
        }
        match catch_unwind(AssertUnwindSafe(|| call.poll_state(&mut state))) {
            Ok(Poll::Ready(result)) => *state = CallState::Ended(Box::new(Ok(result))),
            Err(panic) => *state = CallState::Ended(Box::new(Err(panic))),
            Ok(Poll::Pending) => {
                drop(state);
                if !call.attention().is_dropped {
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(())
    }
}

impl Drop for CallTask {
    /// Runs at the end of the task, or of its runtime.
    fn drop(&mut self) {
        let call = &self.0;
        if let Some(mut state) = call.try_state()
            && matches!(*state, CallState::Working(_))
        {
            let error = call.cannot_run("its runtime was shut down");
            let ended = CallState::Ended(Box::new(Ok(Err(error))));
            let work = std::mem::replace(&mut *state, ended);
            drop(state);
            drop(work);
        }
        call.wake_caller();
    }
}
