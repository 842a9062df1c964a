//! The process as the program sees it: what `main` hands over, and tests put together.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::SystemTime;

use futures_util::Stream as Events;
use jiff::tz::TimeZone;

/// Everything that enters and leaves the program.
pub struct Env {
    /// The arguments, the program's own name first.
    pub args: Vec<OsString>,
    /// The environment variables.
    pub vars: HashMap<String, OsString>,
    /// Standard input.
    pub stdin: Box<dyn Read + Send>,
    /// Whether a person types standard input.
    pub stdin_is_terminal: bool,
    /// Standard output: results, and nothing else.
    pub stdout: Stream,
    /// Standard error: all else.
    pub stderr: Stream,
    /// Asks a person for a secret, where one sits there: shows a prompt, and nothing of the answer.
    pub prompt: Option<Prompt>,
    /// The folders that files are kept in.
    pub dirs: Dirs,
    /// The current time.
    pub now: fn() -> SystemTime,
    /// How many columns the terminal has, where there is one.
    pub width: Option<u16>,
    /// Yields whenever the program is asked to stop.
    pub signals: Signals,
}

/// A request to stop the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C (SIGINT).
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// Returns the exit code of a program that it stops.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupted",
            Self::Terminate => "terminated",
        })
    }
}

/// Each signal, as it comes.
pub type Signals = Pin<Box<dyn Events<Item = Signal> + Send>>;

/// Shows a prompt and reads a line without showing it.
pub type Prompt = Box<dyn FnOnce(&str) -> io::Result<String> + Send>;

/// The folders that the program keeps files in. Where a person has no home there are none, and
/// nothing is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirs {
    /// What people write, or have written for them: the configuration and the keys.
    pub config: Option<PathBuf>,
    /// What the program remembers.
    pub state: Option<PathBuf>,
}

impl Dirs {
    /// Returns the folders that the variables lead to: below `XDG_CONFIG_HOME` and
    /// `XDG_STATE_HOME`, or `.config` and `.local/state` in `HOME` (XDG Base Directory
    /// Specification), on every Unix; below `APPDATA` and `LOCALAPPDATA` on Windows. What is not
    /// an absolute path is not minded.
    ///
    /// ```
    /// use petstore_cli::Dirs;
    ///
    /// # if cfg!(unix) {
    /// let vars = [("HOME".to_owned(), "/home/ada".into())].into();
    /// let dirs = Dirs::from_vars(&vars);
    /// assert_eq!(dirs.config.unwrap().to_str(), Some("/home/ada/.config/petstore"));
    /// # }
    /// ```
    #[must_use]
    pub fn from_vars(vars: &HashMap<String, OsString>) -> Self {
        let absolute = |name: &str| vars.get(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let home = |below: &str| absolute("HOME").map(|home| home.join(below));
        let (config, state) = if cfg!(windows) {
            (absolute("APPDATA"), absolute("LOCALAPPDATA"))
        } else {
            let config = absolute("XDG_CONFIG_HOME").or_else(|| home(".config"));
            (config, absolute("XDG_STATE_HOME").or_else(|| home(".local/state")))
        };
        let own = |dir: Option<PathBuf>| dir.map(|dir| dir.join("petstore"));
        Self { config: own(config), state: own(state) }
    }
}

/// A stream to write to.
pub struct Stream {
    /// Where the bytes go.
    pub writer: Box<dyn Write + Send>,
    /// Whether a person looks at it.
    pub is_terminal: bool,
}

impl Env {
    /// Returns a variable; one that is set to nothing counts as not set, and so does one that is
    /// not Unicode.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.vars.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// Returns how many columns there are: COLUMNS, or what the terminal says.
    pub(crate) fn columns(&self) -> Option<usize> {
        let columns = self.var("COLUMNS").and_then(|text| text.parse().ok());
        columns.or(self.width.map(usize::from)).filter(|columns| *columns > 0)
    }

    /// Returns a path as messages show it: `~` stands for the home folder.
    pub(crate) fn shown(&self, path: &std::path::Path) -> String {
        let home = self.var("HOME").filter(|home| home.len() > 1);
        match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }

    /// Returns the local time zone: that of TZ, or the system's.
    pub(crate) fn time_zone(&self) -> TimeZone {
        let named =
            self.var("TZ").map(|name| TimeZone::get(name).or_else(|_| TimeZone::posix(name)));
        named.and_then(Result::ok).unwrap_or_else(TimeZone::system)
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variables hold the key.
        f.debug_struct("Env").field("args", &self.args).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("is_terminal", &self.is_terminal).finish_non_exhaustive()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn finds_folders_by_xdg_then_home_and_minds_no_relative_path() {
        let dirs = |vars: &[(&str, &str)]| {
            let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), value.into()));
            Dirs::from_vars(&vars.collect())
        };
        let both = dirs(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]);
        assert_eq!(both.config, Some("/c/petstore".into()));
        assert_eq!(both.state, Some("/h/.local/state/petstore".into()));
        let relative = dirs(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")]);
        assert_eq!(relative.config, Some("/h/.config/petstore".into()));
        assert_eq!(dirs(&[]), Dirs::default());
    }
}
