<<<<<<< o3
//! Standard error: notes, warnings, errors and hints, as text or as JSON lines, and the status line
//! of a terminal.
=======
//! The status line of a terminal: why the program waits, and how far a long piece of work is.
>>>>>>> t3

use std::time::Duration;

use tokio::time::Instant;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::Screen;
use crate::time;

/// Shorter waits are not shown.
const SHOWN_AFTER: Duration = Duration::from_millis(300);
<<<<<<< o3
/// The interval at which the status line is drawn.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// The minimum interval of notes about waits without a terminal.
const NOTE_INTERVAL: Duration = Duration::from_secs(55);
/// Moves the cursor to the start of the line, and clears it.
const CLEAR: &str = "\r\u{1b}[K";

/// The format of errors and notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ErrorFormat {
    /// Lines for people
    #[default]
    Text,
    /// A JSON object on each line
    Json,
}

/// The verbosity and format of standard error.
#[derive(Debug, Clone)]
pub(crate) struct UiOptions {
    pub(crate) format: ErrorFormat,
    /// Whether only errors are shown.
    pub(crate) quiet: bool,
    /// 1: a line for each attempt; 2: headers too; 3: bodies too.
    pub(crate) verbose: u8,
    pub(crate) screen: Screen,
    pub(crate) clock: Clock,
}
=======
>>>>>>> t3

/// The reason why the program waits.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    /// The reason: `minute quota used up; continues`.
    pub(crate) text: String,
    /// The same beside a bar: `minute quota`.
    pub(crate) short: String,
    /// The end of the wait, if known, and its text.
    pub(crate) end: Option<(Instant, Option<String>)>,
}

impl Activity {
    /// Returns a text with the remaining time, longest form first; without an end, the elapsed
    /// time.
    fn forms(&self, before: &str, since: Instant) -> Vec<String> {
        let now = Instant::now();
        let Some((end, at)) = &self.end else {
            let elapsed = time::duration(Duration::from_secs(now.duration_since(since).as_secs()));
            return vec![format!("{}, {elapsed}", self.text)];
        };
        let left = time::duration(end.saturating_duration_since(now));
        let with_end = at.iter().map(|at| format!("{before} {left} ({at})"));
        with_end.chain([format!("{before} {left}")]).collect()
    }
}

/// The progress of a long operation.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// The number of finished items, of all items, and an estimate.
    Bar { done: usize, all: usize, forecast: String },
    /// An operation of unknown size.
    Text(String),
}

<<<<<<< o3
/// A handle to standard error. Clones write to the same stream.
#[derive(Clone)]
pub(crate) struct Ui {
    pub(crate) options: Arc<UiOptions>,
    state: Arc<Mutex<UiState>>,
}

struct UiState {
    stream: Box<dyn Write + Send>,
    /// The key, which must never be shown.
    secret: Option<String>,
    /// Notes and warnings to show after the result.
    pending: String,
    said: HashSet<String>,
    progress: Option<Progress>,
    activity: Option<(Activity, Instant)>,
    /// Whether a status line is visible.
    is_drawn: bool,
=======
/// What the status line shows.
#[derive(Debug, Default)]
pub(crate) struct Status {
    pub(crate) progress: Option<Progress>,
    activity: Option<(Activity, Instant)>,
>>>>>>> t3
    frame: usize,
}

<<<<<<< o3
impl UiState {
    /// Replaces the status line with escaped text.
    fn write(&mut self, text: &str) {
        let clear = if std::mem::take(&mut self.is_drawn) { CLEAR } else { "" };
        let hidden = self.secret.as_deref().map(|secret| text.replace(secret, "[redacted]"));
        // A closed standard error is not an error.
        let _ = write!(self.stream, "{clear}{}", hidden.as_deref().unwrap_or(text));
        let _ = self.stream.flush();
=======
impl Status {
    /// Returns whether there is nothing to show.
    pub(crate) fn is_idle(&self) -> bool {
        self.progress.is_none() && self.activity.is_none()
    }

    /// Sets the reason of the wait. The same one lasts since it was set first.
    pub(crate) fn set_activity(&mut self, activity: Option<Activity>) {
        let since = match (&self.activity, &activity) {
            (Some((old, since)), Some(new)) if old.text == new.text => *since,
            _ => Instant::now(),
        };
        self.activity = activity.map(|activity| (activity, since));
>>>>>>> t3
    }

    /// Returns the line in the longest form that fits, if there is one.
    pub(crate) fn line(&mut self, screen: &Screen) -> Option<String> {
        self.frame += 1;
        let room = screen.width.unwrap_or(80).saturating_sub(1);
        let forms = self.forms(screen);
        let line = forms.iter().find(|form| form.width() <= room).or(forms.last())?;
        Some(screen.cut(line, room))
    }

    /// Returns the forms of the status line, longest first.
    fn forms(&self, screen: &Screen) -> Vec<String> {
        const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        const ASCII_FRAMES: [&str; 4] = ["|", "/", "-", "\\"];

        let activity = self.activity.as_ref().filter(|(_, since)| since.elapsed() >= SHOWN_AFTER);
        if let Some(Progress::Bar { done, all, forecast }) = &self.progress {
            // An import sends requests continuously, so the status line does not mention a single
            // one.
            let waits = activity.filter(|(activity, _)| activity.end.is_some());
            let tails = match waits {
                Some((wait, since)) => wait.forms(&format!("{}:", wait.short), *since),
                None => vec![forecast.clone()],
            };
            return bar(screen, *done, *all, &tails);
        }
        let frames = if screen.unicode { &FRAMES[..] } else { &ASCII_FRAMES[..] };
        let spinner = frames[self.frame % frames.len()];
        let waits = activity
            .map(|(activity, since)| activity.forms(&format!("{} in", activity.text), *since));
        match (&self.progress, waits) {
            (Some(Progress::Text(text)), None) => vec![format!("{spinner} {text}")],
            (Some(Progress::Text(text)), Some(waits)) => {
                waits.iter().map(|wait| format!("{spinner} {text}; {wait}")).collect()
            }
            (_, waits) => waits.iter().flatten().map(|wait| format!("{spinner} {wait}")).collect(),
        }
    }
}

/// Returns the forms of a progress bar, longest first.
fn bar(screen: &Screen, done: usize, all: usize, tails: &[String]) -> Vec<String> {
    let bar = screen.bar(done as u64, all as u64);
    let percent = done * 100 / all.max(1);
    let (done, all) = (time::count(done), time::count(all));
    let mut forms = Vec::new();
    for tail in tails {
        forms.push(format!("{bar}  {done} of {all}  {percent}%  {tail}"));
        forms.push(format!("{done} of {all}  {percent}%  {tail}"));
        forms.push(format!("{done} of {all}  {tail}"));
    }
    forms.extend(tails.last().map(|tail| format!("{done}  {tail}")));
    forms.sort_by_key(|form| std::cmp::Reverse(form.width()));
    forms
}

<<<<<<< o3
impl Ui {
    pub(crate) fn new(stream: Box<dyn Write + Send>, options: UiOptions) -> Self {
        let state = UiState {
            stream,
            secret: None,
            pending: String::new(),
            said: HashSet::new(),
            progress: None,
            activity: None,
            is_drawn: false,
            frame: 0,
            last_note: None,
        };
        Self { options: Arc::new(options), state: Arc::new(Mutex::new(state)) }
    }

    /// Removes a key from everything that is written from now on, unless it is so short that it
    /// occurs in ordinary words.
    pub(crate) fn hide(&self, key: &str) {
        self.lock().secret = (key.len() >= 4).then(|| key.to_owned());
    }

    /// Writes a note; on a terminal, after the result.
    pub(crate) fn note(&self, text: &str) {
        self.note_with_hint(text, None);
    }

    pub(crate) fn note_with_hint(&self, text: &str, hint: Option<&str>) {
        self.message("note", CYAN, text, hint);
    }

    /// Writes a warning about the result; on a terminal, after the result.
    pub(crate) fn warning(&self, text: &str, hint: Option<&str>) {
        self.message("warning", YELLOW, text, hint);
    }

    /// Writes a note immediately.
    pub(crate) fn note_now(&self, text: &str) {
        if !self.options.quiet {
            self.text(&self.rendered("note", CYAN, text, None));
        }
    }

    /// Writes the hint of a finding that is part of the result.
    pub(crate) fn hint(&self, hint: &str) {
        if self.options.format == ErrorFormat::Text {
            self.text(&self.rendered("hint", CYAN, hint, None));
        }
    }

    /// Confirms an action, only on a terminal.
    pub(crate) fn done(&self, text: &str) {
        if self.is_live() {
            let screen = &self.options.screen;
            let mark = screen.paint(GREEN, screen.symbol("✓"));
            self.text(&format!("{mark} {}\n", escape::lines(text)));
        }
    }

    fn message(&self, level: &str, style: Style, text: &str, hint: Option<&str>) {
        let rendered = self.rendered(level, style, text, hint);
        let mut state = self.lock();
        if self.options.quiet || !state.said.insert(rendered.clone()) {
            return;
        }
        match self.options.screen.is_terminal {
            true => state.pending.push_str(&rendered),
            false => state.write(&rendered),
        }
    }

    fn rendered(&self, level: &str, style: Style, text: &str, hint: Option<&str>) -> String {
        if self.options.format == ErrorFormat::Json {
            let mut object = json!({ "level": level, "message": text });
            if let Some(hint) = hint {
                object["hint"] = hint.into();
            }
            return to_text(&object) + "\n";
        }
        let screen = &self.options.screen;
        let line = |label: &str, style: Style, text: &str| {
            let text = screen.wrap(&escape::lines(text), label.len() + 2);
            format!("{} {text}\n", screen.paint(style, format!("{label}:")))
        };
        let hint = hint.map(|hint| line("hint", CYAN, hint));
        line(level, style, text) + &hint.unwrap_or_default()
    }

    /// Writes an error with its details and hint, after all delayed notes.
    pub(crate) fn error(&self, failure: &Failure) {
        self.finish();
        let Failure { kind, message, list, hint, fields } = failure;
        if self.options.format == ErrorFormat::Json {
            let mut object = Map::new();
            object.insert("level".to_owned(), "error".into());
            object.insert("exit".to_owned(), kind.code().into());
            object.insert("kind".to_owned(), json!(kind));
            object.insert("message".to_owned(), message.as_str().into());
            object.extend(hint.as_ref().map(|hint| ("hint".to_owned(), hint.as_str().into())));
            object.extend(fields.clone());
            return self.text(&format!("{}\n", to_text(&Value::Object(object))));
        }
        let mut text = self.rendered("error", RED, message, None);
        for line in list {
            text += &format!("  {}\n", self.options.screen.wrap(&escape::line(line), 4));
        }
        self.text(&text);
        if let Some(hint) = hint {
            self.hint(hint);
        }
    }

    /// Writes formatted text.
    pub(crate) fn text(&self, text: &str) {
        self.lock().write(text);
    }

    /// Clears the status line, and writes delayed notes.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.activity = None;
        state.progress = None;
        let pending = std::mem::take(&mut state.pending);
        state.write(&pending);
    }

    /// Returns whether there is a status line.
    pub(crate) fn is_live(&self) -> bool {
        let UiOptions { format, quiet, screen, .. } = &*self.options;
        *format == ErrorFormat::Text && !quiet && screen.is_terminal
    }

    /// Draws the status line while the returned handle exists.
    pub(crate) fn start_status_line(&self) {
        if !self.is_live() {
            return;
        }
        let screen = self.options.screen.clone();
        let state: Weak<Mutex<UiState>> = Arc::downgrade(&self.state);
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(DRAW_INTERVAL);
            loop {
                ticks.tick().await;
                let Some(state) = state.upgrade() else { return };
                state.lock().unwrap_or_else(PoisonError::into_inner).draw(&screen);
            }
        });
    }

    /// Sets the reason for waiting on the status line.
    pub(crate) fn set_activity(&self, activity: Option<Activity>) {
        let mut state = self.lock();
        let since = match (&state.activity, &activity) {
            (Some((old, since)), Some(new)) if old.text == new.text => *since,
            _ => Instant::now(),
        };
        state.activity = activity.map(|activity| (activity, since));
    }

    /// Sets the progress.
    pub(crate) fn set_progress(&self, progress: Option<Progress>) {
        self.lock().progress = progress;
    }

    /// Reports the start of a wait: on the status line, or as an occasional note.
    pub(crate) fn waits(&self, text: &str, short: &str, length: Duration, until: SystemTime) {
        let clock = &self.options.clock;
        let end = Some((Instant::now() + length, Some(clock.instant(until))));
        let activity = Activity { text: text.to_owned(), short: short.to_owned(), end };
        self.set_activity(Some(activity));
        let mut state = self.lock();
        let is_noted = state.last_note.is_some_and(|last| last.elapsed() < NOTE_INTERVAL);
        if self.is_live() || is_noted || length < Duration::from_secs(1) {
            return;
        }
        state.last_note = Some(Instant::now());
        let before = match &state.progress {
            Some(Progress::Bar { done, all, .. }) => {
                format!("{} of {} rows done; ", time::count(*done), time::count(*all))
            }
            Some(Progress::Text(text)) => format!("{text}; "),
            None => String::new(),
        };
        drop(state);
        self.note_now(&format!("{before}{text} {}", clock.until(until, length)));
    }

    fn lock(&self) -> MutexGuard<'_, UiState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For code that writes its own messages.
impl Write for Ui {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

=======
>>>>>>> t3
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_loses_its_parts_before_the_count_and_the_wait() {
        let screen = Screen { is_terminal: true, width: Some(80), color: false, unicode: true };
        let waiting = ["minute quota: 41 s (07:53:00)".to_owned(), "minute quota: 41 s".to_owned()];
        let forms = bar(&screen, 537, 3_000, &waiting);
        assert_eq!(
            forms[0],
            "███░░░░░░░░░░░░░░░░░  537 of 3,000  17%  minute quota: 41 s (07:53:00)"
        );
        let narrow = forms.iter().find(|form| form.width() <= 40).unwrap();
        assert_eq!(narrow, "537 of 3,000  17%  minute quota: 41 s");
        assert_eq!(forms.last().unwrap(), "537  minute quota: 41 s");
    }
}
