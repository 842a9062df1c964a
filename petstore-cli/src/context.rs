//! The context of a run, which every command gets: settings, streams, and the connection to the
//! service. Commands call [`Context::connect`] after they have checked everything else.

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use petstore_client::transport::Connection;
use petstore_client::url::Url;
use petstore_client::{Client, Error, RequestOptions};
use serde_json::Value;

use crate::env::{Env, SharedStream, Signals, System, locked};
use crate::error::{CliError, Failure, Kind, Result};
use crate::global::GlobalArgs;
use crate::input::{Reader, take};
use crate::output::Printer;
use crate::screen::Screen;
use crate::session::{self, KeyCommand, Purpose, Tracer, USER_AGENT, shared_limits};
use crate::settings::config_file::Problem;
use crate::settings::credentials::{self, CommandSource, KeySource};
use crate::settings::{Settings, Source, secrets};
use crate::time::Clock;
use crate::ui::Ui;

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a run.
pub(crate) struct Context {
    settings: Settings,
    system: System,
    ui: Ui,
    clock: Clock,
    printer: Printer,
    reader: Reader,
    args: Vec<OsString>,
    /// Why the settings are incomplete, until it is reported.
    problem: Mutex<Option<Problem>>,
    signals: Mutex<Option<Signals>>,
    denies_deprecated: bool,
    uses_deprecated: Arc<AtomicBool>,
    /// The command that prints the key, once it was needed.
    key_command: Mutex<Option<KeyCommand>>,
    /// What is needed of the last client when the program ends.
    last: Mutex<Last>,
    #[cfg(feature = "mock")]
    mock: Mutex<Option<petstore_mock::MockServer>>,
}

struct Last {
    client: Option<Client>,
    purpose: Purpose,
    key: KeySource,
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
        let ui = Ui::new(
            SharedStream::new(env.stderr.writer),
            settings.values().error_format(),
            global.is_quiet(),
            global.verbose(),
            err_screen,
            clock.clone(),
        );
        for secret in secrets_of(&env.args, &system) {
            ui.hide(&secret);
        }
        let printer = Printer {
            out: SharedStream::new(env.stdout.writer),
            screen: out_screen,
            format: settings.values().output(),
            fields: global.fields(),
            jq: global.jq(),
            variables: shown_variables(&system),
        };
        let mut args = env.args;
        if settings.profile_source() == Source::Variable {
            let option = ["--profile", settings.profile()].map(OsString::from);
            args.splice(1..1, option);
        }
        let reader = Reader::new(env.stdin, env.stdin_is_terminal, env.prompt, ui.clone());
        let last = Last {
            client: None,
            purpose: Purpose::Read,
            key: KeySource::Typed,
        };
        Self {
            settings,
            system,
            ui,
            clock,
            printer,
            reader,
            args,
            problem: Mutex::new(problem),
            signals: Mutex::new(Some(env.signals)),
            denies_deprecated: global.denies_deprecated(),
            uses_deprecated: Arc::default(),
            key_command: Mutex::default(),
            last: Mutex::new(last),
            #[cfg(feature = "mock")]
            mock: Mutex::default(),
        }
    }

    pub(crate) fn ui(&self) -> &Ui {
        &self.ui
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    pub(crate) fn printer(&self) -> &Printer {
        &self.printer
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Returns the command line, also with the profile that a variable chose, so that a hint can
    /// repeat it. Its first word is the program's name.
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
            Some(Problem::Unreadable(error)) if self.settings.has_base_url() => {
                if let Ok(Failure { message, .. }) = self.explain(error) {
                    let text = format!("{message}; flags and variables apply");
                    self.ui.warning(&text, None);
                }
                Ok(())
            }
            Some(Problem::Unreadable(error) | Problem::Invalid(error)) => Err(error),
        }
    }

    /// Returns a shell expression for the key, for a command that the user can copy.
    pub(crate) fn key_expression(&self) -> String {
        let is_in_variable = self.system.var(credentials::KEY).is_some();
        let found = credentials::find(&self.settings, &self.system);
        match found {
            Ok(Some(_)) if !is_in_variable && !self.settings.is_mock() => {
                format!("$(petstore auth token{})", self.settings.same_service())
            }
            _ => format!("${}", credentials::KEY),
        }
    }

    /// Returns the key and its source. Runs `key_command` if the key comes from there.
    pub(crate) async fn key(&self) -> Result<(String, KeySource)> {
        let (mut key, source) = credentials::require(&self.settings, &self.system)?;
        if let KeySource::Command(command) = &source {
            let printed = self.key_command(command).key(None).await;
            key = printed.map_err(CliError::key)?;
        }
        self.ui.hide(&key);
        credentials::check(&key, &source)?;
        Ok((key, source))
    }

    fn key_command(&self, command: &CommandSource) -> KeyCommand {
        let new = || KeyCommand::new(command.clone(), &self.system, &self.ui);
        locked(&self.key_command).get_or_insert_with(new).clone()
    }

    /// Returns a client for the service that the settings name, or for a mock server.
    pub(crate) async fn connect(&self, purpose: Purpose) -> Result<Client> {
        #[cfg(feature = "mock")]
        if self.settings.is_mock() {
            let (base_url, key) = self.start_mock().await?;
            return self.connect_with(purpose, &base_url, key, KeySource::Typed);
        }
        self.settings.require_profile()?;
        let base_url = self.settings.base_url()?;
        let (key, source) = self.key().await?;
        self.connect_with(purpose, &base_url, key, source)
    }

    pub(crate) fn connect_with(
        &self,
        purpose: Purpose,
        base_url: &Url,
        key: String,
        source: KeySource,
    ) -> Result<Client> {
        self.ui.hide(&key);
        credentials::check(&key, &source)?;
        let attempts = self.settings.values().attempts();
        let deprecated = Arc::clone(&self.uses_deprecated);
        let doctor = self.settings.command("doctor");
        let tracer = Tracer::new(
            self.ui.clone(),
            base_url,
            attempts,
            purpose,
            doctor,
            deprecated,
        );
        // `Settings::base_url` has refused insecure URLs.
        let mut connection = Connection::new()
            .connect_timeout(CONNECT_TIMEOUT)
            .allow_insecure_http(true);
        let mut builder = Client::builder(base_url.as_str());
        builder = match &source {
            KeySource::Command(command) => builder.api_key_provider(self.key_command(command)),
            _ => builder.api_key(key),
        };
        builder = builder
            .user_agent(USER_AGENT)
            .options(&self.limits(purpose))
            .on_event(move |event| tracer.event(event));
        if !self.settings.is_mock() {
            if let Some(authorities) = self.authorities()? {
                connection = connection.roots(authorities);
            }
            builder = builder.limits(shared_limits(&self.settings, &self.system, &self.ui)?);
        }
        let client = builder.connection(connection).build()?;
        *self.last() = Last {
            client: Some(client.clone()),
            purpose,
            key: source,
        };
        Ok(client)
    }

    fn limits(&self, purpose: Purpose) -> RequestOptions {
        const MIN_TIMEOUT: Duration = Duration::from_millis(1);

        let values = self.settings.values();
        let timeout = values.timeout();
        let max_wait = values.max_wait();
        // A request that changes something is not retried after a time-out. So its one attempt may
        // take the whole time.
        let attempts = values.attempts();
        let shares = match purpose.is_read() {
            true => attempts,
            false => 1,
        };
        // Whole milliseconds read better in messages.
        let share = (timeout / shares).as_millis();
        let share = Duration::from_millis(u64::try_from(share).unwrap_or(u64::MAX));
        let size = values.max_response_size();
        RequestOptions::new()
            .max_wait(max_wait)
            .max_attempts(attempts)
            .attempt_timeout(share.max(MIN_TIMEOUT))
            .timeout(timeout.saturating_add(max_wait))
            .max_response_bytes(size.0)
    }

    /// Reads the file of trusted authorities, if one is set.
    fn authorities(&self) -> Result<Option<Vec<u8>>> {
        let Some(path) = self.settings.values().ca_file() else {
            return Ok(None);
        };
        match std::fs::read(self.system.path(path)) {
            Ok(authorities) => Ok(Some(authorities)),
            Err(problem) => {
                let source = self.settings.source("ca_file");
                let action = format!("cannot read {path}{source}");
                Err(CliError::io(Kind::Config, action, &problem))
            }
        }
    }

    /// Returns the purpose of the last client's requests.
    pub(crate) fn purpose(&self) -> Purpose {
        self.last().purpose
    }

    /// Returns the message of an error, or an exit code if no message is needed.
    pub(crate) fn explain(&self, error: CliError) -> Result<Failure, u8> {
        match error {
            CliError::Failure(failure) => Ok(*failure),
            CliError::Client(error) => Ok(self.explain_client(&error)),
            CliError::Silent(code) => Err(code),
        }
    }

    /// Returns the message of a request's error.
    pub(crate) fn explain_client(&self, error: &Error) -> Failure {
        let last = self.last();
        session::failure(error, &self.settings, &self.clock, last.purpose, &last.key)
    }

    /// Closes the last client: other processes learn how its requests ended, and need not wait for it.
    pub(crate) async fn close(&self) {
        let client = self.last().client.clone();
        let Some(client) = client else { return };
        // An unreachable store would only delay the end of the command.
        if let Some(shared) = client.limits().snapshot().shared
            && shared.holders > 0
            && shared.problem.is_none()
        {
            client.close().await;
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        locked(&self.last)
    }

    /// Ends the program: flushes the result, prints the error and returns the exit code.
    pub(crate) async fn end(self, result: Result<()>) -> u8 {
        // The result is written before the error.
        let result = result.and(self.printer.flush());
        let result = result.and_then(|()| self.deny_deprecated());
        self.close().await;
        let code = match result.map_err(|error| self.explain(error)) {
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
        if self.denies_deprecated && self.uses_deprecated.load(Ordering::Relaxed) {
            let problem = "a deprecated operation was used";
            return Err(CliError::new(Kind::Partial, problem));
        }
        Ok(())
    }

    #[cfg(feature = "mock")]
    async fn start_mock(&self) -> Result<(Url, String)> {
        const KEY: &str = "mock-key";

        let builder = petstore_mock::MockServer::builder();
        let builder = builder.key(KEY, petstore_mock::Plan::Business);
        let server = builder.start().await.map_err(CliError::internal)?;
        let base_url = Url::parse(server.url()).map_err(CliError::internal)?;
        *locked(&self.mock) = Some(server);
        Ok((base_url, KEY.to_owned()))
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
fn shown_variables(system: &System) -> Value {
    let secrets = secrets_of(&[], system);
    let is_shown = |value: &str| !secrets.iter().any(|secret| value.contains(secret));
    let shown = system.vars().filter(|(_, value)| is_shown(value));
    shown.collect()
}
