//! The context of a command: its client, its input and its output.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write, empty};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(feature = "redis")]
use petstore_client::rate_limit::RedisStore;
use petstore_client::rate_limit::{FileStore, LimitStore as _, StoreError};
use petstore_client::{Client, RequestOptions, Url};

use crate::env::{Env, Stream};
use crate::error::{CliError, ErrorFormat, Kind};
use crate::explain::Facts;
use crate::global::GlobalArgs;
use crate::output::{Output, OutputFormat, OutputOptions, Shape, Stdout};
use crate::screen::{Color, Screen};
use crate::settings::credentials;
use crate::settings::precedence::Settings;
use crate::settings::{Choice, Size, StoreAddress};
use crate::status::Activity;
use crate::time::Clock;
use crate::trace::Tracer;
use crate::ui::{Ui, UiOptions};

pub(crate) use crate::explain::Purpose;

/// The maximum size of a request's body.
pub(crate) const MAX_BODY: u64 = 16 << 20;

/// Ctrl-C also ends the program that writes into a pipe, so its signal may arrive after the end of
/// the input. Such an input may be incomplete.
const SIGNAL_DELAY: Duration = Duration::from_millis(20);

/// The program's name in `User-Agent`.
pub(crate) const USER_AGENT: &str = concat!("petstore/", env!("CARGO_PKG_VERSION"));

pub(crate) struct Context {
    pub(crate) ui: Ui,
    pub(crate) settings: Settings,
    pub(crate) env: Env,
    pub(crate) args: GlobalArgs,
    pub(crate) options: OutputOptions,
    /// Facts about the requests, for messages.
    pub(crate) facts: Facts,
    pub(crate) stdout: Stdout,
    uses_deprecated: Arc<AtomicBool>,
    /// The last created client.
    client: Option<Client>,
    #[cfg(feature = "mock")]
    mock: Option<petstore_mock::MockServer>,
}

/// Returns the name of an input in messages.
pub(crate) fn input_name(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

impl Context {
    pub(crate) fn new(args: GlobalArgs, mut env: Env) -> Self {
        let profile = args.profile.as_ref();
        let settings = Settings::resolve(profile, &args.values, &env, !args.wants_mock());
        let color = settings.get(|values| &values.color);
        let color = color.map_or(Color::Auto, |Choice(color)| color);
        let error_format = settings.get(|values| &values.error_format);
        let is_terminal = env.stderr.is_terminal;
        let clock = Clock {
            now: env.now,
            zone: is_terminal.then(|| env.time_zone()),
        };
        let key = env.var("PETSTORE_API_KEY").unwrap_or_default();
        let variables = env.vars.iter().filter_map(|(name, value)| {
            let value = value
                .to_str()
                .filter(|value| key.is_empty() || !value.contains(key))?;
            Some((name.clone(), value.to_owned()))
        });
        let options = OutputOptions {
            format: settings
                .chosen(|values| &values.output)
                .map(|Choice(format)| format),
            fields: args.fields.clone(),
            jq: args.jq.clone(),
            variables: variables.collect(),
            screen: Screen::new(&env, color, env.stdout.is_terminal),
        };
        let ui_options = UiOptions {
            format: error_format.map_or(ErrorFormat::Text, |Choice(format)| format),
            quiet: args.quiet > 0,
            verbose: args.verbose,
            screen: Screen::new(&env, color, is_terminal),
            clock: clock.clone(),
        };
        let mut take = |stream: fn(&mut Env) -> &mut Stream| {
            std::mem::replace(&mut stream(&mut env).writer, Box::new(std::io::sink()))
        };
        let (stdout, stderr) = (take(|env| &mut env.stdout), take(|env| &mut env.stderr));
        Self {
            ui: Ui::new(stderr, ui_options),
            facts: Facts::new(&settings, clock),
            settings,
            env,
            args,
            options,
            stdout: Stdout::new(stdout),
            uses_deprecated: Arc::default(),
            client: None,
            #[cfg(feature = "mock")]
            mock: None,
        }
    }

    /// Ends the program: flushes the result, prints the error and returns the exit code.
    pub(crate) async fn end(mut self, result: Result<(), CliError>) -> u8 {
        // The error comes after the result.
        let flushed = self.stdout.flush().map_err(CliError::from);
        let result = result.and(flushed).and_then(|()| {
            let is_refused =
                self.args.deny_deprecated && self.uses_deprecated.load(Ordering::Relaxed);
            match is_refused {
                true => Err(CliError::new(
                    Kind::Partial,
                    "a deprecated operation was used",
                )),
                false => Ok(()),
            }
        });
        self.share_limits().await;
        let code = match result.map_err(|error| self.facts.explain(error)) {
            Err(Ok(failure)) => {
                self.ui.error(&failure);
                return failure.kind.code();
            }
            Err(Err(code)) => code,
            Ok(()) => 0,
        };
        self.ui.finish();
        code
    }

    /// Refuses a command that changes settings or keys, which `--mock` does not use.
    pub(crate) fn refuse_mock(&self, command: &str) -> Result<(), CliError> {
        match self.args.wants_mock() {
            true => Err(CliError::usage(format!(
                "`{command}` does not apply to `--mock`"
            ))),
            false => Ok(()),
        }
    }

    /// Returns a client for the service that the settings name, or for a mock server.
    pub(crate) async fn client(&mut self, purpose: Purpose) -> Result<Client, CliError> {
        self.facts.purpose = purpose;
        if self.args.wants_mock() {
            let (base_url, key) = self.start_mock().await?;
            return self.build_client(&base_url, key);
        }
        self.settings.require_profile()?;
        let base_url = self.settings.base_url()?;
        let credential = credentials::require(&self.settings, &self.env)?;
        (self.facts.key_source, self.facts.key_fix) = (credential.source, credential.fix);
        self.build_client(&base_url, credential.key)
    }

    /// Returns a client for a key.
    pub(crate) fn build_client(&mut self, base_url: &Url, key: String) -> Result<Client, CliError> {
        const MIN_TIMEOUT: Duration = Duration::from_millis(1);

        self.ui.hide(&key);
        self.facts.set_host(base_url, &self.env);
        let retries = self
            .settings
            .get(|values| &values.retries)
            .unwrap_or_default();
        let attempts = retries.saturating_add(1);
        let (timeout, max_wait) = (self.facts.timeout, self.facts.max_wait);
        // A request that changes something is not retried after a time-out, so one attempt may take
        // all the time.
        let shares = if self.facts.purpose == Purpose::Read {
            attempts
        } else {
            1
        };
        let limits = RequestOptions::new()
            .max_wait(max_wait)
            .max_attempts(attempts)
            .attempt_timeout((timeout / shares).max(MIN_TIMEOUT))
            .timeout(timeout.saturating_add(max_wait))
            .max_response_bytes(self.facts.max_response_size.0);
        let deprecated = Arc::clone(&self.uses_deprecated);
        let (ui, host) = (self.ui.clone(), self.facts.host.clone());
        let tracer = Tracer {
            ui,
            host,
            attempts,
            deprecated,
        };
        // `Settings::base_url` has refused insecure URLs.
        let mut builder = Client::builder(base_url.as_str())
            .api_key(key)
            .user_agent(USER_AGENT)
            .options(&limits)
            .allow_insecure_http(true)
            .on_event(move |event| tracer.event(event));
        if !self.args.wants_mock() {
            if let Some(path) = self.settings.get(|values| &values.ca_file) {
                let authorities = std::fs::read(self.env.path(&path)).map_err(|problem| {
                    let action = format!("cannot read {path}{}", self.settings.source("ca_file"));
                    CliError::io(Kind::Config, action, &problem)
                })?;
                builder = builder.root_certificates(authorities);
            }
            if let Some(store) = self.file_store() {
                builder = builder.shared_limits(store);
            }
            #[cfg(feature = "redis")]
            if let Some(store) = self.redis_store()? {
                builder = builder.shared_limits(store);
            }
        }
        let client = builder.build()?;
        self.client = Some(client.clone());
        Ok(client)
    }

    fn file_store(&self) -> Option<FileStore> {
        match self.settings.get(|values| &values.limits_store)? {
            StoreAddress::File => {
                Some(FileStore::new(self.env.dirs.state.as_ref()?.join("limits")))
            }
            _ => None,
        }
    }

    #[cfg(feature = "redis")]
    fn redis_store(&self) -> Result<Option<RedisStore>, CliError> {
        let address = self.settings.get(|values| &values.limits_store);
        let Some(StoreAddress::Redis(url)) = address else {
            return Ok(None);
        };
        RedisStore::new(&url).map(Some).map_err(|problem| {
            let source = self.settings.source("limits_store");
            CliError::new(
                Kind::Config,
                format!("the limits store is invalid: {problem}{source}"),
            )
            .hint("give an address such as redis://HOST:6379")
        })
    }

    /// Removes the stored rate limits of all keys.
    pub(crate) async fn forget_all_limits(&self) -> Result<(), CliError> {
        let failed = |problem: StoreError| CliError::new(Kind::Internal, problem.to_string());
        if let Some(store) = self.file_store() {
            store.forget(None).await.map_err(failed)?;
        }
        #[cfg(feature = "redis")]
        if let Some(store) = self.redis_store()? {
            store.forget(None).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Shares the latest rate limits with other processes.
    async fn share_limits(&self) {
        let Some(client) = &self.client else { return };
        // An unreachable store is not awaited.
        let shared = client.rate_limits().shared;
        if shared.is_some_and(|shared| shared.members > 0 && shared.problem.is_none()) {
            client.synchronize_rate_limits().await;
        }
    }

    /// Starts a command's result. Call it before sending anything, because it checks `--jq`.
    pub(crate) fn output(&self, shape: Shape) -> Result<Output, CliError> {
        Output::new(self.stdout.clone(), &self.options, shape)
    }

    /// Like `output`, with another default format.
    pub(crate) fn output_or(&self, format: OutputFormat, shape: Shape) -> Result<Output, CliError> {
        let mut options = self.options.clone();
        if options.jq.is_none() {
            options.format = options.format.or(Some(format));
        }
        Output::new(self.stdout.clone(), &options, shape)
    }

    /// Ends a list, and reports a column that appeared too late.
    pub(crate) fn finish(&self, output: Output) -> Result<(), CliError> {
        if let Some(late) = output.finish()? {
            let text =
                format!("field `{late}` appeared after the first page; `-o ndjson` shows it");
            self.ui.note(&text);
        }
        Ok(())
    }

    /// Writes formatted text.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), CliError> {
        Ok(self.stdout.write_all(text.as_bytes())?)
    }

    /// Writes help, folded to the width of the terminal.
    pub(crate) fn print_help(&mut self, text: &str) -> Result<(), CliError> {
        let text = self.options.screen.fold(text);
        self.print(&format!("{}\n", text.trim_end()))
    }

    /// Reads a file of limited size, or standard input if it is `-`.
    pub(crate) async fn read(
        &mut self,
        file: &Path,
        what: &str,
        max: u64,
    ) -> Result<Vec<u8>, CliError> {
        let (name, path) = (input_name(file), file.to_owned());
        let is_stdin = file == Path::new("-");
        let stdin = is_stdin.then(|| std::mem::replace(&mut self.env.stdin, Box::new(empty())));
        if is_stdin && self.env.stdin_is_terminal {
            self.ui.note_now(&format!(
                "reading {what} from the terminal; end with Ctrl-D"
            ));
        } else {
            let (text, short) = (format!("reading {name}"), String::new());
            self.ui.set_activity(Some(Activity {
                text,
                short,
                end: None,
            }));
        }
        // On another thread, so that the status line shows a slow input.
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let input = match stdin {
                Some(stdin) => stdin,
                None => Box::new(File::open(path)?),
            };
            input.take(max + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        let read = read.await.map_err(CliError::internal)?;
        if !file.is_file() {
            tokio::time::sleep(SIGNAL_DELAY).await;
        }
        self.ui.set_activity(None);
        let bytes = read.map_err(|problem: io::Error| {
            let folder = self
                .env
                .var("PWD")
                .filter(|_| problem.kind() == ErrorKind::NotFound);
            let folder = folder.map(|folder| self.env.shown(Path::new(folder)));
            let hint =
                folder.map(|folder| format!("check the path; the current folder is {folder}"));
            CliError::io(Kind::Input, format!("cannot read {name}"), &problem).hint_if(hint)
        })?;
        if bytes.len() as u64 > max {
            let size = Size(usize::try_from(max).unwrap_or(usize::MAX));
            return Err(CliError::new(
                Kind::Input,
                format!("{name} is larger than {size}"),
            ));
        }
        Ok(bytes)
    }

    #[cfg(feature = "mock")]
    async fn start_mock(&mut self) -> Result<(Url, String), CliError> {
        const KEY: &str = "mock-key";

        let builder = petstore_mock::MockServer::builder();
        let builder = builder.key(KEY, petstore_mock::Plan::Business);
        let server = builder.start().await.map_err(CliError::internal)?;
        let base_url = Url::parse(server.url()).map_err(CliError::internal)?;
        self.mock = Some(server);
        Ok((base_url, KEY.to_owned()))
    }

    #[cfg(not(feature = "mock"))]
    #[expect(
        clippy::unused_async,
        reason = "the same signature with and without the mock"
    )]
    async fn start_mock(&mut self) -> Result<(Url, String), CliError> {
        Err(CliError::internal(
            "this program was built without the mock server",
        ))
    }
}
