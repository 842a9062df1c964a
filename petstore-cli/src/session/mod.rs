//! The session of a command: its client for the service, and messages for what goes wrong.
//!
//! [`Connector`] knows the settings and builds the client. Commands call [`Connector::connect`] after
//! they have checked everything else.

mod explain;
mod key_command;
mod purpose;
mod stores;
mod trace;
pub(crate) mod words;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use petstore_client::limits::Shared;
use petstore_client::transport::Connection;
use petstore_client::url::Url;
use petstore_client::{Client, Error, RequestOptions};

use self::explain::Explainer;
use self::key_command::KeyCommand;
pub(crate) use self::purpose::Purpose;
use self::stores::shared_limits;
use self::trace::Tracer;
pub(crate) use self::trace::{cause, report_wait};
use crate::env::System;
use crate::error::{CliError, Failure, Kind, Result};
use crate::settings::Settings;
use crate::settings::credentials::{self, CommandSource, Credential, KeySource};
use crate::time::Clock;
use crate::ui::Ui;

/// The program's name in `User-Agent`.
pub(crate) const USER_AGENT: &str = concat!("petstore/", env!("CARGO_PKG_VERSION"));

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Builds the clients of a command, and explains their errors.
pub(crate) struct Connector {
    settings: Settings,
    system: System,
    ui: Ui,
    clock: Clock,
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

impl Connector {
    pub(crate) fn new(settings: Settings, system: System, ui: Ui, clock: Clock) -> Self {
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
            uses_deprecated: Arc::default(),
            key_command: Mutex::default(),
            last: Mutex::new(last),
            #[cfg(feature = "mock")]
            mock: Mutex::default(),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns a shell expression for the key, for a command that the user can copy.
    pub(crate) fn key_expression(&self) -> String {
        let is_in_variable = self.system.var(credentials::KEY).is_some();
        let found = credentials::find(&self.settings, &self.system);
        match found {
            Ok(Some(_)) if !is_in_variable && !self.settings.is_mock() => {
                format!("$(petstore auth token{})", self.settings.profile_option())
            }
            _ => format!("${}", credentials::KEY),
        }
    }

    /// Returns the key and its source. Runs `key_command` if the key comes from there.
    pub(crate) async fn key(&self) -> Result<(String, KeySource)> {
        let Credential { mut key, source } = credentials::require(&self.settings, &self.system)?;
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
        if self.settings.is_mock() {
            let (base_url, key) = self.start_mock().await?;
            let source = KeySource::Typed;
            return self.connect_with(purpose, &base_url, key, source);
        }
        self.settings.require_profile()?;
        let base_url = self.settings.base_url()?;
        let (key, source) = self.key().await?;
        self.connect_with(purpose, &base_url, key, source)
    }

    /// Returns a client for a key.
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
        let tracer = Tracer::new(self.ui.clone(), base_url, attempts, purpose, deprecated);
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

    /// Returns the limits of a request.
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

    /// Warns if rate limits are not shared.
    pub(crate) fn warn_of(&self, store: &Shared) {
        trace::shared_store(&self.ui, store);
    }

    /// Returns the purpose of the last client's requests.
    pub(crate) fn purpose(&self) -> Purpose {
        self.last().purpose
    }

    /// Returns whether a deprecated operation was used.
    pub(crate) fn has_used_deprecated(&self) -> bool {
        self.uses_deprecated.load(Ordering::Relaxed)
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
        let explainer = Explainer {
            settings: &self.settings,
            clock: &self.clock,
            purpose: last.purpose,
            key: &last.key,
        };
        explainer.failure(error)
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

    #[cfg(not(feature = "mock"))]
    #[expect(
        clippy::unused_async,
        reason = "the same signature with and without the mock"
    )]
    async fn start_mock(&self) -> Result<(Url, String)> {
        let problem = "this program was built without the mock server";
        Err(CliError::internal(problem))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
