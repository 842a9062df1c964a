//! Reports requests on standard error: waits and retries on the status line; with `-v` each
//! attempt, with `-vv` headers, with `-vvv` bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method};
use petstore_client::bytes::Bytes;
use petstore_client::events::{Event, EventKind};
use petstore_client::limits::{Blocked, QuotaWindow, Shared, WaitReason};
use petstore_client::url::{Position, Url};
use petstore_client::{Deprecation, Error};
use tokio::time::Instant;

use super::Purpose;
use super::words::{exhausted, limit_name, quota_left};
use crate::settings::secrets::MASK;
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
pub(crate) struct Tracer {
    ui: Ui,
    /// The host and port of the service.
    host: String,
    /// The maximum number of attempts.
    attempts: u32,
    purpose: Purpose,
    /// The command that checks the store of rate limits.
    doctor: String,
    /// Set when a deprecated operation is used.
    deprecated: Arc<AtomicBool>,
}

impl Tracer {
    pub(crate) fn new(
        ui: Ui,
        base_url: &Url,
        attempts: u32,
        purpose: Purpose,
        doctor: String,
        deprecated: Arc<AtomicBool>,
    ) -> Self {
        Self {
            ui,
            host: base_url[Position::BeforeHost..Position::AfterPort].to_owned(),
            attempts,
            purpose,
            doctor,
            deprecated,
        }
    }

    pub(crate) fn event(&self, event: &Event<'_>) {
        match event.kind {
            EventKind::Sending {
                method,
                url,
                headers,
                body,
                ..
            } => {
                self.ui
                    .set_activity(Some(Activity::new(format!("waiting for {}", self.host))));
                if self.ui.verbosity() >= 2 {
                    self.ui.trace(&format!("> {method} {url}"));
                    self.ui.trace("> authorization: Bearer [hidden]");
                    self.content('>', headers, body);
                }
            }
            EventKind::Answered {
                method,
                url,
                status,
                headers,
                body,
                elapsed,
                ..
            } => {
                self.ui.set_activity(None);
                if self.ui.verbosity() >= 2 {
                    self.ui.trace(&format!("< {status}"));
                    self.content('<', headers, body);
                }
                let status = status.as_u16();
                let elapsed = short(elapsed);
                let quota = quota(headers);
                self.summary(method, url, &format!("{status} in {elapsed}{quota}"));
            }
            EventKind::Failed {
                method,
                url,
                error,
                elapsed,
                ..
            } => {
                self.ui.set_activity(None);
                let cause = cause(error);
                let elapsed = short(elapsed);
                self.summary(method, url, &format!("{cause} after {elapsed}"));
            }
            EventKind::Waiting {
                reason, blocked, ..
            } => self.waiting(reason, blocked.as_ref()),
            EventKind::Retrying {
                attempt,
                error,
                delay,
                ..
            } => self.retrying(attempt, error, delay),
            EventKind::Deprecated(deprecation) => {
                self.deprecated(event.operation.unwrap_or_default(), deprecation);
            }
            EventKind::SharedStore(store) => shared_store(&self.ui, store, &self.doctor),
            _ => {}
        }
    }

    /// Writes an attempt on one line: `GET /v1/pets?limit=1  200 in 9 ms; 56 of 60 left this minute`.
    fn summary(&self, method: &Method, url: &Url, outcome: &str) {
        if self.ui.verbosity() == 0 {
            return;
        }
        let target = &url[Position::BeforePath..Position::AfterQuery];
        self.ui.trace(&format!("{method} {target}  {outcome}"));
    }

    fn waiting(&self, reason: WaitReason, blocked: Option<&Blocked>) {
        if let Some(blocked) = blocked {
            return report_wait(&self.ui, blocked);
        }
        let activity = match reason {
            WaitReason::OtherProcesses => {
                Activity::new("waiting for other programs with this key").short("other programs")
            }
            WaitReason::Probe => Activity::new("waiting for the limits of this key"),
            _ => Activity::new("waiting for requests in flight"),
        };
        if !self.ui.is_live() {
            self.ui.note(activity.text());
        }
        self.ui.set_activity(Some(activity));
    }

    fn retrying(&self, attempt: u32, error: &Error, delay: Duration) {
        let (cause, attempt) = (cause(error), attempt + 1);
        let text = format!("{cause}; attempt {attempt} of {}", self.attempts);
        let activity = Activity::new(text).ends(Instant::now() + delay, None);
        if self.ui.verbosity() >= 1 {
            let delay = time::duration(delay);
            self.ui.trace(&format!("{} in {delay}", activity.text()));
        }
        self.ui.set_activity(Some(activity));
    }

    fn deprecated(&self, operation: &str, deprecation: &Deprecation) {
        self.deprecated.store(true, Ordering::Relaxed);
        let (name, replacement) = match self.purpose {
            Purpose::GetPet(_) => ("pets get", Some("`pets list`")),
            Purpose::Read | Purpose::CreatePet | Purpose::Change => {
                (operation, deprecation.replacement())
            }
        };
        let end = match deprecation.sunset() {
            Some(sunset) => format!("stops working on {}", time::day(sunset)),
            None => "is deprecated".to_owned(),
        };
        let mut text = format!("`{name}` {end}");
        if let Some(other) = replacement {
            text += &format!("; use {other}");
        }
        self.ui.warning(&text, None);
    }

    fn content(&self, side: char, headers: &HeaderMap, body: &Bytes) {
        for (name, value) in headers {
            let may_be_secret = SECRET_WORDS.iter().any(|word| name.as_str().contains(word));
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = if may_be_secret { MASK } else { &value };
            self.ui.trace(&format!("{side} {name}: {value}"));
        }
        if self.ui.verbosity() >= 3 && !body.is_empty() {
            let body = String::from_utf8_lossy(body);
            self.ui.trace(&format!("{side} {body}"));
        }
    }
}

/// Reports a wait for the end of a block.
pub(crate) fn report_wait(ui: &Ui, blocked: &Blocked) {
    let text = format!("{}; continues", exhausted(blocked.reason));
    let name = limit_name(blocked.reason);
    ui.waits(&text, name, blocked.remaining, blocked.until);
}

/// Warns if the store of rate limits is unusable. `doctor` is the command that checks it.
pub(crate) fn shared_store(ui: &Ui, store: &Shared, doctor: &str) {
    let Some(problem) = &store.problem else {
        return;
    };
    let why = format!("{}: {problem}", store.location);
    not_shared(ui, &why, &format!("{doctor} checks the store"));
}

/// Warns once that commands do not share rate limits, and says what follows.
pub(super) fn not_shared(ui: &Ui, why: &str, hint: &str) {
    let text = format!("rate limits are not shared: {why}; {ALONE}");
    ui.warning(&text, Some(hint));
}

/// Describes a failure in a few words.
pub(crate) fn cause(error: &Error) -> String {
    let words = match error.status() {
        Some(status) => return status.as_u16().to_string(),
        None if error.is_rate_limited() => "other requests",
        None if error.is_connect() => "no connection",
        None if error.is_timeout() => "no response",
        None => "connection lost",
    };
    words.to_owned()
}

/// Returns what the response says of a quota: `; 56 of 60 left this minute`.
fn quota(headers: &HeaderMap) -> String {
    match QuotaWindow::of(headers) {
        Some(window) => format!("; {}", quota_left(&window)),
        None => String::new(),
    }
}

/// Formats how long an attempt took.
fn short(elapsed: Duration) -> String {
    match elapsed.as_millis() {
        short @ ..1_000 => format!("{short} ms"),
        _ => time::duration(elapsed),
    }
}
