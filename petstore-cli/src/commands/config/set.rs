//! `petstore config set`.

use petstore_client::Client;

use crate::config::{Edit, Setting};
use crate::context::Context;
use crate::error::CliError;

/// Sets a value in the profile, which is made where there is none
///
/// Comments and the layout of the file stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore config set base_url https://petstore.example/v1
  petstore config set output json --profile staging")]
pub(crate) struct Set {
    /// The setting
    setting: Setting,

    /// Its value
    value: String,
}

impl Set {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let (setting, value) = (self.setting, self.value);
        setting.check(&value).map_err(|problem| {
            CliError::usage(format!("{} cannot be `{value}`: {problem}", setting.name()))
        })?;
        if setting == Setting::BaseUrl {
            let check = Client::builder(&value).api_key("x").allow_insecure_http(true).build();
            check.map_err(|problem| CliError::usage(problem.to_string()))?;
        }
        let mut edit = Edit::open(&context.env.dirs)?;
        edit.set(&context.settings.profile.0, setting, &value);
        edit.save()?;
        if let Some(name) = Some(setting.variable()).filter(|name| context.env.var(name).is_some())
        {
            context.report.warning(&format!("{name} is set, and goes before the profile"));
        }
        Ok(())
    }
}
