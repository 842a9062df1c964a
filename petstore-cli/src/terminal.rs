//! The terminal as it is asked for secrets: without echo, and left as it was found, Ctrl-C or not.

use std::io::{self, IsTerminal as _};

use petstore_cli::Prompt;

/// The terminal, as it was when it was first asked something.
#[derive(Clone, Default)]
pub(super) struct Terminal {
    #[cfg(unix)]
    found: std::sync::Arc<std::sync::Mutex<Option<rustix::termios::Termios>>>,
}

impl Terminal {
    /// Returns how to ask, where somebody is there to answer.
    pub(super) fn prompt(&self) -> Option<Prompt> {
        let terminal = self.clone();
        let ask = move |prompt: &str| {
            terminal.remember();
            rpassword::prompt_password(prompt)
        };
        io::stdin().is_terminal().then(|| Box::new(ask) as Prompt)
    }

    #[cfg(unix)]
    fn remember(&self) {
        let found = rustix::termios::tcgetattr(io::stdin()).ok();
        *self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = found;
    }

    /// Puts the terminal back as it was: who was asked may have pressed Ctrl-C in place of answering.
    #[cfg(unix)]
    pub(super) fn restore(&self) {
        use rustix::termios::{OptionalActions, tcsetattr};

        let found = self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(found) = found {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &found);
        }
    }

    #[cfg(not(unix))]
    fn remember(&self) {}

    #[cfg(not(unix))]
    pub(super) fn restore(&self) {}
}
