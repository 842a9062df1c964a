//! The status line of a terminal: why the program waits, and the progress of a long operation.

use std::time::Duration;

use tokio::time::Instant;
use unicode_width::UnicodeWidthStr as _;

use crate::screen::Screen;
use crate::time;

/// Shorter waits are not shown.
const SHOWN_AFTER: Duration = Duration::from_millis(300);

/// The reason why the program waits.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    /// The reason: `minute quota used up; continues`.
    text: String,
    /// The reason on a narrow line, and beside a progress bar: `minute quota`.
    short: String,
    /// Whether a progress bar mentions the wait.
    is_beside_bar: bool,
    /// The end of the wait, if known, and its text.
    end: Option<(Instant, Option<String>)>,
}

impl Activity {
    fn new(text: impl Into<String>, short: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            short: short.into(),
            is_beside_bar: false,
            end: None,
        }
    }

    fn ends(self, end: Instant) -> Self {
        Self {
            end: Some((end, None)),
            ..self
        }
    }

    fn beside_bar(self) -> Self {
        Self {
            is_beside_bar: true,
            ..self
        }
    }

    pub(crate) fn reading(name: &str) -> Self {
        let text = format!("reading {name}");
        Self::new(text.clone(), text)
    }

    pub(crate) fn response(host: &str) -> Self {
        let text = format!("waiting for {host}");
        Self::new(text.clone(), text)
    }

    /// The rest belongs to other processes that share the key and wait, too.
    pub(crate) fn share() -> Self {
        let text = "waiting for other programs with this key";
        Self::new(text, "other programs").beside_bar()
    }

    pub(crate) fn first_response() -> Self {
        let text = "waiting for the limits of this key";
        Self::new(text, "limits of the key")
    }

    pub(crate) fn requests_in_flight() -> Self {
        Self::new("waiting for requests in flight", "requests in flight")
    }

    /// A request is sent again at `end`. `attempt` says which attempt it is.
    pub(crate) fn retry(cause: &str, short_cause: &str, attempt: &str, end: Instant) -> Self {
        let text = format!("{cause}; {attempt}");
        let short = format!("{short_cause}, retry");
        Self::new(text, short).beside_bar().ends(end)
    }

    /// Rows of an earlier run may arrive at the service until `end`.
    pub(crate) fn arrivals(end: Instant) -> Self {
        let text = "rows may still arrive; the check begins";
        Self::new(text, "rows may arrive").ends(end)
    }

    /// No request may be sent until `end`, which `at` formats.
    pub(crate) fn pause(text: &str, short: &str, end: Instant, at: String) -> Self {
        Self {
            end: Some((end, Some(at))),
            ..Self::new(text, short).beside_bar()
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the forms of the reason and the remaining time; without an end, the elapsed time.
    fn forms(&self, since: Instant, is_beside_bar: bool) -> Vec<Form> {
        let mut forms = Vec::new();
        if !is_beside_bar {
            forms.extend(self.timed(&self.text, " in", since));
        }
        forms.extend(self.timed(&self.short, ":", since));
        forms
    }

    fn timed(&self, reason: &str, joint: &str, since: Instant) -> Vec<Form> {
        let now = Instant::now();
        let Some((end, at)) = &self.end else {
            let elapsed = Duration::from_secs(now.duration_since(since).as_secs());
            let elapsed = format!(", {}", time::duration(elapsed));
            return vec![Form::new(reason, elapsed)];
        };
        let left = time::duration(end.saturating_duration_since(now));
        let wait = format!("{joint} {left}");
        let mut forms = Vec::new();
        if let Some(at) = at {
            forms.push(Form::new(reason, format!("{wait} ({at})")));
        }
        forms.push(Form::new(reason, wait));
        forms
    }
}

/// The progress of a long operation.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// The number of finished rows, of all rows, and an estimate.
    Bar {
        done: usize,
        all: usize,
        forecast: String,
    },
    /// The number of pets so far, of an unknown number. `verb` says what happens to them.
    Pets { verb: &'static str, count: usize },
}

impl Progress {
    /// Describes the progress in a note.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Bar { done, all, .. } => {
                let done = time::count(*done);
                let all = time::count(*all);
                format!("{done} of {all} rows done")
            }
            Self::Pets { verb, count } => {
                format!("{verb} pets: {} so far", time::count(*count))
            }
        }
    }

    /// Returns the forms of the progress in front of `tail`.
    fn forms(&self, screen: &Screen, spinner: &str, tail: &Form) -> Vec<Form> {
        match self {
            Self::Bar { done, all, .. } => bar(screen, *done, *all, tail),
            Self::Pets { count, .. } => {
                let count = time::count(*count);
                let mut forms = Vec::new();
                for progress in [self.text(), format!("{count} pets"), count] {
                    forms.push(tail.after(&format!("{spinner} {progress}"), "; "));
                }
                forms
            }
        }
    }
}

/// A form of the status line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Form {
    /// The progress, which is never cut.
    progress: String,
    /// The reason of the wait, or an estimate.
    reason: String,
    /// The remaining or elapsed time, which is never cut.
    wait: String,
}

impl Form {
    fn new(reason: impl Into<String>, wait: impl Into<String>) -> Self {
        Self {
            progress: String::new(),
            reason: reason.into(),
            wait: wait.into(),
        }
    }

    fn after(&self, progress: &str, joint: &str) -> Self {
        let is_alone = self.reason.is_empty();
        let joint = if is_alone { "" } else { joint };
        Self {
            progress: format!("{progress}{joint}"),
            ..self.clone()
        }
    }

    fn width(&self) -> usize {
        self.progress.width() + self.reason.width() + self.wait.width()
    }

    /// Returns the text. If it is too wide, the reason is cut.
    fn fitted(&self, screen: &Screen, room: usize) -> String {
        let Self {
            progress,
            reason,
            wait,
        } = self;
        let reason_room = room.saturating_sub(progress.width() + wait.width());
        let reason = screen.cut(reason, reason_room);
        screen.cut(&format!("{progress}{reason}{wait}"), room)
    }
}

/// What the status line shows.
#[derive(Debug, Default)]
pub(crate) struct Status {
    progress: Option<Progress>,
    activity: Option<(Activity, Instant)>,
    frame: usize,
}

impl Status {
    /// Returns whether there is nothing to show.
    pub(crate) fn is_idle(&self) -> bool {
        self.progress.is_none() && self.activity.is_none()
    }

    pub(crate) fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    pub(crate) fn set_progress(&mut self, progress: Option<Progress>) {
        self.progress = progress;
    }

    /// Sets the reason of the wait. If the same reason is set again, its start stays.
    pub(crate) fn set_activity(&mut self, activity: Option<Activity>) {
        let since = match (&self.activity, &activity) {
            (Some((old, since)), Some(new)) if old.text == new.text => *since,
            _ => Instant::now(),
        };
        self.activity = activity.map(|activity| (activity, since));
    }

    /// Returns the line in the longest form that fits, if there is one.
    pub(crate) fn line(&mut self, screen: &Screen) -> Option<String> {
        self.frame += 1;
        let room = screen.width().unwrap_or(80).saturating_sub(1);
        let forms = self.forms(screen);
        let fitting = forms.iter().find(|form| form.width() <= room);
        let form = fitting.or(forms.last())?;
        Some(form.fitted(screen, room))
    }

    /// Returns the forms of the status line, longest first.
    fn forms(&self, screen: &Screen) -> Vec<Form> {
        let spinner = self.spinner(screen);
        let tails = self.tails();
        let mut forms = Vec::new();
        for tail in &tails {
            match &self.progress {
                Some(progress) => forms.extend(progress.forms(screen, spinner, tail)),
                None => forms.push(tail.after(spinner, " ")),
            }
        }
        forms.sort_by_key(|form| std::cmp::Reverse(form.width()));
        forms
    }

    fn spinner(&self, screen: &Screen) -> &'static str {
        const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        const ASCII_FRAMES: [&str; 4] = ["|", "/", "-", "\\"];

        if screen.has_unicode() {
            FRAMES[self.frame % FRAMES.len()]
        } else {
            ASCII_FRAMES[self.frame % ASCII_FRAMES.len()]
        }
    }

    /// Returns the forms of what follows the progress: the wait, or an estimate.
    fn tails(&self) -> Vec<Form> {
        // An import sends requests all the time, so its bar does not mention single ones.
        let is_beside_bar = matches!(self.progress, Some(Progress::Bar { .. }));
        if let Some((activity, since)) = &self.activity
            && since.elapsed() >= SHOWN_AFTER
            && (activity.is_beside_bar || !is_beside_bar)
        {
            return activity.forms(*since, is_beside_bar);
        }
        match &self.progress {
            Some(Progress::Bar { forecast, .. }) => {
                vec![Form::new(forecast, ""), Form::default()]
            }
            Some(Progress::Pets { .. }) => vec![Form::default()],
            None => Vec::new(),
        }
    }
}

/// Returns the forms of a progress bar in front of `tail`.
fn bar(screen: &Screen, done: usize, all: usize, tail: &Form) -> Vec<Form> {
    let bar = screen.bar(done as u64, all as u64);
    let percent = done * 100 / all.max(1);
    let done = time::count(done);
    let all = time::count(all);
    let mut forms = Vec::new();
    for progress in [
        format!("{bar}  {done} of {all}  {percent}%"),
        format!("{done} of {all}  {percent}%"),
        format!("{done} of {all}"),
        done,
    ] {
        forms.push(tail.after(&progress, "  "));
    }
    forms
}

#[cfg(test)]
mod tests;
