//! Reports requests on standard error: waits and retries on the status line; with `-v` each
//! attempt, with `-vv` headers, with `-vvv` bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use petstore_client::events::{Attempt, Event, Finished, Received, Retrying, Waiting};
use petstore_client::rate_limit::{Blocked, SharedStatus, WaitReason};
use petstore_client::{Bytes, Deprecation, Error};
use tokio::time::Instant;

use super::purpose::Purpose;
use super::words::{exhausted, limit_name, quota_left};
use crate::status::Activity;
use crate::time;
use crate::ui::Ui;

/// A header whose name contains one of these words may have a secret value.
const SECRET_WORDS: [&str; 8] = [
    "auth",
    "cookie",
    "credential",
    "key",
    "password",
    "secret",
    "session",
    "token",
];

/// What follows if commands do not share the limits of their key.
const ALONE: &str =
    "commands that run at the same time may together be refused, or get the key banned";

/// Reports the requests of a client.
pub(super) struct Tracer {
    ui: Ui,
    /// The host and port of the service.
    host: String,
    /// The maximum number of attempts.
    attempts: u32,
    purpose: Purpose,
    /// Whether a deprecated operation was used.
    deprecated: Arc<AtomicBool>,
    /// The command that makes the folder of shared limits usable, if one is needed.
    fix: Option<String>,
}

impl Tracer {
    pub(super) fn new(ui: Ui, host: &str, attempts: u32, purpose: Purpose) -> Self {
        Self {
            ui,
            host: host.to_owned(),
            attempts,
            purpose,
            deprecated: Arc::default(),
            fix: None,
        }
    }

    /// Sets the flag that is set when a deprecated operation is used.
    pub(super) fn raising(self, deprecated: Arc<AtomicBool>) -> Self {
        Self { deprecated, ..self }
    }

    /// Sets the command that makes the folder of shared limits usable.
    pub(super) fn naming_fix(self, fix: Option<String>) -> Self {
        Self { fix, ..self }
    }

    pub(super) fn event(&self, event: &Event<'_>) {
        match event {
            Event::Sending(attempt) => self.sending(attempt),
            Event::Finished(finished) => self.finished(finished),
            Event::Waiting(waiting) => self.waiting(waiting),
            Event::Retrying(retrying) => self.retrying(retrying),
            Event::Deprecated {
                operation,
                deprecation,
                ..
            } => self.deprecated(operation, deprecation),
            Event::SharedStore(store) => shared_store(&self.ui, store, self.fix.as_deref()),
            _ => {}
        }
    }

    fn sending(&self, attempt: &Attempt<'_>) {
        self.ui.set_activity(Some(Activity::response(&self.host)));
        if self.ui.verbosity() >= 2 {
            self.ui
                .trace(&format!("> {} {}", attempt.method, attempt.url));
            self.ui.trace("> authorization: Bearer [hidden]");
            self.content('>', attempt.headers, attempt.body);
        }
    }

    fn finished(&self, finished: &Finished<'_>) {
        self.ui.set_activity(None);
        let verbose = self.ui.verbosity();
        if let (
            2..,
            Ok(Received {
                status,
                headers,
                body,
                ..
            }),
        ) = (verbose, finished.outcome)
        {
            self.ui.trace(&format!("< {status}"));
            self.content('<', headers, body);
        }
        if verbose >= 1 {
            self.ui.trace(&summary(finished));
        }
    }

    fn waiting(&self, waiting: &Waiting<'_>) {
        if let Some(blocked) = &waiting.blocked {
            return report_wait(&self.ui, blocked);
        }
        let activity = match waiting.reason {
            WaitReason::Members => Activity::share(),
            WaitReason::Probe => Activity::first_response(),
            _ => Activity::requests_in_flight(),
        };
        if !self.ui.is_live() {
            self.ui.note(activity.text());
        }
        self.ui.set_activity(Some(activity));
    }

    fn retrying(&self, retrying: &Retrying<'_>) {
        let attempt = format!("attempt {} of {}", retrying.attempt + 1, self.attempts);
        let cause = cause(retrying.error);
        let short_cause = match retrying.error.status() {
            Some(status) => status.as_u16().to_string(),
            None => cause.clone(),
        };
        let end = Instant::now() + retrying.delay;
        let activity = Activity::retry(&cause, &short_cause, &attempt, end);
        if self.ui.verbosity() >= 1 {
            let delay = time::duration(retrying.delay);
            self.ui.trace(&format!("{} in {delay}", activity.text()));
        }
        self.ui.set_activity(Some(activity));
    }

    fn deprecated(&self, operation: &str, deprecation: &Deprecation) {
        self.deprecated.store(true, Ordering::Relaxed);
        let (name, replacement) = match self.purpose.retiring() {
            Some(retiring) => (retiring.command, Some(retiring.replacement)),
            None => (operation, deprecation.replacement()),
        };
        let end = match deprecation.sunset() {
            Some(sunset) => format!("stops working on {}", time::day(sunset)),
            None => "is deprecated".to_owned(),
        };
        let instead = replacement
            .map(|other| format!("; use {other}"))
            .unwrap_or_default();
        self.ui.warning(&format!("`{name}` {end}{instead}"), None);
    }

    fn content(&self, side: char, headers: &HeaderMap, body: &Bytes) {
        for (name, value) in headers {
            let may_be_secret = SECRET_WORDS.iter().any(|word| name.as_str().contains(word));
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = if may_be_secret { "[hidden]" } else { &value };
            self.ui.trace(&format!("{side} {name}: {value}"));
        }
        if self.ui.verbosity() >= 3 && !body.is_empty() {
            self.ui
                .trace(&format!("{side} {}", String::from_utf8_lossy(body)));
        }
    }
}

/// Reports a wait for the end of a block.
pub(crate) fn report_wait(ui: &Ui, blocked: &Blocked) {
    let text = format!("{}; continues", exhausted(blocked.reason));
    ui.waits(
        &text,
        limit_name(blocked.reason),
        blocked.remaining,
        blocked.until,
    );
}

/// Warns once that the store of rate limits is unusable, and says what follows.
pub(super) fn shared_store(ui: &Ui, store: &SharedStatus, fix: Option<&str>) {
    let Some(problem) = &store.problem else {
        return;
    };
    let place = &store.location;
    let text = format!("rate limits are not shared: {place}: {problem}; {ALONE}");
    ui.warning(&text, fix.or(Some("`petstore doctor` checks the store")));
}

fn cause(error: &Error) -> String {
    match error.status() {
        Some(status) => format!("{} from the service", status.as_u16()),
        None if error.is_connect() => "no connection".to_owned(),
        None if error.is_timeout() => "no response".to_owned(),
        None => "connection lost".to_owned(),
    }
}

/// Returns an attempt on one line: `GET /v1/pets?limit=1  200 in 9 ms; 56 of 60 left this minute`.
fn summary(finished: &Finished<'_>) -> String {
    let Attempt { method, url, .. } = finished.request;
    let query = url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let elapsed = match finished.elapsed {
        short if short < Duration::from_secs(1) => format!("{} ms", short.as_millis()),
        long => time::duration(long),
    };
    let request = format!("{method} {}{query}", url.path());
    let response = match &finished.outcome {
        Ok(response) => response,
        Err(error) => return format!("{request}  {} after {elapsed}", cause(error)),
    };
    let quota = response.quota().map(|window| {
        format!(
            "; {}",
            quota_left(window.quota, window.remaining, window.limit)
        )
    });
    format!(
        "{request}  {} in {elapsed}{}",
        response.status.as_u16(),
        quota.unwrap_or_default()
    )
}
