//! Reads the input of a command: a file, standard input, or an answer at the terminal.

use std::fs::File;
use std::io::{ErrorKind, Read, empty};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use crate::env::{Prompt, Signal, locked};
use crate::error::{CliError, Kind, Result};
use crate::settings::Size;
use crate::status::Activity;
use crate::ui::Ui;

/// The maximum size of a request's body.
pub(crate) const MAX_BODY: u64 = 16 << 20;

/// How long to wait for a signal after the end of a piped input. Ctrl-C also ends the program that
/// writes into the pipe, so the end may arrive before the signal. Such an input may be incomplete.
const SIGNAL_DELAY: Duration = Duration::from_millis(20);

/// Standard input and the terminal.
pub(crate) struct Reader {
    /// `None` once it was read.
    stdin: Mutex<Option<Box<dyn Read + Send>>>,
    is_terminal: bool,
    prompt: Mutex<Option<Prompt>>,
    ui: Ui,
}

/// Takes a value that is there once.
pub(crate) fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    locked(place).take()
}

pub(crate) fn input_name(file: &Path) -> String {
    if is_stdin(file) {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

pub(crate) fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

impl Reader {
    pub(crate) fn new(
        stdin: Box<dyn Read + Send>,
        is_terminal: bool,
        prompt: Option<Prompt>,
        ui: Ui,
    ) -> Self {
        Self {
            stdin: Mutex::new(Some(stdin)),
            is_terminal,
            prompt: Mutex::new(prompt),
            ui,
        }
    }

    /// Asks for a secret at the terminal, without showing it; `None` if there is no terminal.
    pub(crate) async fn ask_secret(&self, question: &'static str) -> Result<Option<String>> {
        let Some(prompt) = take(&self.prompt) else {
            return Ok(None);
        };
        // The prompt runs on another thread, so that Ctrl-C does not have to wait for input.
        let answer = tokio::task::spawn_blocking(move || prompt(question)).await;
        match answer.map_err(CliError::internal)? {
            Ok(secret) => Ok(Some(secret)),
            // At the prompt, Ctrl-C arrives as a character before it arrives as a signal.
            Err(problem) if problem.kind() == ErrorKind::Interrupted => {
                Err(Signal::Interrupt.into())
            }
            Err(problem) => Err(CliError::usage(format!("cannot read a key: {problem}"))),
        }
    }

    /// Reads a file of limited size, or standard input if it is `-`.
    pub(crate) async fn read(&self, file: &Path, what: &str, max: u64) -> Result<Vec<u8>> {
        let name = input_name(file);
        if is_stdin(file) && self.is_terminal {
            let text = format!("reading {what} from the terminal; end with Ctrl-D");
            self.ui.note_now(&text);
        } else {
            self.ui
                .set_activity(Some(Activity::new(format!("reading {name}"))));
        }
        let path = file.to_owned();
        let stdin = match is_stdin(file) {
            true => Some(take(&self.stdin).unwrap_or_else(|| Box::new(empty()))),
            false => None,
        };
        // The input is read on another thread, so that the status line can show that it is slow.
        let read = tokio::task::spawn_blocking(move || {
            let input = match stdin {
                Some(stdin) => stdin,
                None => Box::new(File::open(path)?),
            };
            let mut bytes = Vec::new();
            input.take(max + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        let read = read.await.map_err(CliError::internal)?;
        if is_stdin(file) || !file.is_file() {
            tokio::time::sleep(SIGNAL_DELAY).await;
        }
        self.ui.set_activity(None);
        let bytes = read.map_err(|problem| {
            CliError::io(Kind::Input, format!("cannot read {name}"), &problem)
        })?;
        if bytes.len() as u64 > max {
            let size = Size(usize::try_from(max).unwrap_or(usize::MAX));
            return Err(CliError::input(format!("{name} is larger than {size}")));
        }
        Ok(bytes)
    }
}
