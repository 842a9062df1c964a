//! What a command works with: a client, its input, and the way out for its results.

use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use petstore_client::events::Event;
use petstore_client::rate_limit::LimitStore as _;
use petstore_client::{Client, RequestOptions};

use crate::config::Setting;
use crate::env::{Env, Stream};
use crate::error::CliError;
use crate::exit::Exit;
use crate::flags::GlobalArgs;
use crate::keys;
use crate::output::{Look, Output, OutputFormat, Sink};
use crate::report::Report;
use crate::settings::{AnyStore, Settings};
use crate::state::State;

/// The most that is read of an input: it becomes the body of one request.
const MOST_INPUT: u64 = 16 * 1024 * 1024;
/// Beyond its waits, a call may take this long.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct Context {
    pub(crate) report: Report,
    pub(crate) settings: Settings,
    pub(crate) env: Env,
    pub(crate) args: GlobalArgs,
    commands: fn(Option<u16>) -> clap::Command,
    stdout: Sink,
    look: Look,
    /// The client that was made last.
    client: Option<Client>,
    #[cfg(feature = "mock")]
    mock: Option<petstore_mock::MockServer>,
}

/// A service to talk to.
struct Target {
    base_url: String,
    key: String,
}

/// Returns how messages call an input.
pub(crate) fn input_name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

impl Context {
    pub(crate) fn new(
        args: GlobalArgs,
        settings: Settings,
        mut env: Env,
        commands: fn(Option<u16>) -> clap::Command,
    ) -> Self {
        let (style, look) = (settings.style(&args, &env), settings.look(&args, &env));
        let stdout = std::mem::replace(&mut env.stdout.writer, Box::new(std::io::sink()));
        let stderr = std::mem::replace(&mut env.stderr.writer, Box::new(std::io::sink()));
        let stderr = Stream { writer: stderr, is_terminal: env.stderr.is_terminal };
        Self {
            report: Report::new(stderr, style),
            settings,
            env,
            args,
            commands,
            stdout: Sink::new(stdout),
            look,
            client: None,
            #[cfg(feature = "mock")]
            mock: None,
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.env.now)()
    }

    /// Returns whether the command runs against a mock of its own.
    pub(crate) fn wants_mock(&self) -> bool {
        self.args.wants_mock()
    }

    /// Returns all that can be typed.
    pub(crate) fn tree(&self) -> clap::Command {
        (self.commands)(self.env.width)
    }

    /// Returns a client for the service that the settings name, or for a mock of its own.
    pub(crate) async fn client(&mut self) -> Result<Client, CliError> {
        self.client_set_to(&RequestOptions::new()).await
    }

    /// The same, for calls with other limits.
    pub(crate) async fn client_set_to(
        &mut self,
        options: &RequestOptions,
    ) -> Result<Client, CliError> {
        let target = if self.wants_mock() {
            self.start_mock().await?
        } else {
            self.settings.check_profile()?;
            let base_url = self.settings.base_url()?.to_owned();
            let key = keys::need(&self.settings, &self.env)?;
            let target = Target { base_url, key: key.text };
            let origin = self.settings.get(Setting::BaseUrl).map(|(_, origin)| origin.to_string());
            let origin = origin.unwrap_or_default();
            let from = format!("the base URL is from {origin}, and the key from {}", key.source);
            return self.client_of(target, options).map_err(|error| error.hint(from));
        };
        self.client_of(target, options)
    }

    /// The same, with a key that is not kept yet.
    pub(crate) fn client_with(&mut self, key: &str) -> Result<Client, CliError> {
        let base_url = self.settings.base_url()?.to_owned();
        self.client_of(Target { base_url, key: key.to_owned() }, &RequestOptions::new())
    }

    fn client_of(&mut self, target: Target, options: &RequestOptions) -> Result<Client, CliError> {
        // Where there is one already, that serves as well.
        #[cfg(feature = "rustls")]
        let _ = rustls::crypto::ring::default_provider().install_default();
        self.report.hide(&target.key);
        let (report, now) = (self.report.clone(), self.env.now);
        let remembers = !self.wants_mock() && !self.args.deny_deprecated;
        let state = if remembers { State::new(&self.env.dirs) } else { State::default() };
        let max_wait = self.settings.max_wait();
        let limits = RequestOptions::new().max_wait(max_wait).timeout(max_wait + PATIENCE);
        let mut builder = Client::builder(target.base_url)
            .api_key(target.key)
            .user_agent(concat!("petstore-cli/", env!("CARGO_PKG_VERSION")))
            .options(&limits)
            .options(options)
            .allow_insecure_http(self.settings.allow_insecure_http())
            .on_event(move |event| match event {
                Event::Finished(finished) => report.finished(finished),
                Event::Waiting(wait) => report.waits(wait),
                Event::Retrying(retry) => report.retries(retry),
                Event::Deprecated { operation, deprecation } => {
                    let first = state.first_today(&format!("deprecated-{operation}"), now());
                    report.deprecated(operation, deprecation, now(), first);
                }
                Event::SharedStore(store) => report.store(store),
                _ => {}
            });
        if !self.wants_mock()
            && let Some(authorities) = self.settings.authorities()?
        {
            builder = builder.root_certificates(authorities);
        }
        // One run after another, and several at once, keep within the limits together.
        builder = match self.limits_store()? {
            Some(AnyStore::File(store)) => builder.shared_limits(store),
            #[cfg(feature = "redis")]
            Some(AnyStore::Redis(store)) => builder.shared_limits(store),
            None => builder,
        };
        let client = builder.build()?;
        self.client = Some(client.clone());
        Ok(client)
    }

    fn limits_store(&self) -> Result<Option<AnyStore>, CliError> {
        if self.wants_mock() {
            return Ok(None);
        }
        self.settings.limits_store(self.env.dirs.state.as_deref())
    }

    /// Removes what is known of the rate limits of all keys.
    pub(crate) async fn forget_all_limits(&self) -> Result<(), CliError> {
        let forgotten = match self.limits_store()? {
            Some(AnyStore::File(store)) => store.forget(None).await,
            #[cfg(feature = "redis")]
            Some(AnyStore::Redis(store)) => store.forget(None).await,
            None => Ok(()),
        };
        forgotten.map_err(|problem| CliError::new(Exit::Internal, problem))
    }

    /// Tells other processes what this one has learned of the rate limits.
    pub(crate) async fn share_limits(&self) {
        let Some(client) = &self.client else { return };
        // One that is out of reach is not waited for.
        let shared = client.rate_limits().shared;
        if shared.is_some_and(|shared| shared.members > 0 && shared.problem.is_none()) {
            client.synchronize_rate_limits().await;
        }
    }

    /// Begins a command's result, whose records have the given fields, or any. What is asked of
    /// it is checked here, so this comes before anything is sent.
    pub(crate) fn output(&self, known: Option<&[&str]>) -> Result<Output, CliError> {
        Output::new(self.stdout.clone(), &self.look, known)
    }

    /// The same, for a command with a format of its own where none is asked for.
    pub(crate) fn output_or(
        &self,
        format: OutputFormat,
        known: Option<&[&str]>,
    ) -> Result<Output, CliError> {
        let format = self.look.format.or(Some(format));
        Output::new(self.stdout.clone(), &Look { format, ..self.look.clone() }, known)
    }

    /// Returns standard output, for a result that is no record.
    pub(crate) fn stdout(&mut self) -> &mut dyn Write {
        &mut self.stdout
    }

    /// Returns what results are to look like.
    pub(crate) fn look(&self) -> &Look {
        &self.look
    }

    /// Writes out what is still buffered: a result is only done when it has arrived.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        Ok(self.stdout.flush()?)
    }

    /// Reads a whole file, or standard input where it is called `-`: what becomes the body of one
    /// request.
    pub(crate) async fn read(&mut self, file: &Path) -> Result<Vec<u8>, CliError> {
        self.read_up_to(file, MOST_INPUT).await
    }

    /// Reads a file, or standard input where it is called `-`, that may have `most` bytes.
    ///
    /// On a thread of its own: a terminal or a pipe may keep it waiting, and Ctrl-C must not.
    pub(crate) async fn read_up_to(&mut self, file: &Path, most: u64) -> Result<Vec<u8>, CliError> {
        let name = input_name(file);
        let path = (file != Path::new("-")).then(|| file.to_owned());
        let stdin = std::mem::replace(&mut self.env.stdin, Box::new(std::io::empty()));
        let reading = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let source: Box<dyn Read> = match path {
                Some(path) => Box::new(std::fs::File::open(path)?),
                None => stdin,
            };
            source.take(most + 1).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        });
        match reading.await {
            Ok(Ok(bytes)) if u64::try_from(bytes.len()).is_ok_and(|size| size > most) => {
                Err(CliError::usage(format!("{name} is larger than {most} bytes")))
            }
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(problem)) => Err(CliError::usage(format!("could not read {name}: {problem}"))),
            Err(problem) => Err(CliError::new(Exit::Internal, problem)),
        }
    }

    #[cfg(feature = "mock")]
    async fn start_mock(&mut self) -> Result<Target, CliError> {
        const KEY: &str = "mock-key";

        let server = petstore_mock::MockServer::builder()
            .key(KEY, petstore_mock::Plan::Business)
            .start()
            .await
            .map_err(|problem| CliError::new(Exit::Internal, problem))?;
        let base_url = server.url().to_owned();
        self.mock = Some(server);
        Ok(Target { base_url, key: KEY.to_owned() })
    }

    #[cfg(not(feature = "mock"))]
    #[expect(clippy::unused_async, reason = "the same signature with and without the mock")]
    async fn start_mock(&mut self) -> Result<Target, CliError> {
        Err(CliError::new(Exit::Internal, "this program was built without the mock server"))
    }
}
