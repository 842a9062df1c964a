//! Tests of the decisions that a run takes before and after its command.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use clap::{Args as _, Command, FromArgMatches as _};
use futures_util::StreamExt as _;
use petstore_mock::{MockServer, Plan};

use super::*;
use crate::env::{Dirs, Signal, Stream};
use crate::session::Purpose;
use crate::settings::credentials::KeySource;

/// A stream that can be read.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A disk without space.
struct Full;

impl io::Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a run starts with.
#[derive(Default)]
struct Start<'a> {
    options: &'a [&'a str],
    vars: &'a [(&'a str, &'a str)],
    config: Option<&'a Path>,
    is_full: bool,
}

impl Start<'_> {
    /// Returns the parts of the run, and its standard error.
    fn context(&self) -> (Context, Sink) {
        let command = GlobalArgs::augment_args(Command::new("petstore"));
        let words = ["petstore"].iter().chain(self.options);
        let matches = command.get_matches_from(words);
        let global = GlobalArgs::from_arg_matches(&matches).unwrap();
        let vars: HashMap<_, _> = self
            .vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.into()))
            .collect();
        let stderr = Sink::default();
        let stdout: Box<dyn io::Write + Send> = if self.is_full {
            Box::new(Full)
        } else {
            Box::new(io::sink())
        };
        let env = Env {
            args: vec!["petstore".into()],
            vars,
            stdin: Box::new(io::empty()),
            stdin_is_terminal: false,
            stdout: Stream {
                writer: stdout,
                is_terminal: false,
            },
            stderr: Stream {
                writer: Box::new(stderr.clone()),
                is_terminal: false,
            },
            prompt: None,
            dirs: Dirs {
                config: self.config.map(Path::to_owned),
                ..Dirs::default()
            },
            now: || SystemTime::UNIX_EPOCH,
            width: None,
            signals: Box::pin(futures_util::stream::iter([Signal::Interrupt])),
        };
        (Context::new(&global, env), stderr)
    }
}

/// Variables that name a service and a key.
const SERVICE: [(&str, &str); 2] = [
    ("PETSTORE_BASE_URL", "http://127.0.0.1:1/v1"),
    ("PETSTORE_API_KEY", "sentinel"),
];

/// A configuration folder whose file cannot be read, because it is a folder.
fn unreadable() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("config.toml")).unwrap();
    folder
}

#[test]
fn complete_settings_are_no_problem() {
    let (mut context, stderr) = Start::default().context();
    assert!(context.require_settings().is_ok());
    assert!(context.take_problem().is_none());
    assert_eq!(stderr.text(), "");
}

#[test]
fn an_unreadable_file_is_a_warning_if_nothing_in_it_is_needed() {
    let folder = unreadable();
    let required = |options: &[&str], vars: &[(&str, &str)]| {
        let start = Start {
            options,
            vars,
            config: Some(folder.path()),
            ..Start::default()
        };
        let (mut context, stderr) = start.context();
        (context.require_settings().is_ok(), stderr.text())
    };
    let (is_ok, said) = required(&[], &SERVICE);
    assert!(is_ok);
    assert!(said.contains("warning: cannot read"), "{said}");
    assert!(said.contains("; flags and variables apply"), "{said}");
    let key_file = ("PETSTORE_API_KEY_FILE", "key");
    assert!(required(&[], &[SERVICE[0], key_file]).0);
    // Without the base URL, without the key, or with a profile, the file is needed.
    let nothing_said = (false, String::new());
    assert_eq!(required(&[], &SERVICE[1..]), nothing_said);
    assert_eq!(required(&[], &SERVICE[..1]), nothing_said);
    assert_eq!(required(&["--profile", "a"], &SERVICE), nothing_said);
}

#[test]
fn an_invalid_setting_fails_even_if_it_is_not_needed() {
    let invalid = [SERVICE[0], SERVICE[1], ("PETSTORE_RETRIES", "x")];
    let start = Start {
        vars: &invalid,
        ..Start::default()
    };
    assert!(start.context().0.require_settings().is_err());
    let (mut context, _) = start.context();
    assert!(context.take_problem().is_some());
    assert!(context.take_problem().is_none(), "only once");
    assert!(context.require_settings().is_ok(), "it was taken");
}

#[tokio::test]
async fn signals_are_taken_once() {
    let (mut context, _) = Start::default().context();
    assert_eq!(context.take_signals().next().await, Some(Signal::Interrupt));
    let next = futures_util::future::FutureExt::now_or_never(context.take_signals().next());
    assert_eq!(next, None, "it never ends");
}

async fn ended(start: Start<'_>, result: Result<()>) -> (u8, String) {
    let (context, stderr) = start.context();
    let code = context.end(result).await;
    (code, stderr.text())
}

#[tokio::test]
async fn a_run_ends_with_the_code_of_its_first_error() {
    assert_eq!(ended(Start::default(), Ok(())).await, (0, String::new()));
    let silent = Err(CliError::Silent(8));
    assert_eq!(ended(Start::default(), silent).await, (8, String::new()));
    let usage = || Err(CliError::usage("wrong").hint("right"));
    let said = "error: wrong\nhint: right\n".to_owned();
    assert_eq!(ended(Start::default(), usage()).await, (2, said));
}

#[tokio::test]
async fn a_result_that_cannot_be_written_is_the_last_error() {
    let (context, stderr) = Start {
        is_full: true,
        ..Start::default()
    }
    .context();
    // A short text stays in the buffer until the end.
    context.printer().print("a result\n").unwrap();
    assert_eq!(context.end(Ok(())).await, 1);
    let said = stderr.text();
    assert!(
        said.starts_with("error: cannot write the result: no space left"),
        "{said}"
    );
    let (context, stderr) = Start {
        is_full: true,
        ..Start::default()
    }
    .context();
    context.printer().print("a result\n").unwrap();
    assert_eq!(context.end(Err(CliError::usage("wrong"))).await, 2);
    assert_eq!(stderr.text(), "error: wrong\n");
}

/// Gets a pet, which is deprecated, and ends.
async fn end_after_deprecated(options: &[&str], result: Result<()>) -> (u8, String) {
    crate::install_crypto_provider();
    let builder = MockServer::builder().key("k", Plan::Free);
    let server = builder.start().await.unwrap();
    let (context, stderr) = Start {
        options,
        vars: &[("PETSTORE_LIMITS_STORE", "off")],
        ..Start::default()
    }
    .context();
    let url = server.url().parse().unwrap();
    let purpose = Purpose::GetPet(1);
    let key = ("k".to_owned(), KeySource::Typed);
    let client = context
        .connector()
        .connect_with(purpose, &url, key.0, key.1);
    #[expect(deprecated, reason = "its use is what is tested")]
    let pet = client.unwrap().pets().get(1).await;
    assert!(pet.is_ok());
    (context.end(result).await, stderr.text())
}

#[tokio::test]
async fn a_deprecated_operation_fails_the_run_only_where_asked() {
    let (code, said) = end_after_deprecated(&[], Ok(())).await;
    assert_eq!(code, 0, "{said}");
    let (code, said) = end_after_deprecated(&["--deny-deprecated"], Ok(())).await;
    assert_eq!(code, 8);
    assert!(
        said.contains("error: a deprecated operation was used"),
        "{said}"
    );
    let other = Err(CliError::usage("wrong"));
    let (code, _) = end_after_deprecated(&["--deny-deprecated"], other).await;
    assert_eq!(code, 2, "the error of the command comes first");
    let unused = Start {
        options: &["--deny-deprecated"],
        ..Start::default()
    };
    assert_eq!(ended(unused, Ok(())).await.0, 0);
}

#[test]
fn no_secret_is_shown_and_none_reaches_an_expression() {
    let vars = [
        ("PETSTORE_API_KEY", "sentinel"),
        ("PROXY", "http://me:passw0rd@proxy.example"),
        ("COPY", "the key is sentinel"),
        ("PLAIN", "value"),
    ];
    let (context, stderr) = Start {
        vars: &vars,
        ..Start::default()
    }
    .context();
    context.ui().note("sentinel passw0rd value");
    assert_eq!(stderr.text(), "note: [hidden] [hidden] value\n");
    let shown = shown_variables(context.system());
    assert_eq!(shown, [("PLAIN".to_owned(), "value".to_owned())]);
    let args = ["--base-url".into(), "http://me:another1@host".into()];
    let found = secrets_of(&args, context.system());
    for secret in ["sentinel", "passw0rd", "another1"] {
        assert!(found.iter().any(|found| found == secret), "{secret}");
    }
}
