//! The process as the program sees it: what `main` hands over, and tests put together.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::pin::Pin;
use std::time::SystemTime;

/// Everything that enters and leaves the program.
pub struct Env {
    /// The arguments, the program's own name first.
    pub args: Vec<OsString>,
    /// The environment variables.
    pub vars: HashMap<String, OsString>,
    /// Standard input.
    pub stdin: Box<dyn Read + Send>,
    /// Standard output: results, and nothing else.
    pub stdout: Stream,
    /// Standard error: all else.
    pub stderr: Stream,
    /// The current time.
    pub now: fn() -> SystemTime,
    /// How many columns the terminal has, where there is one. Help is laid out for it.
    pub width: Option<u16>,
    /// Completes when the user asks the program to stop (Ctrl-C).
    pub interrupt: Pin<Box<dyn Future<Output = ()> + Send>>,
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

    /// Returns whether a variable holds something that is not Unicode.
    pub(crate) fn is_garbled(&self, name: &str) -> bool {
        self.vars.get(name).is_some_and(|value| value.to_str().is_none())
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
