//! `petstore config get`.

use serde_json::json;

use crate::config::Setting;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows the value of a setting, wherever it comes from
///
/// Ends with exit code 9 where nothing is set.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore config get max_wait
  petstore config get base_url --profile staging")]
pub(crate) struct Get {
    /// The setting
    setting: Setting,
}

impl Get {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(None)?;
        context.settings.check_profile()?;
        match context.settings.shown(self.setting) {
            Some((value, _)) => output.document(&json!(value)).await,
            None => {
                Err(CliError::new(Exit::NotFound, format!("{} is not set", self.setting.name())))
            }
        }
    }
}
