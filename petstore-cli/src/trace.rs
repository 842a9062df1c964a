//! What happens to requests, on standard error: waits and retries on the status line, and with `-v`
//! a line for each attempt, with `-vv` headers, with `-vvv` bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::HeaderMap;
use petstore_client::events::{Attempt, Event, Finished, Received, Retrying, Waiting};
use petstore_client::rate_limit::{BlockReason, Blocked, Quota, SharedStatus, WaitReason};
use petstore_client::{Bytes, Deprecation, Error as ClientError};
use tokio::time::Instant;

use crate::escape;
use crate::explain::exhausted;
use crate::time;
use crate::ui::{Activity, Ui};

/// The headers that are shown. Others may hold a secret.
const SHOWN_HEADERS: [&str; 18] = [
    "accept",
    "allow",
    "content-length",
    "content-type",
    "date",
    "deprecation",
    "etag",
    "link",
    "location",
    "retry-after",
    "server",
    "sunset",
    "user-agent",
    "vary",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-request-id",
];

/// Follows the requests of a client.
#[derive(Debug)]
pub(crate) struct Tracer {
    ui: Ui,
    /// Host and port of the service.
    host: String,
    /// How often a request may be sent.
    attempts: u32,
    /// Whether a deprecated operation was used.
    deprecated: Arc<AtomicBool>,
}

impl Tracer {
    pub(crate) fn new(ui: Ui, host: String, attempts: u32, deprecated: Arc<AtomicBool>) -> Self {
        Self { ui, host, attempts, deprecated }
    }

    pub(crate) fn event(&self, event: &Event<'_>) {
        match event {
            Event::Sending(attempt) => self.sending(attempt),
            Event::Finished(finished) => self.finished(finished),
            Event::Waiting(waiting) => self.waiting(waiting),
            Event::Retrying(retrying) => self.retrying(retrying),
            Event::Deprecated { operation, deprecation } => self.deprecated(operation, deprecation),
            Event::SharedStore(store) => shared_store(&self.ui, store),
            _ => {}
        }
    }

    fn sending(&self, attempt: &Attempt<'_>) {
        let text = format!("waiting for {}", self.host);
        self.ui.set_activity(Some(Activity { short: text.clone(), text, end: None }));
        if self.ui.options.verbose < 2 {
            return;
        }
        self.line(&format!("> {} {}", attempt.method, attempt.url));
        self.line("> authorization: Bearer [hidden]");
        self.headers('>', attempt.headers);
        if self.ui.options.verbose >= 3 {
            self.body('>', attempt.body);
        }
    }

    fn finished(&self, finished: &Finished<'_>) {
        self.ui.set_activity(None);
        let verbose = self.ui.options.verbose;
        if let (2.., Ok(Received { status, headers, body, .. })) = (verbose, finished.outcome) {
            self.line(&format!("< {status}"));
            self.headers('<', headers);
            if verbose >= 3 {
                self.body('<', body);
            }
        }
        if verbose >= 1 {
            self.line(&summary(finished));
        }
    }

    fn waiting(&self, waiting: &Waiting<'_>) {
        if let Some(blocked) = &waiting.blocked {
            return report_wait(&self.ui, blocked);
        }
        let (text, short) = match waiting.reason {
            WaitReason::Members => ("other processes are first", "other processes"),
            WaitReason::Probe => ("waiting for the first response with this key", "first response"),
            _ => ("waiting for requests in flight", "requests in flight"),
        };
        let activity = Activity { text: text.to_owned(), short: short.to_owned(), end: None };
        self.ui.set_activity(Some(activity));
        if !self.ui.is_live() {
            self.ui.note(text);
        }
    }

    fn retrying(&self, retrying: &Retrying<'_>) {
        let attempt = format!("attempt {} of {}", retrying.attempt + 1, self.attempts);
        let end = Instant::now() + retrying.delay;
        self.ui.set_activity(Some(Activity {
            text: format!("{}; {attempt}", cause(retrying.error)),
            short: attempt.clone(),
            end: Some((end, None)),
        }));
        if self.ui.options.verbose >= 1 {
            let delay = time::duration(retrying.delay);
            self.line(&format!("{}; {attempt} in {delay}", cause(retrying.error)));
        }
    }

    fn deprecated(&self, operation: &str, deprecation: &Deprecation) {
        self.deprecated.store(true, Ordering::Relaxed);
        let (name, replacement) = match operation {
            "getPet" => ("`pets get`".to_owned(), Some("`petstore pets list`".to_owned())),
            other => (format!("`{other}`"), deprecation.replacement().map(str::to_owned)),
        };
        let end = match deprecation.sunset() {
            Some(sunset) => format!("stops working on {}", time::day(sunset)),
            None => "is deprecated".to_owned(),
        };
        let instead = replacement.map(|other| format!("; use {other}")).unwrap_or_default();
        self.ui.warning(&format!("{name} {end}{instead}"), None);
    }

    fn headers(&self, side: char, headers: &HeaderMap) {
        for (name, value) in
            headers.iter().filter(|(name, _)| SHOWN_HEADERS.contains(&name.as_str()))
        {
            self.line(&format!("{side} {name}: {}", String::from_utf8_lossy(value.as_bytes())));
        }
    }

    fn body(&self, side: char, body: &Bytes) {
        if !body.is_empty() {
            self.line(&format!("{side} {}", String::from_utf8_lossy(body)));
        }
    }

    fn line(&self, text: &str) {
        self.ui.text(&format!("{}\n", escape::lines(text.trim_end())));
    }
}

/// Says that requests wait for the end of a block.
pub(crate) fn report_wait(ui: &Ui, blocked: &Blocked) {
    let short = match blocked.reason {
        BlockReason::Quota(Quota::Minute) => "minute quota",
        BlockReason::Quota(Quota::Day) => "day quota",
        BlockReason::Ban => "ban",
        _ => "rate limit",
    };
    let text = format!("{}; continues", exhausted(blocked.reason));
    ui.waits(&text, short, blocked.remaining, blocked.until);
}

/// Warns of a store of rate limits that cannot be used, once.
pub(crate) fn shared_store(ui: &Ui, store: &SharedStatus) {
    if let Some(problem) = &store.problem {
        let text = format!("rate limits are not shared: {}: {problem}", store.location);
        ui.warning(&text, Some("`petstore doctor` shows when they are"));
    }
}

fn cause(error: &ClientError) -> String {
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
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
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
        let period = match window.quota {
            Quota::Minute => " this minute",
            Quota::Day => " today",
            _ => "",
        };
        format!("; {} of {} left{period}", time::count(window.remaining), time::count(window.limit))
    });
    format!("{request}  {} in {elapsed}{}", response.status.as_u16(), quota.unwrap_or_default())
}
