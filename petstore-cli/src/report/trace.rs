//! What calls went through: `-v` a line for each, `-vv` the headers from a list of harmless ones,
//! `-vvv` the bodies.

use http::{HeaderMap, StatusCode};
use petstore_client::{Error as ClientError, Response};
use serde_json::Value;

use super::printer::Report;
use crate::error::CliError;
use crate::output::to_text;
use crate::{style, time};

/// The headers that are shown. What is not named here may hold a secret.
const SHOWN: [&str; 16] = [
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
    "vary",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-request-id",
];

/// A request, as far as it is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent<'s> {
    /// The operation's name, or the method and the path.
    pub(crate) operation: &'s str,
    pub(crate) body: Option<&'s str>,
}

impl<'s> Sent<'s> {
    pub(crate) fn new(operation: &'s str) -> Self {
        Self { operation, body: None }
    }

    pub(crate) fn body(mut self, body: &'s str) -> Self {
        self.body = Some(body);
        self
    }
}

impl Report {
    /// Returns whether bodies are told, which have to be kept for that.
    pub(crate) fn tells_bodies(&self) -> bool {
        self.style.verbose >= 3
    }

    /// Tells what a call went through. `value` is what was read of the answer.
    pub(crate) fn called<T>(
        &self,
        sent: Sent<'_>,
        response: &Response<T>,
        value: impl FnOnce(&T) -> Value,
    ) {
        self.clear();
        if self.style.verbose == 0 {
            return;
        }
        let plural = if response.attempts() == 1 { "" } else { "s" };
        let mut text = format!(
            "{}: {} after {} attempt{plural} and {:.1} s of waiting",
            sent.operation,
            response.status(),
            response.attempts(),
            response.waited().as_secs_f64(),
        );
        if let Some(quota) = response.rate_limit() {
            text += &format!(
                "; {} of {} requests left until {}",
                quota.remaining,
                quota.limit,
                time::instant(quota.reset)
            );
        }
        self.trace(&text);
        if let Some(body) = sent.body.filter(|_| self.tells_bodies()) {
            self.trace(&format!("> {body}"));
        }
        self.head(response.status(), response.headers());
        if self.tells_bodies() {
            self.trace(&format!("< {}", to_text(&value(response))));
        }
    }

    /// Tells what a refused call was answered.
    pub(super) fn refused(&self, error: &CliError) {
        let Some(error) = error.cause.downcast_ref::<ClientError>() else { return };
        if let (Some(status), Some(headers)) = (error.status(), error.headers()) {
            self.head(status, headers);
        }
        if let Some(body) = error.body().filter(|_| self.tells_bodies()) {
            self.trace(&format!("< {body}"));
        }
    }

    fn head(&self, status: StatusCode, headers: &HeaderMap) {
        if self.style.verbose < 2 {
            return;
        }
        self.trace(&format!("< {status}"));
        for (name, value) in headers.iter().filter(|(name, _)| SHOWN.contains(&name.as_str())) {
            self.trace(&format!("< {name}: {}", String::from_utf8_lossy(value.as_bytes())));
        }
    }

    fn trace(&self, text: &str) {
        self.tell("trace", style::HINT, text);
    }
}
