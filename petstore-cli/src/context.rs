//! What a command works with: a client, its input, and the way out for its results.

use std::fs::File;
use std::io::{Read, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use petstore_client::rate_limit::{FileStore, LimitStore as _};
use petstore_client::{Client, RequestOptions, Url};

use crate::env::{Env, Stream};
use crate::error::{CliError, Kind, os_text};
use crate::explain::Facts;
use crate::global::GlobalArgs;
use crate::output::{Output, OutputFormat, OutputOptions, Shape, Stdout};
use crate::settings::credentials::{self, KeySource};
use crate::settings::precedence::Settings;
use crate::settings::{Size, StoreAddress, Text};
use crate::time::Seconds;
use crate::trace::Tracer;
use crate::ui::{Ui, UiOptions};

/// The largest input that becomes the body of one request.
const MAX_BODY: u64 = 16 << 20;

/// How the program names itself to the service.
pub(crate) const USER_AGENT: &str = concat!("petstore/", env!("CARGO_PKG_VERSION"));

/// A store in which processes share rate limits.
enum AnyStore {
    File(FileStore),
    #[cfg(feature = "redis")]
    Redis(petstore_client::rate_limit::RedisStore),
}

/// How messages speak of a command's request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose {
    /// What it creates or asks for.
    pub(crate) noun: &'static str,
    /// Whether it changes something at the service.
    pub(crate) changes: bool,
}

/// A request that only reads.
pub(crate) const READS: Purpose = Purpose { noun: "request", changes: false };

pub(crate) struct Context {
    pub(crate) ui: Ui,
    pub(crate) settings: Settings,
    pub(crate) env: Env,
    pub(crate) args: GlobalArgs,
    pub(crate) options: OutputOptions,
    /// What is known about the requests, for messages.
    pub(crate) facts: Facts,
    tree: fn() -> clap::Command,
    stdout: Stdout,
    deprecated: Arc<AtomicBool>,
    /// The client that was made last.
    client: Option<Client>,
    #[cfg(feature = "mock")]
    mock: Option<petstore_mock::MockServer>,
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
        tree: fn() -> clap::Command,
    ) -> Self {
        let color = settings.get(|values| &values.color).unwrap_or_default();
        let options = args.output_options(&settings, &env, color);
        let ui_options = args.ui_options(&env, color);
        let clock = ui_options.clock.clone();
        let stdout = std::mem::replace(&mut env.stdout.writer, Box::new(std::io::sink()));
        let facts = facts(&settings, clock);
        Self {
            ui: take_ui(&mut env, ui_options),
            settings,
            env,
            args,
            options,
            facts,
            tree,
            stdout: Stdout::new(stdout),
            deprecated: Arc::default(),
            client: None,
            #[cfg(feature = "mock")]
            mock: None,
        }
    }

    /// Takes other settings over, with what messages say of them.
    pub(crate) fn replace_settings(&mut self, settings: Settings) {
        self.facts = facts(&settings, self.facts.clock.clone());
        self.settings = settings;
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.env.now)()
    }

    /// Returns all that can be typed.
    pub(crate) fn tree(&self) -> clap::Command {
        (self.tree)()
    }

    /// Returns a client for the service that the settings name, or for a mock server.
    pub(crate) async fn client(&mut self, purpose: Purpose) -> Result<Client, CliError> {
        self.client_with(purpose, &RequestOptions::new()).await
    }

    /// The same, for requests with other limits.
    pub(crate) async fn client_with(
        &mut self,
        purpose: Purpose,
        options: &RequestOptions,
    ) -> Result<Client, CliError> {
        self.facts.noun = purpose.noun;
        self.facts.changes = purpose.changes;
        if self.args.wants_mock() {
            let (base_url, key) = self.start_mock().await?;
            return self.build_client(&base_url, key, options);
        }
        self.settings.require_profile()?;
        let base_url = self.settings.base_url()?;
        let credential = credentials::require(&self.settings, &self.env)?;
        self.set_key_source(&credential.source);
        self.build_client(&base_url, credential.key, options)
    }

    /// Remembers where the key comes from, for messages.
    pub(crate) fn set_key_source(&mut self, source: &KeySource) {
        self.facts.key_source = source.shown(&self.env);
        self.facts.key_fix = source.fix(&self.settings);
    }

    /// Returns a client for a key.
    pub(crate) fn build_client(
        &mut self,
        base_url: &str,
        key: String,
        options: &RequestOptions,
    ) -> Result<Client, CliError> {
        self.ui.hide(&key);
        self.facts.host = host(base_url);
        self.require_secure(base_url)?;
        let retries = self.settings.get(|values| &values.retries).unwrap_or_default();
        let attempts = retries.saturating_add(1);
        let (timeout, max_wait) = (self.facts.timeout, self.facts.max_wait);
        // What changes something is not sent again after a time-out, and may use all of it.
        let shares = if self.facts.changes { 1 } else { attempts };
        let limits = RequestOptions::new()
            .max_wait(max_wait)
            .max_attempts(attempts)
            .attempt_timeout((timeout / shares).max(Duration::from_millis(1)))
            .timeout(timeout.saturating_add(max_wait).max(Duration::from_millis(1)))
            .max_response_bytes(self.facts.max_response_size.0);
        let deprecated = Arc::clone(&self.deprecated);
        let tracer = Tracer::new(self.ui.clone(), self.facts.host.clone(), attempts, deprecated);
        let mut builder = Client::builder(base_url)
            .api_key(key)
            .user_agent(USER_AGENT)
            .options(&limits)
            .options(options)
            .allow_insecure_http(true)
            .on_event(move |event| tracer.event(event));
        if let Some(Text(path)) = self.settings.get(|values| &values.ca_file)
            && !self.args.wants_mock()
        {
            let authorities = std::fs::read(&path).map_err(|problem| {
                let source = self.settings.source("ca_file");
                let problem = os_text(&problem);
                CliError::new(Kind::Config, format!("cannot read {path}: {problem}{source}"))
            })?;
            builder = builder.root_certificates(authorities);
        }
        // Processes of this machine keep within the limits together.
        builder = match self.limits_store()? {
            Some(AnyStore::File(store)) => builder.shared_limits(store),
            #[cfg(feature = "redis")]
            Some(AnyStore::Redis(store)) => builder.shared_limits(store),
            None => builder,
        };
        let client = builder.build()?;
        self.client = Some(client.clone());
        self.ui.start_status_line();
        Ok(client)
    }

    /// Refuses to send a key unencrypted to another machine.
    fn require_secure(&self, base_url: &str) -> Result<(), CliError> {
        let allowed = self.settings.get(|values| &values.allow_insecure_http);
        let Ok(url) = Url::parse(base_url) else { return Ok(()) };
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        if url.scheme() != "http" || is_local || allowed == Some(true) {
            return Ok(());
        }
        let origin = url.origin().ascii_serialization();
        Err(CliError::new(Kind::Config, format!("{origin} would send the key unencrypted"))
            .hint("use https, or accept the risk with `--allow-insecure-http`"))
    }

    fn limits_store(&self) -> Result<Option<AnyStore>, CliError> {
        if self.args.wants_mock() {
            return Ok(None);
        }
        match self.settings.get(|values| &values.limits_store) {
            Some(StoreAddress::File) => {
                let folder = self.env.dirs.state.as_deref();
                Ok(folder.map(|folder| AnyStore::File(FileStore::new(folder.join("limits")))))
            }
            #[cfg(feature = "redis")]
            Some(StoreAddress::Redis(url)) => {
                let store = petstore_client::rate_limit::RedisStore::new(&url);
                let store = store.map_err(|problem| {
                    let source = self.settings.source("limits_store");
                    let problem =
                        format!("the store of rate limits cannot be used: {problem}{source}");
                    CliError::new(Kind::Config, problem)
                        .hint("give an address such as redis://HOST:6379")
                })?;
                Ok(Some(AnyStore::Redis(store)))
            }
            _ => Ok(None),
        }
    }

    /// Removes what is known about the rate limits of all keys.
    pub(crate) async fn forget_all_limits(&self) -> Result<(), CliError> {
        let forgotten = match self.limits_store()? {
            Some(AnyStore::File(store)) => store.forget(None).await,
            #[cfg(feature = "redis")]
            Some(AnyStore::Redis(store)) => store.forget(None).await,
            None => Ok(()),
        };
        forgotten.map_err(|problem| CliError::new(Kind::Internal, problem.to_string()))
    }

    /// Shares with other processes what this one has learned about the rate limits.
    pub(crate) async fn share_limits(&self) {
        let Some(client) = &self.client else { return };
        // A store that is out of reach is not awaited.
        let shared = client.rate_limits().shared;
        if shared.is_some_and(|shared| shared.members > 0 && shared.problem.is_none()) {
            client.synchronize_rate_limits().await;
        }
    }

    /// Returns whether a deprecated operation was used.
    pub(crate) fn was_deprecated(&self) -> bool {
        self.deprecated.load(Ordering::Relaxed)
    }

    /// Begins a command's result. What is asked of it is checked here, so this comes before
    /// anything is sent.
    pub(crate) fn output(&self, shape: Shape) -> Result<Output, CliError> {
        self.output_with(&self.options, shape)
    }

    /// The same, with other options.
    pub(crate) fn output_with(
        &self,
        options: &OutputOptions,
        shape: Shape,
    ) -> Result<Output, CliError> {
        Output::new(self.stdout.clone(), options, shape)
    }

    /// The same, for a command with another format where none is asked for.
    pub(crate) fn output_or(&self, format: OutputFormat, shape: Shape) -> Result<Output, CliError> {
        let mut options = self.options.clone();
        if options.jq.is_none() {
            options.format = options.format.or(Some(format));
        }
        self.output_with(&options, shape)
    }

    /// Ends a list, and says where a column came too late.
    pub(crate) fn finish(&self, output: Output) -> Result<(), CliError> {
        if let Some(late) = output.finish()? {
            let text = format!("`{late}` appeared after the first page; `-o ndjson` shows it");
            self.ui.note(&text);
        }
        Ok(())
    }

    /// Writes text that is laid out already.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        self.write(text.as_bytes())
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        Ok(self.stdout.write_all(bytes)?)
    }

    /// Returns standard output, for a part of the program with results of its own.
    #[cfg(feature = "mock")]
    pub(crate) fn stdout(&mut self) -> &mut dyn std::io::Write {
        &mut self.stdout
    }

    /// Writes out what is still buffered.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        Ok(self.stdout.flush()?)
    }

    /// Reads a whole file, or standard input where it is called `-`: the body of one request.
    pub(crate) fn read(&mut self, file: &Path, what: &str) -> Result<Vec<u8>, CliError> {
        self.read_up_to(file, what, MAX_BODY)
    }

    /// Reads a file, or standard input where it is called `-`, of a limited size.
    pub(crate) fn read_up_to(
        &mut self,
        file: &Path,
        what: &str,
        max: u64,
    ) -> Result<Vec<u8>, CliError> {
        let name = input_name(file);
        let failed = |problem: std::io::Error| {
            let error =
                CliError::new(Kind::Input, format!("cannot read {name}: {}", os_text(&problem)));
            match (problem.kind(), self.env.var("PWD")) {
                (std::io::ErrorKind::NotFound, Some(folder)) => {
                    let folder = self.env.shown(Path::new(folder));
                    error.hint(format!("check the path; the current folder is {folder}"))
                }
                _ => error,
            }
        };
        let mut bytes = Vec::new();
        if file == Path::new("-") {
            if self.env.stdin_is_terminal {
                self.ui.note_now(&format!("reading {what} from the terminal; end with Ctrl-D"));
            }
            let stdin = &mut self.env.stdin;
            let read = stdin.take(max + 1).read_to_end(&mut bytes);
            read.map_err(|problem| {
                CliError::new(Kind::Input, format!("cannot read {name}: {}", os_text(&problem)))
            })?;
        } else {
            let file = File::open(file).map_err(failed)?;
            file.take(max + 1).read_to_end(&mut bytes).map_err(failed)?;
        }
        if bytes.len() as u64 > max {
            let problem = format!(
                "{name} is larger than {}",
                Size(usize::try_from(max).unwrap_or(usize::MAX))
            );
            return Err(CliError::new(Kind::Input, problem));
        }
        Ok(bytes)
    }

    #[cfg(feature = "mock")]
    async fn start_mock(&mut self) -> Result<(String, String), CliError> {
        const KEY: &str = "mock-key";

        let server = petstore_mock::MockServer::builder()
            .key(KEY, petstore_mock::Plan::Business)
            .start()
            .await
            .map_err(CliError::internal)?;
        let base_url = server.url().to_owned();
        self.mock = Some(server);
        Ok((base_url, KEY.to_owned()))
    }

    #[cfg(not(feature = "mock"))]
    #[expect(clippy::unused_async, reason = "the same signature with and without the mock")]
    async fn start_mock(&mut self) -> Result<(String, String), CliError> {
        Err(CliError::internal("this program was built without the mock server"))
    }
}

/// Takes standard error out of an environment.
pub(crate) fn take_ui(env: &mut Env, options: UiOptions) -> Ui {
    let writer = std::mem::replace(&mut env.stderr.writer, Box::new(std::io::sink()));
    Ui::new(Stream { writer, is_terminal: env.stderr.is_terminal }, options)
}

fn facts(settings: &Settings, clock: crate::time::Clock) -> Facts {
    let length = |seconds: Option<Seconds>| seconds.map(Seconds::length).unwrap_or_default();
    Facts {
        clock,
        host: settings.base_url().map(|url| host(&url)).unwrap_or_default(),
        base_url_source: settings.source("base_url"),
        key_source: String::new(),
        key_fix: String::new(),
        timeout: length(settings.get(|values| &values.timeout)),
        max_wait: length(settings.get(|values| &values.max_wait)),
        max_response_size: settings
            .get(|values| &values.max_response_size)
            .unwrap_or(Size(10 << 20)),
        noun: READS.noun,
        changes: READS.changes,
    }
}

/// Returns host and port of a URL.
fn host(base_url: &str) -> String {
    let url = Url::parse(base_url).ok();
    let authority = url.as_ref().and_then(|url| {
        let host = url.host_str()?;
        Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
    });
    authority.unwrap_or_else(|| base_url.to_owned())
}
