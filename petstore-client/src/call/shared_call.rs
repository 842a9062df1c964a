//! The work of a started call. It runs in the task that polls the call. If that task stops polling it,
//! or belongs to another runtime, the call moves to a separate task.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep_until};
use tracing::instrument::Instrumented;

use super::limits::CallLimits;
use super::record::CallRecord;
use super::watch::{Watch, Watched};
use crate::error::Error;
use crate::response::Response;

/// If a task still runs this long after its call's deadline, nobody polls the task.
const TASK_GRACE: Duration = Duration::from_millis(250);

pub(super) type RawResult = Result<Response<Bytes>, Error>;
type Work = Instrumented<Pin<Box<dyn Future<Output = RawResult> + Send>>>;

/// A started call. Several tasks may poll it. When its work can continue, it wakes these tasks.
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
    pub(super) fn new(
        work: Work,
        runtime: Handle,
        watch: Arc<Watch>,
        record: Arc<CallRecord>,
        limits: CallLimits,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(CallState::Working(work)),
            wakers: Mutex::default(),
            polls: AtomicU32::new(0),
            is_woken: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            watch,
            runtime,
            record,
            limits,
        })
    }

    pub(super) fn record(&self) -> &CallRecord {
        &self.record
    }

    /// Polls the call: in the current task, if that is on the call's runtime.
    pub(super) fn poll(self: &Arc<Self>, context: &mut Context<'_>) -> Poll<RawResult> {
        self.set_caller(context.waker());
        let is_here = Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id());
        if is_here {
            // If it is locked, its own task is polling it, and will wake the caller.
            return match self.try_state() {
                Some(mut state) => self.poll_work(&mut state),
                None => Poll::Pending,
            };
        }
        Arc::clone(self).move_to_task();
        match self.state().take_end() {
            Some(end) => Poll::Ready(self.result(end)),
            None => self.poll_overdue(context),
        }
    }

    /// Drops the state of a call that its caller has dropped.
    pub(super) fn abandon(&self) {
        self.is_dropped.store(true, Ordering::SeqCst);
        self.drop_work();
        let task = self.wakers().task.take();
        if let Some(task) = task {
            task.wake();
        }
    }

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
                // The end of this task drops the work.
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
