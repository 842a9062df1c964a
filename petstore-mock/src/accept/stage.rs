//! What faults do to one connection: they hold its bytes back, and end it. The wire asks before it
//! writes and tells when all is written; where an answer is to end is left to `staged`.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{clock::Clock, fault::Pace};

/// How a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By a reset (RST).
    Reset,
    /// By the end of the stream (FIN).
    Close,
}

/// The faults of one connection. Without any, each question is one relaxed load.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Whether bytes are held back.
    is_paced: AtomicBool,
    /// Whether the connection ends as soon as all that was said is written.
    is_last: AtomicBool,
    is_over: AtomicBool,
    /// Whether an answer waits for nothing but the client's leaving.
    is_stuck: AtomicBool,
    scene: Mutex<Scene>,
}

#[derive(Debug, Default)]
struct Scene {
    pace: Option<Paced>,
    ending: Option<Ending>,
    /// Who polls the connection.
    waker: Option<Waker>,
}

impl Stage {
    /// Lets the bytes from now on go at a pace, or as ever.
    pub(super) fn set_pace(&self, pace: Option<Pace>, clock: &Clock) {
        if pace.is_some() || self.is_paced.load(Relaxed) {
            self.scene().pace = pace.map(|pace| Paced::new(pace, clock.clone()));
            self.is_paced.store(pace.is_some(), Relaxed);
        }
    }

    /// Returns how many of so many bytes may be written now, and counts none of them yet.
    pub(super) fn poll_allowance(&self, context: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        if !self.is_paced.load(Relaxed) {
            return Poll::Ready(wanted);
        }
        match &mut self.scene().pace {
            Some(pace) => pace.poll_allowance(context, wanted),
            None => Poll::Ready(wanted),
        }
    }

    /// Counts bytes that were written.
    pub(super) fn wrote(&self, bytes: usize) {
        if self.is_paced.load(Relaxed)
            && let Some(pace) = &mut self.scene().pace
        {
            pace.sent = pace.sent.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Whether bytes that are to be written wait for their time.
    pub(super) fn holds_back(&self) -> bool {
        self.is_paced.load(Relaxed)
            && self.scene().pace.as_ref().is_some_and(|pace| pace.wait.is_some())
    }

    /// Ends the connection, whatever is still to be written.
    pub(super) fn end(&self, ending: Ending) {
        let mut scene = self.scene();
        scene.ending = Some(ending);
        self.is_over.store(true, Relaxed);
        scene.wake();
    }

    /// Ends the connection once all that was said is written.
    pub(super) fn end_after_this(&self, ending: Ending) {
        let mut scene = self.scene();
        scene.ending = Some(ending);
        self.is_last.store(true, Relaxed);
        scene.wake();
    }

    /// Notes that all that was said is written.
    pub(super) fn flushed(&self) {
        if self.is_last.load(Relaxed) {
            self.is_over.store(true, Relaxed);
            self.scene().wake();
        }
    }

    /// Notes that an answer waits for nothing but the client's leaving.
    pub(super) fn get_stuck(&self) {
        self.is_stuck.store(true, Relaxed);
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.is_stuck.load(Relaxed)
    }

    /// Waits until a fault has ended the connection. It is asked after the connection was polled:
    /// only where its requests are tasks of their own (HTTP/2) has it to be woken.
    pub(super) fn poll_end(&self, context: &mut Context<'_>, has_tasks: bool) -> Poll<()> {
        if has_tasks {
            self.scene().waker = Some(context.waker().clone());
        }
        if self.is_over.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Returns how a fault has ended the connection, if one has.
    pub(super) fn ending(&self) -> Option<Ending> {
        if self.is_over.load(Relaxed) { self.scene().ending } else { None }
    }

    fn scene(&self) -> MutexGuard<'_, Scene> {
        // Every change is a single assignment.
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scene {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Bytes that go at a pace.
struct Paced {
    pace: Pace,
    clock: Clock,
    began: Duration,
    sent: u64,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Paced {
    fn new(pace: Pace, clock: Clock) -> Self {
        Self { pace, began: clock.since_epoch(), clock, sent: 0, wait: None }
    }

    fn poll_allowance(&mut self, context: &mut Context<'_>, wanted: usize) -> Poll<usize> {
        loop {
            let elapsed = self.clock.since_epoch().saturating_sub(self.began);
            let allowed = self.pace.allowed(elapsed).saturating_sub(self.sent);
            if allowed > 0 {
                self.wait = None;
                return Poll::Ready(usize::try_from(allowed).map_or(wanted, |all| all.min(wanted)));
            }
            let due = self.began.saturating_add(self.pace.due(self.sent));
            let wait = self.wait.get_or_insert_with(|| {
                let clock = self.clock.clone();
                Box::pin(async move { clock.wait_until(due).await })
            });
            if wait.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.wait = None;
        }
    }
}

impl fmt::Debug for Paced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced")
            .field("pace", &self.pace)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}
