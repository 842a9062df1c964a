//! The hooks of a client, and what it has reported.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{AttemptRequest, Event, EventKind};
use crate::clock::http_date;
use crate::deprecation::Deprecation;
use crate::logging::TARGET;
use crate::rate_limit::{BlockReason, Limiter};

/// The maximum number of deprecated operations that are remembered as reported. Raw requests can
/// have any number of names.
const MAX_DEPRECATED: usize = 1_000;

type EventHook = Arc<dyn Fn(&Event<'_>) + Send + Sync>;
type RequestHook = Arc<dyn Fn(&mut AttemptRequest<'_>) + Send + Sync>;

/// The hooks of a client, and what it has reported.
#[derive(Default)]
pub(crate) struct Events {
    hooks: Vec<EventHook>,
    request_hooks: Vec<RequestHook>,
    /// The deprecated operations that were reported.
    deprecated: Mutex<HashSet<String>>,
    /// The number of the last change of the shared store that was noticed.
    store_change: AtomicU64,
    /// Whether the store was last reported to be away.
    is_store_away: AtomicBool,
}

impl Events {
    pub(crate) fn add(&mut self, hook: impl Fn(&Event<'_>) + Send + Sync + 'static) {
        self.hooks.push(Arc::new(hook));
    }

    /// Returns the same hooks for a client with another key, which has reported nothing yet.
    pub(crate) fn of_another_key(&self) -> Self {
        Self {
            hooks: self.hooks.clone(),
            request_hooks: self.request_hooks.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn add_request_hook(
        &mut self,
        hook: impl Fn(&mut AttemptRequest<'_>) + Send + Sync + 'static,
    ) {
        self.request_hooks.push(Arc::new(hook));
    }

    /// Lets the hooks change a request before it is sent.
    pub(crate) fn prepare(&self, request: &mut AttemptRequest<'_>) {
        for hook in &self.request_hooks {
            hook(request);
        }
    }

    /// Returns whether there is a hook, or a subscriber that logs events.
    pub(crate) fn are_observed(&self) -> bool {
        !self.hooks.is_empty() || tracing::enabled!(target: TARGET, tracing::Level::DEBUG)
    }

    /// Reports an event. `event` is only called if events are observed.
    pub(crate) fn notify<'e>(&self, event: impl FnOnce() -> Event<'e>) {
        if self.are_observed() {
            let event = event();
            event.log();
            self.tell(&event);
        }
    }

    /// Reports a 429. Logs it at WARN if its block is new.
    pub(crate) fn notify_throttled(&self, event: &Event<'_>, is_new: bool) {
        let operation = event.operation;
        let EventKind::Throttled { attempt, blocked } = event.kind else {
            return;
        };
        let problem = match blocked.reason {
            BlockReason::Ban => "the service banned the API key",
            _ => "the service refused a request: too many requests",
        };
        if is_new {
            tracing::warn!(target: TARGET, operation, attempt, %blocked, "{problem}");
        } else {
            tracing::debug!(target: TARGET, operation, attempt, %blocked, "{problem}");
        }
        self.tell(event);
    }

    /// Reports whether the store of shared limits failed or works again, once per change. With a key provider,
    /// the limiter of each key notices it by itself.
    pub(crate) fn notify_store(&self, limiter: &Limiter) {
        let change = limiter.store_change();
        if self.store_change.fetch_max(change, Ordering::Relaxed) >= change {
            return;
        }
        let Some(status) = limiter.store_status() else {
            return;
        };
        let is_away = status.problem.is_some();
        if self.is_store_away.swap(is_away, Ordering::Relaxed) != is_away {
            self.notify(|| Event {
                operation: None,
                call_id: None,
                kind: EventKind::SharedStore(&status),
            });
        }
    }

    /// Reports a deprecation once per operation.
    pub(crate) fn notify_deprecated(
        &self,
        operation: &str,
        call_id: u64,
        deprecation: &Deprecation,
    ) {
        let mut reported = self
            .deprecated
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if reported.contains(operation) || reported.len() >= MAX_DEPRECATED {
            return;
        }
        reported.insert(operation.to_owned());
        drop(reported);
        tracing::warn!(
            target: TARGET,
            operation,
            sunset = deprecation.sunset().map(http_date),
            replacement = deprecation.replacement(),
            "this operation is deprecated"
        );
        self.notify(|| Event {
            operation: Some(operation),
            call_id: Some(call_id),
            kind: EventKind::Deprecated(deprecation),
        });
    }

    fn tell(&self, event: &Event<'_>) {
        for hook in &self.hooks {
            hook(event);
        }
    }
}
