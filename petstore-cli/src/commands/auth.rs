//! `petstore auth …`: the API key.

use std::path::Path;

use clap::Subcommand;
use petstore_client::url::Url;
use petstore_client::{Client, Error};
use serde_json::json;

use crate::context::Context;
use crate::env::System;
use crate::error::{CliError, Failure, Result};
use crate::escape;
use crate::files;
use crate::input::MAX_BODY;
use crate::output::{ANY, Shape};
use crate::session::Purpose;
use crate::settings::config_file::{self, ConfigFile};
use crate::settings::credentials::{self, KeySource};
use crate::settings::secrets::without_password;
use crate::settings::{Settings, Values};

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Store an API key for the service, in a file that only you can read.
    #[command(after_long_help = examples!(
        "petstore auth login --base-url https://petstore.example/v1",
        "petstore auth login --profile staging < key.txt",
        "cat key.txt | petstore auth login --no-check";
        "Asks for the key without showing it, or reads it from standard input. Checks the key with \
         the service before storing it. The key belongs to the profile and its base URL, and is sent \
         nowhere else."
    ))]
    Login {
        /// Store the key without checking it with the service
        #[arg(long)]
        no_check: bool,
    },
    /// Show the key in use, and whether the service accepts it.
    #[command(after_long_help = examples!(
        "petstore auth status",
        "petstore --mock auth status -o json";
        "The exit code is 0 if the service accepts the key, and 3 if it refuses it or if there is no \
         key. Other codes say why the key could not be checked.",
        "Fields: profile, baseUrl, source, accepted, problem"
    ))]
    Status,
    /// Print the API key, for scripts.
    #[command(after_long_help = examples!(
        "petstore auth token | wc -c",
        "petstore auth token --show";
        "A script uses `$(petstore auth token)`. It prints the key that commands use: \
         PETSTORE_API_KEY, the file that PETSTORE_API_KEY_FILE names, the output of key_command, or \
         the stored key."
    ))]
    Token {
        /// Print the key on a terminal too
        #[arg(long)]
        show: bool,
    },
    /// Remove the stored API key of the profile.
    #[command(after_long_help = examples!(
        "petstore auth logout",
        "petstore auth logout --profile staging";
        "The service is not notified: the key stays valid."
    ))]
    Logout,
}

impl Auth {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Login { no_check } => login(context, no_check).await,
            Self::Status => status(context).await,
            Self::Token { show } => token(context, show).await,
            Self::Logout => logout(context),
        }
    }
}

async fn login(context: &Context, no_check: bool) -> Result<()> {
    let settings = context.settings();
    let system = context.system();
    let ui = context.ui();
    settings.refuse_mock("auth login")?;
    let base_url = settings.base_url()?;
    keep_profile(settings, &base_url)?;
    let path = credentials::path(system.dirs(), settings.profile())?;
    let key = ask_key(context).await?;
    let client = context.connect_with(Purpose::Read, &base_url, key.clone(), KeySource::Typed)?;
    if !no_check && let Err(error) = check(&client).await {
        return Err(not_stored(context, &error));
    }
    credentials::store(&path, &base_url, &key, system)?;
    let replaced = store_base_url(settings, &base_url, system)?;
    let place = system.shown(&path);
    let text = match no_check {
        true => format!("stored in {place}; not checked"),
        false => format!("accepted by the service; stored in {place}"),
    };
    ui.note_now(&text);
    if let Some(replaced) = replaced {
        let profile = settings.profile();
        ui.note_now(&format!("the base URL of profile {profile} was {replaced}"));
    }
    for other in overriding(settings, system) {
        let text = format!("{other} is set and overrides the stored key");
        ui.warning(&text, None);
    }
    Ok(())
}

/// Refuses to replace the base URL of a profile that the command does not name. Its key may be the
/// one of production, and the new one that of a test.
fn keep_profile(settings: &Settings, base_url: &Url) -> Result<()> {
    let stored = settings.profile_values().and_then(Values::base_url);
    let Some(stored) = stored.and_then(|text| Url::parse(text).ok()) else {
        return Ok(());
    };
    if stored.origin() == base_url.origin() || !settings.profile_option().is_empty() {
        return Ok(());
    }
    let profile = settings.profile();
    let stored = stored.origin().ascii_serialization();
    let problem = format!("profile {profile} is for {stored}");
    let base_url = escape::shell(base_url.as_str());
    let hint = format!("`petstore auth login --profile NAME --base-url {base_url}`");
    Err(CliError::usage(problem).hint(hint))
}

/// Returns the sources of keys that come before the stored key, where they are set.
fn overriding(settings: &Settings, system: &System) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in [credentials::KEY, credentials::KEY_FILE] {
        if system.var(name).is_some() {
            found.push(name);
        }
    }
    if settings.values().key_command().is_some() {
        found.push("key_command");
    }
    found
}

/// Checks whether the service accepts the key.
async fn check(client: &Client) -> Result<(), Error> {
    client.pets().list().limit(1).await?;
    Ok(())
}

fn not_stored(context: &Context, error: &Error) -> CliError {
    let mut failure = context.explain_client(error);
    failure.message += "; nothing was stored";
    // The hints to a 404 and a 401 stay: they say what is wrong with the base URL or the key.
    if !error.is_not_found() && !error.is_unauthorized() {
        let login = context.settings().command("auth login --no-check");
        failure = failure.hint(format!("{login} stores a key without a check"));
    }
    failure.into()
}

/// Stores the base URL in the profile, because the key is useless with another one. Returns the one
/// that it replaces.
fn store_base_url(settings: &Settings, base_url: &Url, system: &System) -> Result<Option<String>> {
    let profile = settings.profile();
    let stored = settings.config().values(profile).and_then(Values::base_url);
    let is_same = |stored: &str| Url::parse(stored).is_ok_and(|stored| stored == *base_url);
    if stored.is_some_and(is_same) {
        return Ok(None);
    }
    ConfigFile::edit(system, |document| {
        if let Some(table) = config_file::profile_table(document, profile) {
            config_file::put(table, "base_url", base_url.as_str());
        }
    })?;
    Ok(stored.map(|stored| without_password(stored).into_owned()))
}

async fn ask_key(context: &Context) -> Result<String> {
    let reader = context.reader();
    let typed = match reader.ask_secret("API key (not shown): ").await? {
        Some(typed) => typed,
        None => {
            let bytes = reader.read(Path::new("-"), "the key", MAX_BODY).await?;
            let Ok(text) = String::from_utf8(bytes) else {
                return Err(CliError::usage("standard input is not UTF-8"));
            };
            text
        }
    };
    let key = typed.trim_end_matches(['\r', '\n']);
    if key.is_empty() {
        let options = context.settings().same_service();
        let hint =
            format!("type it at the prompt, or pipe it: `petstore auth login{options} < FILE`");
        return Err(CliError::usage("no key was given").hint(hint));
    }
    Ok(key.to_owned())
}

async fn token(context: &Context, show: bool) -> Result<()> {
    let printer = context.printer();
    context.settings().refuse_mock("auth token")?;
    context.settings().require_profile()?;
    if printer.screen().is_terminal() && !show {
        let problem = "the terminal would show the API key";
        let options = context.settings().same_service();
        let hint = format!("`--show` prints it; a script uses `$(petstore auth token{options})`");
        return Err(CliError::usage(problem).hint(hint));
    }
    let (key, _) = context.key().await?;
    printer.print(format!("{key}\n"))
}

const STATUS: Shape = Shape {
    fields: &["profile", "baseUrl", "source", "accepted", "problem"],
    ..ANY
};

/// Shows which key is used, and whether the service accepts it.
async fn status(context: &Context) -> Result<()> {
    let settings = context.settings();
    let output = context.printer().start(STATUS)?;
    let base_url = match settings.is_mock() {
        true => "a built-in mock server".to_owned(),
        false => settings.base_url()?.to_string(),
    };
    let asked = match context.connect(Purpose::Read).await {
        Ok(client) => check(&client).await.map_err(CliError::from),
        Err(error) => Err(error),
    };
    let accepted = match &asked {
        Ok(()) => Some(true),
        Err(CliError::Client(error)) if error.is_unauthorized() => Some(false),
        Err(_) => None,
    };
    let failure = match asked {
        Ok(()) => None,
        Err(error) => match context.explain(error) {
            Ok(failure) => Some(failure),
            Err(code) => return Err(CliError::Silent(code)),
        },
    };
    output.document(&json!({
        "profile": settings.profile(),
        "baseUrl": base_url,
        "source": source(settings, context.system()),
        "accepted": accepted,
        "problem": failure.as_ref().map(|failure| &failure.message),
    }))?;
    match failure {
        None => Ok(()),
        Some(failure) => end(context, &failure),
    }
}

/// Returns where the key comes from, if there is one.
fn source(settings: &Settings, system: &System) -> Option<String> {
    if settings.is_mock() {
        return None;
    }
    let (_, source) = credentials::find(settings, system).ok()??;
    Some(source.shown())
}

/// Ends a command whose printed result already describes the failure.
fn end(context: &Context, failure: &Failure) -> Result<()> {
    context.printer().flush()?;
    if let Some(hint) = &failure.hint {
        context.ui().hint(hint);
    }
    Err(CliError::Silent(failure.kind.code()))
}

/// Removes the stored API key of the profile.
fn logout(context: &Context) -> Result<()> {
    let settings = context.settings();
    let system = context.system();
    let ui = context.ui();
    settings.refuse_mock("auth logout")?;
    let profile = settings.profile();
    let path = credentials::path(system.dirs(), profile)?;
    if !path.exists() {
        settings.require_profile()?;
    }
    let text = match files::remove(&path, system)? {
        true => format!("removed {}", system.shown(&path)),
        false => format!("profile {profile} has no stored key"),
    };
    ui.note(&text);
    for other in overriding(settings, system) {
        ui.warning(&format!("{other} is still set"), None);
    }
    Ok(())
}
