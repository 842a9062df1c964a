//! `petstore auth status`.

use petstore_client::RequestOptions;
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::keys;

/// Tells which key is used, and asks the service whether it accepts it
///
/// The key itself is not shown. Ends with exit code 3 where the service refuses it, or there is
/// none.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore auth status
  petstore --mock auth status -o json")]
pub(crate) struct Status {}

const FIELDS: [&str; 4] = ["profile", "baseUrl", "source", "accepted"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    profile: String,
    base_url: String,
    source: String,
    accepted: bool,
}

impl Status {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(Some(&FIELDS))?;
        let source = match context.wants_mock() {
            true => "a mock of its own".to_owned(),
            false => keys::need(&context.settings, &context.env)?.source.to_string(),
        };
        let client = context.client().await?;
        let shown = Shown {
            profile: context.settings.profile.0.clone(),
            base_url: client.base_url().to_string(),
            source,
            accepted: true,
        };
        let once = RequestOptions::new().max_wait(std::time::Duration::ZERO);
        match client.pets().list().limit(1).options(&once).send().await {
            Ok(_) => {}
            // Only a key that is known has a limit.
            Err(limited) if limited.is_rate_limited() => {}
            Err(refusal) => {
                return Err(
                    CliError::from(refusal).hint(format!("the key is from {}", shown.source))
                );
            }
        }
        output.document(&shown).await
    }
}
