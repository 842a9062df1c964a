//! What the program says on standard error, besides results: notes, warnings, errors, hints.

use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use petstore_client::{Deprecation, Response, Wait};

use crate::env::Stream;
use crate::error::CliError;
use crate::safe;
use crate::time;

/// A handle to standard error; clones write to the same stream.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    stream: Arc<Mutex<Stream>>,
    verbose: bool,
}

impl Report {
    pub(crate) fn new(stream: Stream, verbose: bool) -> Self {
        Self { stream: Arc::new(Mutex::new(stream)), verbose }
    }

    pub(crate) fn note(&self, text: &str) {
        self.line("note: ", text);
    }

    /// Prints an error with its cause and its hints.
    pub(crate) fn error(&self, error: &CliError) {
        self.line("error: ", &error.cause.to_string());
        if let Some(root) = error.root() {
            self.line("cause: ", &root);
        }
        for hint in &error.hints {
            self.line("hint: ", hint);
        }
    }

    /// Prints what is already laid out, such as help for a mistyped command.
    pub(crate) fn text(&self, text: &str) {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        // Where standard error is gone, there is nobody left to tell.
        let _ = stream.writer.write_all(text.as_bytes());
        let _ = stream.writer.flush();
    }

    pub(crate) fn deprecated(&self, operation: &str, end: &Deprecation, now: SystemTime) {
        let mut text = format!("{operation} is deprecated");
        if let (Some(sunset), Some(days)) = (end.sunset(), end.days_left(now)) {
            text += &format!(" and will be removed on {} ({days} days left)", time::day(sunset));
        }
        if operation == "getPet" {
            text += "; use `petstore pets list --status …`";
        } else if let Some(successor) = end.successor() {
            text += &format!("; use {successor}");
        }
        self.line("warning: ", &text);
    }

    pub(crate) fn waits(&self, wait: &Wait<'_>) {
        let seconds = wait.length.as_secs() + u64::from(wait.length.subsec_nanos() > 0);
        let until = time::instant(wait.until);
        self.note(&format!("{}: waiting {seconds} s, until {until}", wait.quota));
    }

    /// With `-v`: tells what a call went through.
    pub(crate) fn called<T>(&self, operation: &str, response: &Response<T>) {
        if !self.verbose {
            return;
        }
        let plural = if response.attempts() == 1 { "" } else { "s" };
        let mut text = format!(
            "{operation}: {} after {} attempt{plural} and {:.1} s of waiting",
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
        self.line("", &text);
    }

    fn line(&self, label: &str, text: &str) {
        let text = safe::lines(text.trim_end());
        self.text(&format!("{label}{text}\n"));
    }
}
