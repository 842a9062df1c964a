//! The process environment. `main` collects it, and tests build their own.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures_util::{Stream as Events, StreamExt as _};
use jiff::tz::TimeZone;

use crate::error::{CliError, Kind, Result};

/// The inputs and outputs of the program.
pub struct Env {
    /// The arguments, the program's own name first.
    pub args: Vec<OsString>,
    /// The environment variables.
    pub vars: HashMap<String, OsString>,
    /// Standard input.
    pub stdin: Box<dyn Read + Send>,
    /// Whether standard input is a terminal.
    pub stdin_is_terminal: bool,
    /// Standard output: results, and nothing else.
    pub stdout: Stream,
    /// Standard error: messages.
    pub stderr: Stream,
    /// Prompts for a secret without echo, if there is a terminal.
    pub prompt: Option<Prompt>,
    /// The folders for files.
    pub dirs: Dirs,
    /// The current time.
    pub now: fn() -> SystemTime,
    /// The width of the terminal, if there is one.
    pub width: Option<u16>,
    /// The signals to stop.
    pub signals: Signals,
}

/// A request to stop the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C (SIGINT).
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal was closed.
    HangUp,
}

impl Signal {
    /// Returns the exit code after this signal.
    #[must_use]
    pub fn code(self) -> u8 {
        self.kind().code()
    }

    fn kind(self) -> Kind {
        match self {
            Self::Interrupt => Kind::Interrupted,
            Self::Terminate => Kind::Terminated,
            Self::HangUp => Kind::HungUp,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupted",
            Self::Terminate => "terminated",
            Self::HangUp => "hung up",
        })
    }
}

/// The error of a command that a signal stopped.
impl From<Signal> for CliError {
    fn from(signal: Signal) -> Self {
        Self::new(signal.kind(), signal.to_string())
    }
}

/// A stream of signals.
pub type Signals = Pin<Box<dyn Events<Item = Signal> + Send>>;

/// Does something until a signal arrives.
pub(crate) async fn until_signal<T>(
    signals: &mut Signals,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::select! {
        biased;
        Some(signal) = signals.next() => Err(signal.into()),
        done = work => done,
    }
}

/// Shows a prompt and reads a line without echo.
pub type Prompt = Box<dyn FnOnce(&str) -> io::Result<String> + Send>;

/// The folders for the program's files. Without a home folder, there are none, and nothing is
/// stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirs {
    /// The folder of the configuration and the keys.
    pub config: Option<PathBuf>,
    /// The folder of the program's state, such as shared rate limits.
    pub state: Option<PathBuf>,
    /// The user's own folder below the one for temporary files. Rate limits are kept here if `state`
    /// cannot be used.
    pub temporary: Option<PathBuf>,
}

impl Dirs {
    /// Returns the folders for the variables. On Unix, they are below `XDG_CONFIG_HOME` and
    /// `XDG_STATE_HOME`, or `.config` and `.local/state` in `HOME` (XDG Base Directory
    /// Specification). On Windows, they are below `APPDATA` and `LOCALAPPDATA`. Ignores relative
    /// paths. The temporary folder is below `TMPDIR` or `/tmp`; Windows has none.
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
        let absolute = |name: &str| {
            vars.get(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let home = |below: &str| absolute("HOME").map(|home| home.join(below));
        let (config, state) = if cfg!(windows) {
            (absolute("APPDATA"), absolute("LOCALAPPDATA"))
        } else {
            let config = absolute("XDG_CONFIG_HOME").or_else(|| home(".config"));
            (
                config,
                absolute("XDG_STATE_HOME").or_else(|| home(".local/state")),
            )
        };
        let own = |dir: Option<PathBuf>| dir.map(|dir| dir.join("petstore"));
        Self {
            config: own(config),
            state: own(state),
            temporary: temporary(absolute("TMPDIR")),
        }
    }
}

/// Returns the user's folder below that for temporary files.
#[cfg(unix)]
fn temporary(folder: Option<PathBuf>) -> Option<PathBuf> {
    let folder = folder.unwrap_or_else(|| "/tmp".into());
    let user = rustix::process::geteuid().as_raw();
    Some(folder.join(format!("petstore-{user}")))
}

#[cfg(not(unix))]
fn temporary(_: Option<PathBuf>) -> Option<PathBuf> {
    None
}

/// An output stream.
pub struct Stream {
    /// The destination.
    pub writer: Box<dyn Write + Send>,
    /// Whether it is a terminal.
    pub is_terminal: bool,
}

/// A buffered stream that several handles share.
#[derive(Clone)]
pub(crate) struct SharedStream(Arc<Mutex<BufWriter<Box<dyn Write + Send>>>>);

impl SharedStream {
    pub(crate) fn new(stream: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(BufWriter::new(stream))))
    }
}

impl Write for SharedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        locked(&self.0).flush()
    }
}

/// Locks a value, also after another thread has panicked.
pub(crate) fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the program knows about the machine: variables, folders, the clock and the terminal's
/// width.
pub(crate) struct System {
    vars: HashMap<String, OsString>,
    dirs: Dirs,
    now: fn() -> SystemTime,
    width: Option<u16>,
}

impl System {
    pub(crate) fn new(
        vars: HashMap<String, OsString>,
        dirs: Dirs,
        now: fn() -> SystemTime,
        width: Option<u16>,
    ) -> Self {
        Self {
            vars,
            dirs,
            now,
            width,
        }
    }

    /// Returns a variable. Empty and non-Unicode variables count as not set.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        let value = self.vars.get(name)?.to_str()?;
        (!value.is_empty()).then_some(value)
    }

    /// Returns a variable. Fails if it is not Unicode, instead of ignoring it.
    pub(crate) fn unicode(&self, name: &str) -> Result<Option<&str>> {
        match self.vars.get(name) {
            Some(value) if value.to_str().is_none() => {
                Err(CliError::config(format!("{name} is not UTF-8")))
            }
            _ => Ok(self.var(name)),
        }
    }

    pub(crate) fn vars(&self) -> impl Iterator<Item = (&str, &str)> {
        self.vars
            .iter()
            .filter_map(|(name, value)| Some((&**name, value.to_str()?)))
    }

    /// Returns all variables.
    pub(crate) fn os_vars(&self) -> &HashMap<String, OsString> {
        &self.vars
    }

    pub(crate) fn dirs(&self) -> &Dirs {
        &self.dirs
    }

    pub(crate) fn now(&self) -> fn() -> SystemTime {
        self.now
    }

    /// Returns the width in columns: the variable COLUMNS, or else the width of the terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        let columns = self.var("COLUMNS").and_then(|text| text.parse().ok());
        columns
            .or(self.width.map(usize::from))
            .filter(|columns| *columns > 0)
    }

    /// Returns a path for messages, with `~` for the home folder.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let home = self.var("HOME").filter(|home| home.len() > 1);
        match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }

    /// Returns the path that a setting names. A leading `~/` means the home folder.
    pub(crate) fn path(&self, text: &str) -> PathBuf {
        match (text.strip_prefix("~/"), self.var("HOME")) {
            (Some(below), Some(home)) => Path::new(home).join(below),
            _ => text.into(),
        }
    }

    /// Returns the local time zone: that of the variable TZ, or else the system's.
    pub(crate) fn time_zone(&self) -> TimeZone {
        let Some(name) = self.var("TZ") else {
            return TimeZone::system();
        };
        let named = TimeZone::get(name).or_else(|_| TimeZone::posix(name));
        named.unwrap_or_else(|_| TimeZone::system())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variables are not shown, because they may contain the key.
        f.debug_struct("Env")
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("is_terminal", &self.is_terminal)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn finds_folders_by_xdg_then_home_and_ignores_relative_paths() {
        let dirs = |vars: &[(&str, &str)]| {
            let vars = vars
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.into()));
            Dirs::from_vars(&vars.collect())
        };
        let both = dirs(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]);
        assert_eq!(both.config, Some("/c/petstore".into()));
        assert_eq!(both.state, Some("/h/.local/state/petstore".into()));
        let relative = dirs(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "c")]);
        assert_eq!(relative.config, Some("/h/.config/petstore".into()));
        let others = dirs(&[("TMPDIR", "/t")]);
        assert_eq!(others.temporary.unwrap().parent(), Some(Path::new("/t")));
        let none = dirs(&[("TMPDIR", "t")]);
        assert_eq!((none.config, none.state), (None, None));
        assert_eq!(none.temporary.unwrap().parent(), Some(Path::new("/tmp")));
    }

    #[test]
    fn shows_paths_below_the_home_folder_with_a_tilde() {
        let vars = [("HOME".to_owned(), "/home/ada".into())].into();
        let system = System::new(vars, Dirs::default(), || SystemTime::UNIX_EPOCH, None);
        for (path, shown) in [
            ("/home/ada", "~"),
            ("/home/ada/shop/pets.csv", "~/shop/pets.csv"),
            ("/home/adam", "/home/adam"),
        ] {
            assert_eq!(system.shown(Path::new(path)), shown);
        }
    }
}
