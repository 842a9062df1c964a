//! What a command works with: a client, its input, and the way out for its results.

use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use petstore_client::{CallOptions, Client};

use crate::env::Env;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Look, Output, OutputFormat, Sink};
use crate::report::Report;
use crate::settings::{GlobalArgs, Target};

/// The most that is read of an input: it becomes the body of one request.
const MOST_INPUT: u64 = 16 * 1024 * 1024;
/// Beyond its waits, a call may take this long.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct Context {
    pub(crate) report: Report,
    pub(crate) now: fn() -> SystemTime,
    args: GlobalArgs,
    /// `Err` is told when a command first needs a service: some do not.
    target: Option<Result<Target, CliError>>,
    stdin: Option<Box<dyn Read + Send>>,
    stdout: Sink,
    look: Look,
    #[cfg(feature = "mock")]
    mock: Option<petstore_mock::MockServer>,
}

/// Returns how messages call an input.
pub(crate) fn input_name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

impl Context {
    pub(crate) fn new(args: GlobalArgs, env: Env) -> Self {
        let target = (!args.wants_mock()).then(|| Target::resolve(&args, &env));
        let (style, look) = (args.style(&env), args.look(&env));
        Self {
            report: Report::new(env.stderr, style),
            now: env.now,
            args,
            target,
            stdin: Some(env.stdin),
            stdout: Sink::new(env.stdout.writer),
            look,
            #[cfg(feature = "mock")]
            mock: None,
        }
    }

    /// Returns a client for the service that the settings name, or for a mock of its own.
    pub(crate) async fn client(&mut self) -> Result<Client, CliError> {
        let target = match self.target.take() {
            Some(target) => target?,
            None => self.start_mock().await?,
        };
        self.report.hide(&target.key);
        let (report, now) = (self.report.clone(), self.now);
        let waits = self.report.clone();
        let max_wait = self.args.max_wait();
        let limits = CallOptions::new().max_wait(max_wait).timeout(max_wait + PATIENCE);
        let client = Client::builder(target.base_url)
            .api_key(target.key)
            .user_agent(concat!("petstore-cli/", env!("CARGO_PKG_VERSION")))
            .defaults(limits)
            .allow_insecure_http(self.args.allow_insecure_http)
            .on_deprecation(move |operation, end| report.deprecated(operation, end, now()))
            .on_wait(move |wait| waits.waits(wait))
            .build()?;
        Ok(client)
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

    /// Reads a whole file, or standard input where it is called `-`.
    ///
    /// On a thread of its own: a terminal or a pipe may keep it waiting, and Ctrl-C must not.
    pub(crate) async fn read(&mut self, file: &Path) -> Result<Vec<u8>, CliError> {
        let name = input_name(file);
        let path = (file != Path::new("-")).then(|| file.to_owned());
        let stdin = self.stdin.take();
        let reading = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let source: Box<dyn Read> = match (path, stdin) {
                (Some(path), _) => Box::new(std::fs::File::open(path)?),
                (None, Some(stdin)) => stdin,
                (None, None) => return Ok(bytes),
            };
            source.take(MOST_INPUT + 1).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        });
        match reading.await {
            Ok(Ok(bytes)) if u64::try_from(bytes.len()).is_ok_and(|size| size > MOST_INPUT) => {
                Err(CliError::usage(format!("{name} is larger than {MOST_INPUT} bytes")))
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
        Ok(Target { base_url, key: KEY.into() })
    }

    #[cfg(not(feature = "mock"))]
    #[expect(clippy::unused_async, reason = "the same signature with and without the mock")]
    async fn start_mock(&mut self) -> Result<Target, CliError> {
        Err(CliError::new(Exit::Internal, "this program was built without the mock server"))
    }
}
