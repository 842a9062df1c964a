//! Standard error: notes, warnings, errors and hints, as text or as JSON lines, and the status line
//! of a terminal.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use anstyle::Style;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::env::{SharedStream, locked};
use crate::error::{ErrorFormat, Failure};
use crate::escape::{self, to_text};
use crate::screen::{CYAN, RED, Screen, YELLOW};
use crate::settings::secrets::MASK;
use crate::status::{Activity, Progress, Status};
use crate::time::Clock;

/// How often the status line is drawn.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Without a terminal, there is a note at the start of a longer wait, and then for so long no other.
const NOTED_WAIT: Duration = Duration::from_secs(10);
const NOTE_INTERVAL: Duration = Duration::from_secs(55);

/// A handle to standard error; clones write to the same stream.
#[derive(Clone)]
pub(crate) struct Ui {
    format: ErrorFormat,
    /// Whether only errors are shown.
    quiet: bool,
    /// What `-v` shows: 1 attempts, 2 headers, 3 bodies.
    verbose: u8,
    screen: Screen,
    clock: Clock,
    state: Arc<Mutex<UiState>>,
}

struct UiState {
    /// The key and passwords, which must never be shown. Each is here as it is and in its JSON
    /// form, the longest first.
    secrets: Vec<String>,
    /// Notes and warnings to show after the result.
    pending: String,
    said: HashSet<String>,
    status: Status,
    last_note: Option<Instant>,
}

impl UiState {
    fn without_secrets(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret) {
                text = text.replace(secret, MASK);
            }
        }
        text
    }

    /// Writes escaped text above the status line.
    fn write(&self, text: &str) {
        self.status.write(&self.without_secrets(text));
    }
}

impl Ui {
    pub(crate) fn new(
        stream: SharedStream,
        format: ErrorFormat,
        quiet: bool,
        verbose: u8,
        screen: Screen,
        clock: Clock,
    ) -> Self {
        let state = UiState {
            secrets: Vec::new(),
            pending: String::new(),
            said: HashSet::new(),
            status: Status::new(stream, screen.clone()),
            last_note: None,
        };
        Self {
            format,
            quiet,
            verbose,
            screen,
            clock,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Removes a secret from everything that is written from now on. Ignores a secret that is so
    /// short that it may be part of ordinary words.
    pub(crate) fn hide(&self, secret: &str) {
        const MIN_LENGTH: usize = 4;

        if secret.len() < MIN_LENGTH {
            return;
        }
        let quoted = to_text(&secret.into());
        let secrets = &mut self.lock().secrets;
        secrets.push(secret.to_owned());
        secrets.push(quoted.trim_matches('"').to_owned());
        // A secret may contain another one.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
    }

    /// Returns how much `-v` shows: 1 attempts, 2 headers, 3 bodies.
    pub(crate) fn verbosity(&self) -> u8 {
        self.verbose
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == ErrorFormat::Json
    }

    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    /// Writes a note. On a terminal, it comes after the result.
    pub(crate) fn note(&self, text: &str) {
        self.note_with_hint(text, None);
    }

    pub(crate) fn note_with_hint(&self, text: &str, hint: Option<&str>) {
        self.message("note", CYAN, text, hint);
    }

    /// Reports a field that appeared after the columns were fixed, so that the result lacks it. `-q`
    /// does not silence this.
    pub(crate) fn late_field(&self, late: Option<String>) {
        let Some(late) = late else { return };
        let text = format!("field `{late}` appeared after the first page; `-o ndjson` shows it");
        match self.quiet {
            true => self.text(&self.rendered("warning", YELLOW, &text, None)),
            false => self.note(&text),
        }
    }

    /// Writes a warning about the result. On a terminal, it comes after the result.
    pub(crate) fn warning(&self, text: &str, hint: Option<&str>) {
        self.message("warning", YELLOW, text, hint);
    }

    /// Writes a note immediately.
    pub(crate) fn note_now(&self, text: &str) {
        if !self.quiet {
            self.text(&self.rendered("note", CYAN, text, None));
        }
    }

    /// Writes the hint to a failure that the result already describes.
    pub(crate) fn hint(&self, hint: &str) {
        if self.format == ErrorFormat::Text {
            self.text(&self.rendered("hint", CYAN, hint, None));
        }
    }

    fn message(&self, level: &str, style: Style, text: &str, hint: Option<&str>) {
        let rendered = self.rendered(level, style, text, hint);
        let mut state = self.lock();
        if self.quiet || !state.said.insert(rendered.clone()) {
            return;
        }
        match self.screen.is_terminal() {
            true => state.pending.push_str(&rendered),
            false => state.write(&rendered),
        }
    }

    fn rendered(&self, level: &str, style: Style, text: &str, hint: Option<&str>) -> String {
        if self.format == ErrorFormat::Json {
            let hint = hint.map(|hint| ("hint".to_owned(), hint.into()));
            return json_line(json!({ "level": level, "message": text }), hint);
        }
        let screen = &self.screen;
        let line = |label: &str, style: Style, text: &str| {
            // Secrets are removed before wrapping, which could split them.
            let text = self.lock().without_secrets(text);
            // Text from settings must not look like another message.
            let text = escape::lines(&text).replace('\n', "\\n");
            let text = screen.wrap(&text, label.len() + 2);
            format!("{} {text}\n", screen.paint(style, format!("{label}:")))
        };
        let hint = hint.map(|hint| line("hint", CYAN, hint));
        line(level, style, text) + &hint.unwrap_or_default()
    }

    /// Writes an error with its details and hint, after all delayed notes.
    pub(crate) fn error(&self, failure: &Failure) {
        self.finish();
        let Failure {
            kind,
            message,
            list,
            hint,
            fields,
        } = failure;
        if self.format == ErrorFormat::Json {
            let exit = kind.code();
            let error = json!({ "level": "error", "exit": exit, "kind": kind, "message": message });
            let hint = hint
                .iter()
                .map(|hint| ("hint".to_owned(), hint.as_str().into()));
            let fields = fields
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()));
            return self.text(&json_line(error, hint.chain(fields)));
        }
        let mut text = self.rendered("error", RED, message, None);
        for line in list {
            let line = self.lock().without_secrets(line);
            let line = self.screen.wrap(&escape::line(&line), 4);
            text += &format!("  {line}\n");
        }
        self.text(&text);
        if let Some(hint) = hint {
            self.hint(hint);
        }
    }

    /// Writes what `-v` shows.
    pub(crate) fn trace(&self, text: &str) {
        self.text(&match self.format {
            ErrorFormat::Json => json_line(json!({ "level": "trace", "message": text }), None),
            ErrorFormat::Text => format!("{}\n", escape::lines(text.trim_end())),
        });
    }

    /// Writes formatted text.
    pub(crate) fn text(&self, text: &str) {
        self.lock().write(text);
    }

    /// Clears the status line, and writes delayed notes.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.status.end();
        let pending = std::mem::take(&mut state.pending);
        state.write(&pending);
    }

    /// Returns whether there is a status line.
    pub(crate) fn is_live(&self) -> bool {
        self.format == ErrorFormat::Text && !self.quiet && self.screen.is_terminal()
    }

    /// Draws the status line until the program ends.
    pub(crate) fn start_status_line(&self) {
        if !self.is_live() {
            return;
        }
        let state = Arc::downgrade(&self.state);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(DRAW_INTERVAL);
            loop {
                ticks.tick().await;
                let Some(state) = state.upgrade() else { return };
                locked(&state).status.draw();
            }
        });
    }

    /// Sets the reason for waiting on the status line.
    pub(crate) fn set_activity(&self, activity: Option<Activity>) {
        self.lock().status.set_activity(activity);
    }

    /// Sets the progress.
    pub(crate) fn set_progress(&self, progress: Option<Progress>) {
        self.lock().status.set_progress(progress);
    }

    /// Reports the start of a wait: on the status line, or as an occasional note.
    pub(crate) fn waits(&self, text: &str, short: &str, length: Duration, until: SystemTime) {
        let clock = &self.clock;
        let end = Instant::now() + length;
        let activity = Activity::new(text)
            .short(short)
            .ends(end, Some(clock.instant(until)));
        self.set_activity(Some(activity));
        let mut state = self.lock();
        let is_noted = state
            .last_note
            .is_some_and(|last| last.elapsed() < NOTE_INTERVAL);
        if self.is_live() || is_noted || length < NOTED_WAIT {
            return;
        }
        state.last_note = Some(Instant::now());
        let before = match state.status.progress() {
            Some(progress) => format!("{}; ", progress.text()),
            None => String::new(),
        };
        drop(state);
        self.note_now(&format!("{before}{text} {}", clock.until(until, length)));
    }

    fn lock(&self) -> MutexGuard<'_, UiState> {
        locked(&self.state)
    }
}

/// Returns a line of JSON: an object with more fields.
fn json_line(mut object: Value, more: impl IntoIterator<Item = (String, Value)>) -> String {
    more.into_iter()
        .for_each(|(name, value)| object[name] = value);
    to_text(&object) + "\n"
}
