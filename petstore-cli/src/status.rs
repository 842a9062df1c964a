//! The status line of a terminal: why the program waits, and the progress of a long operation.
//! indicatif draws it.

use std::fmt;
use std::io::{self, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use tokio::time::Instant;

use crate::env::SharedStream;
use crate::screen::Screen;
use crate::time::{count, duration};

/// Shorter waits are not shown.
const SHOWN_AFTER: Duration = Duration::from_millis(300);
/// A narrower line has no bar.
const MIN_BAR_WIDTH: usize = 60;

/// The reason why the program waits.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    /// The reason: `minute quota used up; continues`.
    text: String,
    /// The reason beside a progress bar: `minute quota`. A bar does not mention other waits.
    short: Option<String>,
    /// The end of the wait, if known, and its text.
    end: Option<(Instant, Option<String>)>,
}

impl Activity {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            short: None,
            end: None,
        }
    }

    pub(crate) fn short(mut self, short: &str) -> Self {
        self.short = Some(short.to_owned());
        self
    }

    /// Sets the end of the wait, and its text.
    pub(crate) fn ends(mut self, end: Instant, at: Option<String>) -> Self {
        self.end = Some((end, at));
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the reason with the remaining time; without an end, with the elapsed time.
    fn timed(&self, reason: &str, joint: &str, since: Instant) -> String {
        let Some((end, at)) = &self.end else {
            let elapsed = Duration::from_secs(since.elapsed().as_secs());
            return format!("{reason}, {}", duration(elapsed));
        };
        let left = duration(end.saturating_duration_since(Instant::now()));
        match at {
            Some(at) => format!("{reason}{joint} {left} ({at})"),
            None => format!("{reason}{joint} {left}"),
        }
    }
}

/// The progress of a long operation.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// The number of finished rows, of all rows.
    Bar { done: usize, all: usize },
    /// The number of pets so far, of an unknown number. `verb` says what happens to them.
    Pets { verb: &'static str, count: usize },
}

impl Progress {
    /// Describes the progress in a note.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Bar { done, all } => format!("{} of {} rows done", count(*done), count(*all)),
            Self::Pets { verb, count: pets } => format!("{verb} pets: {} so far", count(*pets)),
        }
    }
}

/// The line of the terminal on which indicatif draws.
struct Target {
    stream: SharedStream,
    width: usize,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target")
    }
}

impl TermLike for Target {
    fn width(&self) -> u16 {
        u16::try_from(self.width).unwrap_or(u16::MAX)
    }

    // There is one line.
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        // indicatif fills the line. Then a terminal that gets narrower would wrap it.
        match text.trim_end() {
            "" => Ok(()),
            text => write(&self.stream, text),
        }
    }

    fn clear_line(&self) -> io::Result<()> {
        write(&self.stream, "\r\u{1b}[K")
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn write(stream: &SharedStream, text: &str) -> io::Result<()> {
    let mut stream = stream.clone();
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// What the status line shows.
pub(crate) struct Status {
    stream: SharedStream,
    screen: Screen,
    progress: Option<Progress>,
    activity: Option<(Activity, Instant)>,
    /// The line, while it is on the screen.
    shown: Option<ProgressBar>,
}

impl Status {
    pub(crate) fn new(stream: SharedStream, screen: Screen) -> Self {
        Self {
            stream,
            screen,
            progress: None,
            activity: None,
            shown: None,
        }
    }

    pub(crate) fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    /// Sets the progress. At the end of an operation, clears the line, because a result may follow.
    pub(crate) fn set_progress(&mut self, progress: Option<Progress>) {
        if self.progress.is_some() != progress.is_some() {
            self.clear();
        }
        self.progress = progress;
    }

    /// Sets the reason of the wait. If the same reason is set again, its start stays.
    pub(crate) fn set_activity(&mut self, activity: Option<Activity>) {
        let since = match (&self.activity, &activity) {
            (Some((old, since)), Some(new)) if old.text == new.text => *since,
            _ => Instant::now(),
        };
        self.activity = activity.map(|activity| (activity, since));
        if self.activity.is_none() && self.progress.is_none() {
            self.clear();
        }
    }

    /// Ends what the line shows, and clears it.
    pub(crate) fn end(&mut self) {
        self.clear();
        self.progress = None;
        self.activity = None;
    }

    fn clear(&mut self) {
        if let Some(line) = self.shown.take() {
            line.finish_and_clear();
        }
    }

    /// Writes text in place of the line, and the line below it.
    pub(crate) fn write(&self, text: &str) {
        // A closed standard error is not an error.
        let write = || drop(write(&self.stream, text));
        match &self.shown {
            Some(line) => line.suspend(write),
            None => write(),
        }
    }

    /// Draws the line, if there is something to show.
    pub(crate) fn draw(&mut self) {
        let wait = self.wait();
        if wait.is_none() && self.progress.is_none() {
            return self.clear();
        }
        let line = match self.shown.take() {
            Some(line) => line,
            None => self.start(),
        };
        let message = match (&self.progress, wait) {
            (Some(Progress::Bar { done, .. }), wait) => {
                line.set_position(*done as u64);
                wait.unwrap_or_else(|| forecast(&line))
            }
            (Some(pets), Some(wait)) => format!("{}; {wait}", pets.text()),
            (Some(pets), None) => pets.text(),
            (None, wait) => wait.unwrap_or_default(),
        };
        line.set_message(message);
        line.tick();
        self.shown = Some(line);
    }

    fn start(&self) -> ProgressBar {
        let width = self.screen.width().unwrap_or(80).saturating_sub(1);
        let terminal = Target {
            stream: self.stream.clone(),
            width,
        };
        let target = ProgressDrawTarget::term_like(Box::new(terminal));
        let (length, done, template) = match &self.progress {
            Some(Progress::Bar { done, all }) if width < MIN_BAR_WIDTH => {
                let template = "{human_pos} of {human_len}  {wide_msg}";
                (*all, *done, template)
            }
            Some(Progress::Bar { done, all }) => {
                let template = "{bar:20}  {human_pos} of {human_len}  {percent}%  {wide_msg}";
                (*all, *done, template)
            }
            Some(Progress::Pets { .. }) | None => (0, 0, "{spinner} {wide_msg}"),
        };
        let (bar, spinner) = match self.screen.has_unicode() {
            true => ("█░", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "),
            false => ("#.", "|/-\\ "),
        };
        let style = ProgressStyle::with_template(template);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(length as u64), target)
            .with_style(style.progress_chars(bar).tick_chars(spinner))
            .with_position(done as u64);
        bar.reset_eta();
        bar
    }

    /// Describes the wait, if it is to be shown. An import sends requests all the time, so its bar
    /// does not mention single ones.
    fn wait(&self) -> Option<String> {
        let (activity, since) = self.activity.as_ref()?;
        if since.elapsed() < SHOWN_AFTER {
            return None;
        }
        match &self.progress {
            Some(Progress::Bar { .. }) => {
                Some(activity.timed(activity.short.as_ref()?, ":", *since))
            }
            Some(Progress::Pets { .. }) | None => {
                Some(activity.timed(&activity.text, " in", *since))
            }
        }
    }
}

/// Describes the speed, and how long the remaining rows take.
fn forecast(line: &ProgressBar) -> String {
    if line.position() == 0 {
        return "starting".to_owned();
    }
    let speed = line.per_sec();
    let left = duration(line.eta());
    match speed {
        1.0.. => format!("{speed:.0} a second, {left} left"),
        0.01.. => format!("{:.0} a minute, {left} left", speed * 60.0),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    /// Returns what a line of this width shows two seconds after the wait began.
    async fn drawn(width: usize, progress: Option<Progress>, activity: Activity) -> String {
        let (mut reader, writer) = io::pipe().unwrap();
        let screen = Screen::plain(Some(width));
        let mut status = Status::new(SharedStream::new(Box::new(writer)), screen);
        status.set_progress(progress);
        status.set_activity(Some(activity));
        advance(Duration::from_secs(2)).await;
        status.draw();
        drop(status);
        let text = io::read_to_string(&mut reader).unwrap();
        let mut lines = text.rsplit("\r\u{1b}[K");
        lines.find(|line| !line.is_empty()).unwrap().to_owned()
    }

    fn quota() -> Activity {
        let end = Instant::now() + Duration::from_secs(43);
        let text = "minute quota used up; continues";
        let at = Some("Mon 01:00".to_owned());
        Activity::new(text).short("minute quota").ends(end, at)
    }

    const PETS: Progress = Progress::Pets {
        verb: "listing",
        count: 12_345,
    };
    const BAR: Progress = Progress::Bar {
        done: 12_345,
        all: 30_000,
    };

    #[tokio::test(start_paused = true)]
    async fn each_line_has_the_progress_the_reason_and_the_time_also_if_it_is_narrow() {
        let host = || Activity::new("waiting for staging.example");
        let cases: [(_, fn() -> Activity, _, _); 4] = [
            (
                None,
                quota,
                "⠙ minute quota used up; continues in 41 s (Mon 01:00)",
                "⠙ minute quota used up; continues in 41",
            ),
            (
                Some(PETS),
                quota,
                "⠙ listing pets: 12,345 so far; minute quota used up; continues in 41 s (Mon 01:00)",
                "⠙ listing pets: 12,345 so far; minute q",
            ),
            (
                Some(BAR),
                quota,
                "████████░░░░░░░░░░░░  12,345 of 30,000  41%  minute quota: 41 s (Mon 01:00)",
                "12,345 of 30,000  minute quota: 41 s (M",
            ),
            (
                None,
                host,
                "⠙ waiting for staging.example, 2 s",
                "⠙ waiting for staging.example, 2 s",
            ),
        ];
        for (progress, activity, wide, narrow) in cases {
            let shown = drawn(100, progress.clone(), activity()).await;
            assert_eq!(shown, wide);
            let again = drawn(40, progress, activity()).await;
            assert_eq!(again, narrow);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bar_mentions_a_wait_for_others_but_no_single_request() {
        let bar = || Some(Progress::Bar { done: 0, all: 12 });
        let line = "░░░░░░░░░░░░░░░░░░░░  0 of 12  0%  ";
        let shown = drawn(
            80,
            bar(),
            Activity::new("waiting for others").short("other programs"),
        )
        .await;
        assert_eq!(shown, format!("{line}other programs, 2 s"));
        let shown = drawn(80, bar(), Activity::new("waiting for host")).await;
        assert_eq!(shown, format!("{line}starting"));
    }
}
