//! The context of a run, which every command gets: settings, streams, and the connection to the
//! service.

use std::ffi::OsString;
use std::sync::Mutex;

use crate::env::{Env, Signals, System};
use crate::error::{CliError, Failure, Kind, Result};
use crate::global::GlobalArgs;
use crate::input::{Reader, take};
use crate::output::{OutputOptions, Printer, Stdout};
use crate::screen::Screen;
use crate::session::Connector;
use crate::settings::config_file::Problem;
use crate::settings::{Settings, credentials, secrets};
use crate::time::Clock;
use crate::ui::{Ui, UiOptions};

/// The parts of a run.
pub(crate) struct Context {
    ui: Ui,
    printer: Printer,
    connector: Connector,
    reader: Reader,
    args: Vec<OsString>,
    /// Why the settings are incomplete, until it is reported.
    problem: Mutex<Option<Problem>>,
    signals: Mutex<Option<Signals>>,
    denies_deprecated: bool,
}

impl Context {
    pub(crate) fn new(global: &GlobalArgs, env: Env, system: System) -> Self {
        let (settings, problem) = global.resolve(&system);
        let color = settings.values().color();
        let err_screen = Screen::new(&system, color, env.stderr.is_terminal);
        let out_screen = Screen::new(&system, color, env.stdout.is_terminal);
        let mut clock = Clock::new(system.now());
        if err_screen.is_terminal() {
            clock = clock.local(system.time_zone());
        }
        let options = UiOptions::new(settings.values().error_format(), err_screen, clock.clone());
        let ui = Ui::new(env.stderr.writer, global.verbosity(options));
        for secret in secrets_of(&env.args, &system) {
            ui.hide(&secret);
        }
        let options = OutputOptions {
            format: settings.values().output(),
            fields: global.fields(),
            jq: global.jq(),
            variables: shown_variables(&system),
            screen: out_screen,
        };
        let stdout = Stdout::new(env.stdout.writer);
        let reader = Reader::new(env.stdin, env.stdin_is_terminal, env.prompt, ui.clone());
        Self {
            printer: Printer::new(stdout, options),
            connector: Connector::new(settings, system, ui.clone(), clock),
            reader,
            ui,
            args: env.args,
            problem: Mutex::new(problem),
            signals: Mutex::new(Some(env.signals)),
            denies_deprecated: global.denies_deprecated(),
        }
    }

    pub(crate) fn ui(&self) -> &Ui {
        &self.ui
    }

    pub(crate) fn settings(&self) -> &Settings {
        self.connector.settings()
    }

    pub(crate) fn system(&self) -> &System {
        self.connector.system()
    }

    pub(crate) fn printer(&self) -> &Printer {
        &self.printer
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the command line. Its first word is the program's name.
    pub(crate) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// Returns the signals, which the caller handles from now on.
    pub(crate) fn take_signals(&self) -> Signals {
        take(&self.signals).unwrap_or_else(|| Box::pin(futures_util::stream::pending()))
    }

    /// Takes the reason why the settings are incomplete, so that it is reported once.
    pub(crate) fn take_problem(&self) -> Option<CliError> {
        match take(&self.problem)? {
            Problem::Unreadable(error) | Problem::Invalid(error) => Some(error),
        }
    }

    /// Fails if a setting is invalid, or if the file cannot be read and nothing else says where the
    /// service is. Else only warns of the file: a container may have another user's.
    pub(crate) fn require_settings(&self) -> Result<()> {
        match take(&self.problem) {
            None => Ok(()),
            Some(Problem::Unreadable(error)) if self.settings().has_base_url() => {
                if let Ok(Failure { message, .. }) = self.connector.explain(error) {
                    let text = format!("{message}; flags and variables apply");
                    self.ui.warning(&text, None);
                }
                Ok(())
            }
            Some(Problem::Unreadable(error) | Problem::Invalid(error)) => Err(error),
        }
    }

    /// Ends the program: flushes the result, prints the error and returns the exit code.
    pub(crate) async fn end(self, result: Result<()>) -> u8 {
        // The result is written before the error.
        let result = result.and(self.printer.flush());
        let result = result.and_then(|()| self.deny_deprecated());
        self.connector.close().await;
        let code = match result.map_err(|error| self.connector.explain(error)) {
            Ok(()) => 0,
            Err(Err(code)) => code,
            Err(Ok(failure)) => {
                self.ui.error(&failure);
                return failure.kind.code();
            }
        };
        self.ui.finish();
        code
    }

    fn deny_deprecated(&self) -> Result<()> {
        if self.denies_deprecated && self.connector.has_used_deprecated() {
            let problem = "a deprecated operation was used";
            return Err(CliError::new(Kind::Partial, problem));
        }
        Ok(())
    }
}

/// Returns the passwords in arguments and variables, and the key in a variable.
fn secrets_of(args: &[OsString], system: &System) -> Vec<String> {
    let values = system.vars().map(|(_, value)| value);
    let texts = args.iter().filter_map(|arg| arg.to_str()).chain(values);
    let mut found: Vec<String> = texts.flat_map(secrets::passwords).collect();
    found.extend(system.var(credentials::KEY).map(str::to_owned));
    found
}

/// Returns the variables that `--jq` may show: those without secrets.
fn shown_variables(system: &System) -> Vec<(String, String)> {
    let secrets = secrets_of(&[], system);
    let mut shown = Vec::new();
    for (name, value) in system.vars() {
        if !secrets.iter().any(|secret| value.contains(secret)) {
            shown.push((name.to_owned(), value.to_owned()));
        }
    }
    shown
}
