//! `petstore auth …`: the API key.

use std::path::Path;

use petstore_client::{Client, Error as ClientError, RequestOptions};
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::{Context, READS};
use crate::error::{CliError, Kind};
use crate::output::Shape;
use crate::screen::{GREEN, RED};
use crate::settings::config_file::{self, ConfigFile};
use crate::settings::credentials;
use crate::settings::precedence::Source;

/// Store an API key for the service, in a file that only you can read.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// store the key without asking the service
    #[arg(long)]
    no_check: bool,

    /// store the key in the system's keyring instead of a file
    #[cfg(feature = "keyring")]
    #[arg(long)]
    keyring: bool,
}

impl Login {
    #[cfg(feature = "keyring")]
    fn in_keyring(&self) -> bool {
        self.keyring
    }

    #[cfg(not(feature = "keyring"))]
    #[expect(clippy::unused_self, reason = "the same signature with and without the feature")]
    fn in_keyring(&self) -> bool {
        false
    }

    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        if context.args.wants_mock() {
            return Err(CliError::usage("`auth login` does not apply to `--mock`"));
        }
        let base_url = context.settings.base_url()?;
        let profile = context.settings.profile.0.clone();
        let path = credentials::path(&context.env.dirs, &profile)?;
        let key = ask(context).await?;
        context.facts.key_fix = "check it for typing errors and log in again".to_owned();
        // Whether it can be a key at all is found out here.
        let client = context.build_client(&base_url, key.clone(), &RequestOptions::new())?;
        if !self.no_check {
            check(context, &client).await.map_err(|error| match error {
                error if error.is_unauthorized() => refused(context, &error),
                error => not_stored(context, &error),
            })?;
        }
        let in_keyring = self.in_keyring();
        credentials::store(&path, &base_url, &key, in_keyring, &context.env)?;
        store_base_url(context, &profile, &base_url)?;
        let place = match in_keyring {
            true => "the system's keyring".to_owned(),
            false => context.env.shown(&path),
        };
        context.ui.note_now(&match self.no_check {
            true => format!("kept in {place}; not checked"),
            false => format!("accepted by the service; kept in {place}"),
        });
        if context.env.var("PETSTORE_API_KEY").is_some() {
            context.ui.warning("PETSTORE_API_KEY is set, and goes before the stored key", None);
        }
        Ok(())
    }
}

/// Asks the service whether it accepts the key.
async fn check(context: &Context, client: &Client) -> Result<(), ClientError> {
    let max_wait = RequestOptions::new().max_wait(context.facts.max_wait);
    client.pets().list().limit(1).options(&max_wait).send().await.map(drop)
}

fn refused(context: &Context, error: &ClientError) -> CliError {
    let code = error.code().map(|code| format!(" {code}")).unwrap_or_default();
    let message = format!("the service refused this key (401{code}); nothing was kept");
    CliError::new(Kind::Key, message).hint(context.facts.key_fix.clone())
}

fn not_stored(context: &Context, error: &ClientError) -> CliError {
    let mut failure = context.facts.client(error);
    failure.message += "; nothing was kept";
    failure.hint = Some("`petstore auth login --no-check` keeps a key without asking".to_owned());
    CliError::Failure(Box::new(failure))
}

/// Stores a base URL that was typed, where the profile has none: the key is of no use without it.
fn store_base_url(context: &Context, profile: &str, base_url: &str) -> Result<(), CliError> {
    let is_typed = matches!(context.settings.shown("base_url"), Some((_, Source::Flag(_))));
    let own = context.settings.config.profiles.get(profile);
    if !is_typed || own.is_some_and(|values| values.base_url.is_some()) {
        return Ok(());
    }
    ConfigFile::edit(&context.env, |document| {
        config_file::set_value(document, profile, "base_url", base_url);
    })
}

async fn ask(context: &mut Context) -> Result<String, CliError> {
    let typed = match context.env.prompt.take() {
        Some(prompt) => {
            // On another thread, so that Ctrl-C does not wait for an answer.
            let answer = tokio::task::spawn_blocking(move || prompt("API key (not shown): ")).await;
            let answer = answer.map_err(CliError::internal)?;
            answer.map_err(|problem| match problem.kind() {
                // Ctrl-C reaches the prompt as a character, before the signal that it stands for.
                std::io::ErrorKind::Interrupted => CliError::new(Kind::Interrupted, "interrupted"),
                _ => CliError::usage(format!("cannot read a key: {problem}")),
            })?
        }
        None => {
            let bytes = context.read(Path::new("-"), "the key")?;
            String::from_utf8(bytes).map_err(|_| CliError::usage("standard input is not UTF-8"))?
        }
    };
    let key = typed.trim_end_matches(['\r', '\n']);
    if key.is_empty() {
        return Err(CliError::usage("no key was given")
            .hint("type it at the prompt, or send it: `petstore auth login < FILE`"));
    }
    Ok(key.to_owned())
}

/// Show which key is used, and whether the service accepts it.
#[derive(Debug, clap::Args)]
pub(crate) struct Status {}

const STATUS: Shape =
    Shape { noun: "the result", fields: &["profile", "baseUrl", "source", "accepted", "problem"] };

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyStatus {
    profile: String,
    base_url: String,
    source: Option<String>,
    /// Nothing where the service could not be asked.
    accepted: Value,
    problem: Option<String>,
}

impl Status {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(STATUS)?;
        let base_url = match context.args.wants_mock() {
            true => "a built-in mock server".to_owned(),
            false => context.settings.base_url()?,
        };
        let mut status = KeyStatus {
            profile: context.settings.profile.0.clone(),
            base_url,
            source: None,
            accepted: Value::Null,
            problem: None,
        };
        let asked = match context.client(READS).await {
            Ok(client) => check(context, &client).await.map_err(CliError::from),
            Err(error) => Err(error),
        };
        if !context.facts.key_source.is_empty() {
            status.source = Some(context.facts.key_source.clone());
        }
        let failure = match asked {
            Ok(()) => None,
            Err(error) => Some(context.facts.explain(error).map_err(CliError::Silent)?),
        };
        let kind = failure.as_ref().map(|failure| failure.kind);
        status.accepted = match kind {
            None => true.into(),
            Some(Kind::Key) => false.into(),
            Some(_) => Value::Null,
        };
        status.problem = failure.as_ref().map(|failure| failure.message.clone());
        if context.options.is_table() {
            let screen = context.options.screen.clone();
            let text = match (&status.accepted, &status.problem) {
                (Value::Bool(true), _) => {
                    screen.paint(GREEN, screen.symbol("✓")) + " accepted by the service"
                }
                (Value::Bool(false), Some(problem)) => {
                    format!("{} {problem}", screen.paint(RED, screen.symbol("✗")))
                }
                (_, problem) => {
                    let problem = problem.as_deref().unwrap_or_default();
                    format!("{} not checked: {problem}", screen.symbol("–"))
                }
            };
            let none = || screen.symbol("–").to_owned();
            context.print(&screen.pairs(&[
                ("profile", status.profile),
                ("service", status.base_url),
                ("key", status.source.unwrap_or_else(none)),
                ("status", text),
            ]))?;
        } else {
            output.document(&json!(status))?;
        }
        let Some(failure) = failure else { return Ok(()) };
        context.flush()?;
        if let Some(hint) = &failure.hint {
            context.ui.hint(hint);
        }
        Err(CliError::Silent(failure.kind.code()))
    }
}

/// Remove the stored API key of the profile.
#[derive(Debug, clap::Args)]
pub(crate) struct Logout {}

impl Logout {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let profile = &context.settings.profile.0;
        let path = credentials::path(&context.env.dirs, profile)?;
        let removed = credentials::remove(&path, &context.env)?;
        context.ui.note(&match removed {
            true => format!("removed {}", context.env.shown(&path)),
            false => format!("profile {profile} has no stored key"),
        });
        for name in ["PETSTORE_API_KEY", "PETSTORE_API_KEY_FILE"] {
            if context.env.var(name).is_some() {
                context.ui.warning(&format!("{name} is still set"), None);
            }
        }
        Ok(())
    }
}
