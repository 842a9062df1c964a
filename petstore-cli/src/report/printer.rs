//! The one printer of standard error: as text for people, or as a JSON object on each line.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::RETRY_AFTER;
use petstore_client::Deprecation;
use petstore_client::events::{Retrying, Waiting};
use petstore_client::rate_limit::{Blocked, SharedStatus};
use serde_json::{Value, json};

use super::countdown::Countdown;
use super::fault;
use crate::env::Stream;
use crate::error::CliError;
use crate::output::{cut, to_text};
use crate::style::{self, paint};
use crate::{safe, time};

/// How errors and notes are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ErrorFormat {
    /// Lines for people
    #[default]
    Text,
    /// A JSON object on each line
    Json,
}

/// How much is told, and in which form.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Style {
    pub(crate) format: ErrorFormat,
    pub(crate) color: bool,
    /// Whether nothing but errors is told.
    pub(crate) quiet: bool,
    /// 1: a line for each call; 2: headers too; 3: bodies too.
    pub(crate) verbose: u8,
    /// How many columns a line that changes may have.
    pub(crate) width: Option<u16>,
}

/// A handle to standard error; clones write to the same stream.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    inner: Arc<Mutex<Inner>>,
    pub(super) style: Style,
}

#[derive(Debug)]
pub(super) struct Inner {
    stream: Stream,
    countdown: Option<Countdown>,
    /// Whether a line stands there that will be written over.
    passing: bool,
    /// The last wait that was told of: many calls wait for the same.
    wait_told: Option<String>,
    /// What must never be shown.
    secret: Option<String>,
    deprecated: bool,
    /// Whether a store that cannot be used was reported.
    store_failed: bool,
    width: Option<u16>,
}

impl Inner {
    /// Writes what is already harmless, in place of a countdown that may stand there.
    pub(super) fn write(&mut self, text: &str) {
        let passing = std::mem::take(&mut self.passing) | self.countdown.take().is_some();
        let cleared = if passing { Countdown::CLEAR } else { "" };
        let hidden = self.secret.as_deref().map(|secret| text.replace(secret, "[redacted]"));
        // Where standard error is gone, there is nobody left to tell.
        let _ = write!(self.stream.writer, "{cleared}{}", hidden.as_deref().unwrap_or(text));
        let _ = self.stream.writer.flush();
    }

    /// Writes a line over itself; where it is too wide that could not be.
    pub(super) fn rewrite(&mut self, text: &str) {
        let room = self.width.map_or(usize::MAX, |width| usize::from(width).saturating_sub(1));
        let text = cut(text, room);
        let _ = write!(self.stream.writer, "{}{text}", Countdown::CLEAR);
        let _ = self.stream.writer.flush();
    }
}

/// What a part of the program with messages of its own writes.
impl io::Write for Report {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Report {
    pub(crate) fn new(stream: Stream, style: Style) -> Self {
        let inner = Inner {
            stream,
            countdown: None,
            passing: false,
            wait_told: None,
            secret: None,
            deprecated: false,
            store_failed: false,
            width: style.width,
        };
        Self { inner: Arc::new(Mutex::new(inner)), style }
    }

    /// Keeps a key out of everything that is told from now on. A key so short that it occurs in
    /// ordinary words is no secret.
    pub(crate) fn hide(&self, key: &str) {
        self.lock().secret = (key.len() >= 4).then(|| key.to_owned());
    }

    pub(crate) fn note(&self, text: &str) {
        if !self.style.quiet {
            self.tell("note", style::HINT, text);
        }
    }

    /// Warns of a store of rate limits that cannot be used, once.
    pub(crate) fn store(&self, store: &SharedStatus) {
        let Some(problem) = &store.problem else { return };
        if !std::mem::replace(&mut self.lock().store_failed, true) {
            let location = &store.location;
            self.warning(&format!("rate limits are not shared: {location}: {problem}"));
        }
    }

    pub(crate) fn warning(&self, text: &str) {
        if !self.style.quiet {
            self.tell("warning", style::WARNING, text);
        }
    }

    /// Prints an error with its cause and its hints.
    pub(crate) fn error(&self, error: &CliError) {
        if self.style.format == ErrorFormat::Json {
            return self.object(&fault::object(error));
        }
        self.tell("error", style::ERROR, &error.cause.to_string());
        if let Some(root) = error.root() {
            self.tell("cause", style::ERROR, &root);
        }
        for hint in &error.hints {
            self.tell("hint", style::HINT, hint);
        }
    }

    /// Prints what was mistyped, with how it is meant, as clap lays it out.
    pub(crate) fn usage(&self, text: &str) {
        if self.style.format == ErrorFormat::Text {
            return self.text(text);
        }
        let problem = text.split("\n\n").next().unwrap_or(text);
        let problem = problem.strip_prefix("error: ").unwrap_or(problem);
        let tips = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
        let error = CliError::usage(problem.replace("\n", " "));
        self.error(&tips.fold(error, CliError::hint));
    }

    /// Prints what is already laid out.
    pub(crate) fn text(&self, text: &str) {
        self.lock().write(text);
    }

    /// Remembers that a deprecated operation was used, and tells of it where it is `news`.
    pub(crate) fn deprecated(
        &self,
        operation: &str,
        end: &Deprecation,
        now: SystemTime,
        news: bool,
    ) {
        self.lock().deprecated = true;
        if !news {
            return;
        }
        let mut text = format!("{operation} is deprecated");
        if let (Some(sunset), Some(days)) = (end.sunset(), end.days_left(now)) {
            text += &format!(" and will be removed on {} ({days} days left)", time::day(sunset));
        }
        if operation == "getPet" {
            text += "; use `petstore pets list --status …`";
        } else if let Some(replacement) = end.replacement() {
            text += &format!("; use {replacement}");
        }
        self.warning(&text);
    }

    /// Returns whether a deprecated operation was used.
    pub(crate) fn was_deprecated(&self) -> bool {
        self.lock().deprecated
    }

    /// Tells why a call waits: where an end is known as a countdown to who looks at it, else once.
    pub(crate) fn waits(&self, wait: &Waiting<'_>) {
        if let Some(blocked) = &wait.blocked {
            return self.blocked(blocked);
        }
        let told = format!("waiting for {}", wait.reason);
        if self.is_news(&told) && !(self.is_live() && self.lock().passing) {
            self.note(&told);
        }
    }

    /// Reports a wait for the end of a block.
    pub(crate) fn blocked(&self, blocked: &Blocked) {
        let Blocked { reason, until, remaining, .. } = blocked;
        let until = format!(", until {}", time::instant(*until));
        if self.is_news(&format!("{reason}{until}")) {
            self.pauses(&reason.to_string(), *remaining, &until);
        }
    }

    /// Reports a pause that a failing service asked for. The client's other pauses are short.
    pub(crate) fn retries(&self, retry: &Retrying<'_>) {
        let asked = retry.error.headers().is_some_and(|headers| headers.contains_key(RETRY_AFTER));
        if let Some(status) = retry.error.status().filter(|_| asked) {
            let reason = format!("the service answered {}", status.as_u16());
            self.pauses(&reason, retry.delay, "");
        }
    }

    fn pauses(&self, reason: &str, length: Duration, until: &str) {
        let seconds = time::seconds(length);
        let is_live = self.is_live();
        if is_live && self.lock().passing {
            // How far it is stands there, and tells of the wait too.
        } else if is_live && seconds > 2 {
            let reason = format!("{reason}{until}");
            let countdown = Countdown::start(Arc::downgrade(&self.inner), seconds, reason);
            self.lock().countdown = Some(countdown);
        } else {
            self.note(&format!("{reason}: waiting {seconds} s{until}"));
        }
    }

    /// Returns whether this is another wait than the last one that was told of.
    fn is_news(&self, wait: &str) -> bool {
        self.lock().wait_told.replace(wait.to_owned()).as_deref() != Some(wait)
    }

    /// Returns whether somebody looks at lines that change.
    pub(crate) fn is_live(&self) -> bool {
        let text = self.style.format == ErrorFormat::Text && !self.style.quiet;
        text && self.lock().stream.is_terminal
    }

    /// Tells how far something is: in place of what was told of it before, where that can be.
    pub(crate) fn progress(&self, text: &str) {
        if !self.is_live() {
            return self.note(text);
        }
        let mut inner = self.lock();
        inner.countdown = None;
        inner.passing = true;
        inner.rewrite(text);
    }

    /// Takes a countdown, or how far something is, off the screen.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        if inner.countdown.is_some() || inner.passing {
            inner.write("");
        }
    }

    /// Prints a line with a label.
    pub(super) fn tell(&self, label: &str, style: anstyle::Style, text: &str) {
        if self.style.format == ErrorFormat::Json {
            return self.object(&json!({ "level": label, "message": text.trim_end() }));
        }
        let text = safe::lines(text.trim_end());
        let label = match label {
            "trace" => String::new(),
            label => paint(style, format!("{label}:"), self.style.color) + " ",
        };
        self.text(&format!("{label}{text}\n"));
    }

    fn object(&self, object: &Value) {
        self.text(&format!("{}\n", to_text(object)));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
