//! The context of a run: settings, streams, and the connection to the service. Commands get the
//! parts that they need.

use std::ffi::OsString;
use std::sync::Arc;

use crate::env::{Env, Signals, System};
use crate::error::{CliError, Failure, Kind, Result};
use crate::global::GlobalArgs;
use crate::input::Reader;
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
    settings: Arc<Settings>,
    /// Why the settings are incomplete.
    problem: Option<Problem>,
    system: Arc<System>,
    printer: Printer,
    connector: Arc<Connector>,
    reader: Reader,
    args: Vec<OsString>,
    signals: Signals,
    denies_deprecated: bool,
}

impl Context {
    pub(crate) fn new(global: &GlobalArgs, env: Env) -> Self {
        let system = Arc::new(System::new(env.vars, env.dirs, env.now, env.width));
        let (settings, problem) = global.resolve(&system);
        let settings = Arc::new(settings);
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
        let connector = Connector::new(
            Arc::clone(&settings),
            Arc::clone(&system),
            ui.clone(),
            clock,
        );
        let reader = Reader::new(
            env.stdin,
            env.stdin_is_terminal,
            env.prompt,
            Arc::clone(&system),
            ui.clone(),
        );
        Self {
            ui,
            settings,
            problem,
            system,
            printer: Printer::new(stdout, options),
            connector: Arc::new(connector),
            reader,
            args: env.args,
            signals: env.signals,
            denies_deprecated: global.denies_deprecated(),
        }
    }

    pub(crate) fn ui(&self) -> &Ui {
        &self.ui
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    pub(crate) fn system(&self) -> &Arc<System> {
        &self.system
    }

    pub(crate) fn printer(&self) -> &Printer {
        &self.printer
    }

    pub(crate) fn connector(&self) -> &Arc<Connector> {
        &self.connector
    }

    pub(crate) fn reader(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// Returns the command line. Its first word is the program's name.
    pub(crate) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// Returns the signals, which the caller handles from now on.
    pub(crate) fn take_signals(&mut self) -> Signals {
        let none: Signals = Box::pin(futures_util::stream::pending());
        std::mem::replace(&mut self.signals, none)
    }

    /// Takes the reason why the settings are incomplete, so that it is reported once.
    pub(crate) fn take_problem(&mut self) -> Option<CliError> {
        match self.problem.take()? {
            Problem::Unreadable(error) | Problem::Invalid(error) => Some(error),
        }
    }

    /// Fails if a setting is invalid, or if the file cannot be read and nothing else says where the
    /// service is. Else only warns of the file: a container may have another user's.
    pub(crate) fn require_settings(&mut self) -> Result<()> {
        match self.problem.take() {
            None => Ok(()),
            Some(Problem::Unreadable(error)) if self.settings.has_base_url() => {
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
