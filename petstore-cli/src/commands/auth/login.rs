//! `petstore auth login`.

use std::path::Path;

use petstore_client::RequestOptions;

use crate::config::{Edit, Setting};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::keys;
use crate::settings::Origin;

/// Keeps an API key for the service, in a file that only you can read
///
/// Asks for it on a terminal, without showing it; elsewhere it is read from standard input. The key
/// belongs to the profile and to its base URL: it is sent nowhere else. Before it is kept, one
/// request asks the service whether it is accepted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore auth login --base-url https://petstore.example/v1
  petstore auth login --profile staging < key.txt
  cat key.txt | petstore auth login --no-check")]
pub(crate) struct Login {
    /// Keeps the key without asking the service
    #[arg(long)]
    no_check: bool,

    /// Keeps the key in the system's keyring in place of a file
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
        if context.wants_mock() {
            return Err(CliError::usage("a mock of its own has a key of its own"));
        }
        let base_url = context.settings.base_url()?.to_owned();
        let profile = context.settings.profile.0.clone();
        let path = keys::path(&context.env.dirs, &profile)?;
        let key = ask(context, &base_url).await?;
        context.report.hide(&key);
        // Whether it can be a key at all is found out here.
        let client = context.client_with(&key)?;
        if !self.no_check {
            let once = RequestOptions::new().max_wait(std::time::Duration::ZERO);
            match client.pets().list().limit(1).options(&once).send().await {
                Err(refusal) if !refusal.is_rate_limited() => {
                    return Err(CliError::from(refusal)
                        .hint("nothing was kept; `--no-check` keeps a key without asking"));
                }
                _ => {}
            }
        }
        let in_keyring = self.in_keyring();
        keys::store(&path, &base_url, &key, in_keyring)?;
        let place = path.display().to_string();
        let place = if in_keyring { "the system's keyring" } else { &place };
        let mut kept = format!("the key for {base_url} is kept in {place}");
        if keep_base_url(context, &profile, &base_url)? {
            kept += &format!(", and the base URL in profile {profile}");
        }
        context.report.note(&kept);
        if context.env.var("PETSTORE_API_KEY").is_some() {
            context.report.warning("PETSTORE_API_KEY is set, and goes before what was kept");
        }
        Ok(())
    }
}

/// Keeps a base URL that was typed, where the profile has none: the key is of no use without it.
fn keep_base_url(context: &Context, profile: &str, base_url: &str) -> Result<bool, CliError> {
    let typed = context.settings.get(Setting::BaseUrl).map(|(_, origin)| origin);
    let of_profile = context.settings.config.profiles.get(profile);
    if of_profile.is_some_and(|settings| settings.contains_key(&Setting::BaseUrl))
        || !matches!(typed, Some(Origin::Flag(_)))
    {
        return Ok(false);
    }
    let mut edit = Edit::open(&context.env.dirs)?;
    edit.set(profile, Setting::BaseUrl, base_url);
    edit.save()?;
    Ok(true)
}

async fn ask(context: &mut Context, base_url: &str) -> Result<String, CliError> {
    let typed = match context.env.prompt.take() {
        Some(prompt) => {
            let question = format!("API key for {base_url}: ");
            // On a thread of its own, so that Ctrl-C does not wait for an answer.
            let answer = tokio::task::spawn_blocking(move || prompt(&question)).await;
            let answer = answer.map_err(|problem| CliError::new(Exit::Internal, problem))?;
            answer.map_err(|problem| CliError::usage(format!("could not read a key: {problem}")))?
        }
        None => {
            let bytes = context.read(Path::new("-")).await?;
            String::from_utf8(bytes)
                .map_err(|_| CliError::usage("what standard input holds is not UTF-8"))?
        }
    };
    let key = typed.trim_end_matches(['\r', '\n']);
    if key.is_empty() {
        return Err(CliError::usage("there is no key on standard input")
            .hint("type it at the prompt, or send it: `petstore auth login < FILE`"));
    }
    Ok(key.to_owned())
}
