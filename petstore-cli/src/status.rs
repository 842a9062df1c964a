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
    /// The shorter text beside a progress bar: `minute quota`. If it is empty, the bar does not
    /// mention the wait.
    short: String,
    /// The end of the wait, if known, and its text.
    end: Option<(Instant, Option<String>)>,
}

impl Activity {
    /// Creates an activity that a progress bar does not mention.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            short: String::new(),
            end: None,
        }
    }

    /// Sets the text beside a bar.
    pub(crate) fn short(self, short: impl Into<String>) -> Self {
        Self {
            short: short.into(),
            ..self
        }
    }

    /// Sets the end of the wait.
    pub(crate) fn ends(self, end: Instant) -> Self {
        Self {
            end: Some((end, None)),
            ..self
        }
    }

    /// Sets the end of the wait, and its text.
    pub(crate) fn ends_at(self, end: Instant, text: String) -> Self {
        Self {
            end: Some((end, Some(text))),
            ..self
        }
    }

    /// Returns a text with the remaining time, longest form first; without an end, the elapsed
    /// time.
    fn forms(&self, before: &str, since: Instant) -> Vec<String> {
        let now = Instant::now();
        let Some((end, at)) = &self.end else {
            let elapsed = time::duration(Duration::from_secs(now.duration_since(since).as_secs()));
            return vec![format!("{}, {elapsed}", self.text)];
        };
        let left = time::duration(end.saturating_duration_since(now));
        let mut forms = Vec::new();
        if let Some(at) = at {
            forms.push(format!("{before} {left} ({at})"));
        }
        forms.push(format!("{before} {left}"));
        if !self.short.is_empty() {
            forms.push(format!("{}: {left}", self.short));
        }
        forms
    }
}

/// The progress of a long operation.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// The number of finished items, of all items, and an estimate.
    Bar {
        done: usize,
        all: usize,
        forecast: String,
    },
    /// An operation of unknown size.
    Text(String),
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
        let line = forms
            .iter()
            .find(|form| form.width() <= room)
            .or(forms.last())?;
        Some(screen.cut(line, room))
    }

    /// Returns the forms of the status line, longest first.
    fn forms(&self, screen: &Screen) -> Vec<String> {
        const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        const ASCII_FRAMES: [&str; 4] = ["|", "/", "-", "\\"];

        let activity = self
            .activity
            .as_ref()
            .filter(|(_, since)| since.elapsed() >= SHOWN_AFTER);
        if let Some(Progress::Bar {
            done,
            all,
            forecast,
        }) = &self.progress
        {
            // An import sends requests all the time, so the status line does not mention single
            // ones.
            let waits = activity.filter(|(activity, _)| !activity.short.is_empty());
            let tails = match waits {
                Some((wait, since)) => wait.forms(&format!("{}:", wait.short), *since),
                None => vec![forecast.clone()],
            };
            return bar(screen, *done, *all, &tails);
        }
        let frames = if screen.has_unicode() {
            &FRAMES[..]
        } else {
            &ASCII_FRAMES[..]
        };
        let spinner = frames[self.frame % frames.len()];
        let waits = activity
            .map(|(activity, since)| activity.forms(&format!("{} in", activity.text), *since));
        match (&self.progress, waits) {
            (Some(Progress::Text(text)), None) => vec![format!("{spinner} {text}")],
            (Some(Progress::Text(text)), Some(waits)) => waits
                .iter()
                .map(|wait| format!("{spinner} {text}; {wait}"))
                .collect(),
            (_, waits) => waits
                .iter()
                .flatten()
                .map(|wait| format!("{spinner} {wait}"))
                .collect(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_mentions_a_wait_without_an_end_but_no_request() {
        let tail = |short: &str| {
            let forecast = "60 a minute".to_owned();
            let (text, short) = ("waiting for a share".to_owned(), short.to_owned());
            let since = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
            let status = Status {
                progress: Some(Progress::Bar {
                    done: 1,
                    all: 4,
                    forecast,
                }),
                activity: Some((Activity::new(text).short(short), since)),
                frame: 0,
            };
            let screen = Screen::plain(None);
            status
                .forms(&screen)
                .remove(0)
                .split_off("█████░░░░░░░░░░░░░░░  1 of 4  25%  ".len())
        };
        assert_eq!(
            [tail(""), tail("share")],
            ["60 a minute", "waiting for a share, 2 s"]
        );
    }

    #[test]
    fn a_narrow_line_keeps_the_remaining_time() {
        let end = Instant::now() + Duration::from_secs(89);
        let activity = Activity::new("minute quota used up; continues")
            .short("minute quota")
            .ends_at(end, "until 07:53".to_owned());
        let since = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        let mut status = Status {
            activity: Some((activity, since)),
            ..Status::default()
        };
        let screen = Screen::plain(Some(40));
        let line = status.line(&screen).unwrap();
        assert!(line.contains("minute quota: 1 min 2"), "{line}");
    }

    #[test]
    fn a_bar_loses_its_parts_before_the_count_and_the_wait() {
        let screen = Screen::plain(Some(80));
        let waiting = [
            "minute quota: 41 s (07:53:00)".to_owned(),
            "minute quota: 41 s".to_owned(),
        ];
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
