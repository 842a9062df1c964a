//! What went over the wire: `-v` a line for each attempt, `-vv` the headers from a list of harmless
//! ones, `-vvv` the bodies.

use http::HeaderMap;
use petstore_client::Bytes;
use petstore_client::events::{Finished, Received};

use super::printer::Report;
use crate::{style, time};

/// The headers that are shown. What is not named here may hold a secret.
const SHOWN: [&str; 17] = [
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
    "vary",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-request-id",
];

impl Report {
    /// Tells of an attempt that has ended, and takes off the screen what was told while it waited.
    pub(crate) fn finished(&self, finished: &Finished<'_>) {
        self.clear();
        let verbose = self.style.verbose;
        if verbose >= 1 {
            self.trace(&summary(finished));
        }
        let request = &finished.request;
        if verbose >= 2 {
            self.trace(&format!("> {} {}", request.method, request.url));
            self.headers('>', request.headers);
        }
        if verbose >= 3 && !request.body.is_empty() {
            self.body('>', request.body);
        }
        let Ok(Received { status, headers, body, .. }) = finished.outcome else { return };
        if verbose >= 2 {
            self.trace(&format!("< {status}"));
            self.headers('<', headers);
        }
        if verbose >= 3 {
            self.body('<', body);
        }
    }

    fn headers(&self, side: char, headers: &HeaderMap) {
        for (name, value) in headers.iter().filter(|(name, _)| SHOWN.contains(&name.as_str())) {
            self.trace(&format!("{side} {name}: {}", String::from_utf8_lossy(value.as_bytes())));
        }
    }

    fn body(&self, side: char, body: &Bytes) {
        if !body.is_empty() {
            self.trace(&format!("{side} {}", String::from_utf8_lossy(body)));
        }
    }

    fn trace(&self, text: &str) {
        self.tell("trace", style::HINT, text);
    }
}

fn summary(finished: &Finished<'_>) -> String {
    let mut text = finished.request.operation.to_owned();
    if finished.request.attempt > 1 {
        text += &format!(", attempt {}", finished.request.attempt);
    }
    let elapsed = finished.elapsed.as_secs_f64();
    let response = match &finished.outcome {
        Ok(response) => response,
        Err(problem) => return format!("{text}: {problem} ({elapsed:.3} s)"),
    };
    text += &format!(": {} in {elapsed:.3} s", response.status);
    if let Some(quota) = response.quota() {
        let reset = time::instant(quota.reset);
        text += &format!("; {} of {} requests left until {reset}", quota.remaining, quota.limit);
    }
    text
}
