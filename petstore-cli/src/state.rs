//! What the program remembers from one run to the next. All of it may be lost without harm.

use std::path::PathBuf;
use std::time::SystemTime;

use crate::env::Dirs;
use crate::{files, time};

/// The folder of small notes; without one, nothing is remembered.
#[derive(Debug, Clone, Default)]
pub(crate) struct State(Option<PathBuf>);

impl State {
    pub(crate) fn new(dirs: &Dirs) -> Self {
        Self(dirs.state.clone())
    }

    /// Returns whether something happens for the first time today (UTC), and notes that it has.
    /// Where that cannot be noted, it is always the first time.
    pub(crate) fn first_today(&self, what: &str, now: SystemTime) -> bool {
        let Some(folder) = &self.0 else { return true };
        let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let path = folder.join(what.chars().map(fits).take(80).collect::<String>());
        let today = time::day(now);
        if files::read(&path).is_ok_and(|day| day.as_deref() == Some(&today)) {
            return false;
        }
        let _ = files::write(&path, &today);
        true
    }
}
