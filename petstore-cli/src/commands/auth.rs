//! `petstore auth …`: the API key.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::Path;

use petstore_client::{Client, Error as ClientError, Url};
use serde_json::json;

use crate::context::{Context, MAX_BODY, Purpose};
use crate::env::Signal;
use crate::error::{CliError, Kind};
use crate::files;
use crate::output::{ANY, Shape};
use crate::screen::{GREEN, RED};
use crate::settings::config_file::{self, ConfigFile};
use crate::settings::credentials;

/// Store an API key for the service, in a file that only you can read.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// store the key without checking it with the service
    #[arg(long)]
    no_check: bool,
}

impl Login {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        context.refuse_mock("auth login")?;
        ask_base_url(context)?;
        let base_url = context.settings.base_url()?;
        let path = credentials::path(&context.env.dirs, &context.settings.profile)?;
        let key = ask_key(context).await?;
        // This checks that the key is valid in a header.
        let client = context.build_client(&base_url, key.clone())?;
        if !self.no_check {
            check(&client)
                .await
                .map_err(|error| not_stored(context, &error))?;
        }
        credentials::store(&path, &base_url, &key, &context.env)?;
        store_base_url(context, &base_url).await?;
        let place = context.env.shown(&path);
        context.ui.note_now(&match self.no_check {
            true => format!("stored in {place}; not checked"),
            false => format!("accepted by the service; stored in {place}"),
        });
        if context.env.var("PETSTORE_API_KEY").is_some() {
            context
                .ui
                .warning("PETSTORE_API_KEY is set and overrides the stored key", None);
        }
        Ok(())
    }
}

/// Asks the user for the base URL if none is set.
fn ask_base_url(context: &mut Context) -> Result<(), CliError> {
    if context.settings.shown("base_url").is_some() || context.env.prompt.is_none() {
        return Ok(());
    }
    context.ui.text("Base URL: ");
    let mut line = String::new();
    let read = BufReader::new(&mut context.env.stdin).read_line(&mut line);
    read.map_err(|problem| CliError::usage(format!("cannot read a base URL: {problem}")))?;
    if !line.trim().is_empty() {
        context.settings.set_base_url(line.trim());
    }
    Ok(())
}

/// Checks whether the service accepts the key.
async fn check(client: &Client) -> Result<(), ClientError> {
    client.pets().list().limit(1).send().await.map(drop)
}

fn not_stored(context: &Context, error: &ClientError) -> CliError {
    let mut failure = context.facts.client(error);
    failure.message += "; nothing was stored";
    CliError::Failure(Box::new(if error.is_not_found() {
        // Its hint says what is wrong with the base URL.
        failure
    } else if error.is_unauthorized() {
        failure.hint("check it for typing errors and log in again")
    } else {
        failure.hint("`petstore auth login --no-check` stores a key without a check")
    }))
}

/// Stores the base URL if the profile has none, because the key is useless without it.
async fn store_base_url(context: &Context, base_url: &Url) -> Result<(), CliError> {
    let profile = &context.settings.profile;
    let own = context.settings.config.profiles.get(profile);
    if own.is_some_and(|values| values.base_url.is_some()) {
        return Ok(());
    }
    ConfigFile::edit(&context.env, |document| {
        if let Some(table) = config_file::profile_table(document, profile) {
            config_file::put(table, "base_url", base_url.as_str());
        }
    })
    .await
}

async fn ask_key(context: &mut Context) -> Result<String, CliError> {
    let typed = match context.env.prompt.take() {
        Some(prompt) => {
            // On another thread, so that Ctrl-C does not wait for input.
            let answer = tokio::task::spawn_blocking(move || prompt("API key (not shown): ")).await;
            answer
                .map_err(CliError::internal)?
                .map_err(|problem| match problem.kind() {
                    // Ctrl-C reaches the prompt as a character, before its signal.
                    ErrorKind::Interrupted => Signal::Interrupt.into(),
                    _ => CliError::usage(format!("cannot read a key: {problem}")),
                })?
        }
        None => {
            let bytes = context.read(Path::new("-"), "the key", MAX_BODY).await?;
            String::from_utf8(bytes).map_err(|_| CliError::usage("standard input is not UTF-8"))?
        }
    };
    let key = typed.trim_end_matches(['\r', '\n']);
    if key.is_empty() {
        return Err(CliError::usage("no key was given")
            .hint("type it at the prompt, or pipe it: `petstore auth login < FILE`"));
    }
    Ok(key.to_owned())
}

const STATUS: Shape = Shape {
    fields: &["profile", "baseUrl", "source", "accepted", "problem"],
    ..ANY
};

/// Shows which key is used, and whether the service accepts it.
pub(crate) async fn status(context: &mut Context) -> Result<(), CliError> {
    let output = context.output(STATUS)?;
    let base_url = match context.args.wants_mock() {
        true => "a built-in mock server".to_owned(),
        false => context.settings.base_url()?.to_string(),
    };
    let asked = match context.client(Purpose::Read).await {
        Ok(client) => check(&client).await.map_err(CliError::from),
        Err(error) => Err(error),
    };
    let failure = match asked {
        Ok(()) => None,
        Err(error) => Some(context.facts.explain(error).map_err(CliError::Silent)?),
    };
    let accepted = match failure.as_ref().map(|failure| failure.kind) {
        None => Some(true),
        Some(Kind::Key) => Some(false),
        Some(_) => None,
    };
    let profile = context.settings.profile.clone();
    let source = Some(context.facts.key_source.clone()).filter(|source| !source.is_empty());
    let problem = failure.as_ref().map(|failure| failure.message.as_str());
    if context.options.is_table() {
        let screen = context.options.screen.clone();
        let (yes, no, none) = (screen.symbol("✓"), screen.symbol("✗"), screen.symbol("–"));
        let problem = problem.unwrap_or_default();
        let status = match accepted {
            Some(true) => format!("{} accepted by the service", screen.paint(GREEN, yes)),
            Some(false) => format!("{} {problem}", screen.paint(RED, no)),
            None => format!("{none} not checked: {problem}"),
        };
        context.print(&screen.pairs(&[
            ("profile", profile),
            ("service", base_url),
            ("key", source.unwrap_or_else(|| none.to_owned())),
            ("status", status),
        ]))?;
    } else {
        output.document(&json!({
            "profile": profile,
            "baseUrl": base_url,
            "source": source,
            "accepted": accepted,
            "problem": problem,
        }))?;
    }
    let Some(failure) = failure else {
        return Ok(());
    };
    context.stdout.flush()?;
    if let Some(hint) = &failure.hint {
        context.ui.hint(hint);
    }
    Err(CliError::Silent(failure.kind.code()))
}

/// Removes the stored API key of the profile.
pub(crate) fn logout(context: &Context) -> Result<(), CliError> {
    context.refuse_mock("auth logout")?;
    let profile = &context.settings.profile;
    let path = credentials::path(&context.env.dirs, profile)?;
    let shown = context.env.shown(&path);
    let removed = files::remove(&path).map_err(|problem| {
        CliError::io(Kind::Internal, format!("cannot remove {shown}"), &problem)
    })?;
    context.ui.note(&match removed {
        true => format!("removed {shown}"),
        false => format!("profile {profile} has no stored key"),
    });
    for name in ["PETSTORE_API_KEY", "PETSTORE_API_KEY_FILE"] {
        if context.env.var(name).is_some() {
            context.ui.warning(&format!("{name} is still set"), None);
        }
    }
    Ok(())
}
