//! What the benchmarks measure, within reach of them. Not part of the public interface.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;

use crate::clock;
use crate::gate::{Gate, Lane, Permit, Wish};
use crate::quota::Policy;

/// A gate for a key with room to spare, or with a full line.
#[derive(Debug)]
pub struct OpenGate {
    gate: Gate,
    headers: HeaderMap,
    /// When all calls would have given up.
    latest: Instant,
}

impl Default for OpenGate {
    /// Opens a gate by one request whose answer says that there is room for a million more.
    fn default() -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in [("limit", "1000000"), ("remaining", "999999"), ("reset", "60")] {
            let name = http::HeaderName::try_from(format!("x-ratelimit-{name}"));
            headers.insert(name.expect("a plain name"), HeaderValue::from_static(value));
        }
        let latest = clock::after(clock::now(), Duration::from_secs(36_000));
        let open = Self { gate: Gate::new(None), headers, latest };
        open.answered(open.permit(u32::MAX).expect("a new gate lets one through"));
        open
    }
}

impl OpenGate {
    /// Acquires a permit and gives it back unused.
    pub fn acquire_and_release(&self) {
        drop(self.permit(u32::MAX).expect("there is room"));
    }

    /// Acquires a permit, sends, and takes in the answer, its headers parsed.
    pub fn acquire_and_observe(&self) {
        self.answered(self.permit(u32::MAX).expect("there is room"));
    }

    /// Puts calls in line behind one that is under way, lets `body` happen, and takes them out.
    pub fn with_waiters(&self, count: usize, body: impl FnOnce(&Self)) {
        let first = self.permit(1).expect("there is room");
        let context = &mut Context::from_waker(Waker::noop());
        let waiting: Vec<_> = (0..count)
            .map(|_| {
                let mut call = Box::pin(self.gate.acquire(self.wish(1), |_| ()));
                assert!(call.as_mut().poll(context).is_pending());
                call
            })
            .collect();
        body(self);
        drop(waiting);
        drop(first);
    }

    /// Joins the line and leaves it again.
    pub fn join_and_leave(&self) {
        let call = pin!(self.gate.acquire(self.wish(1), |_| ()));
        let pending = call.poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(pending, "there is a line");
    }

    fn permit(&self, cap: u32) -> Option<Permit<'_>> {
        let call = pin!(self.gate.acquire(self.wish(cap), |_| ()));
        match call.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit.ok(),
            Poll::Pending => None,
        }
    }

    fn wish(&self, cap: u32) -> Wish {
        let policy = Policy { max_in_flight: Some(cap), ..Policy::default() };
        Wish { number: None, lane: Lane::Interactive, policy, latest: self.latest }
    }

    fn answered(&self, mut permit: Permit<'_>) {
        permit.sent();
        permit.observe(StatusCode::OK, &self.headers);
    }
}
