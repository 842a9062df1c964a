//! `petstore config use`.

use crate::config::Edit;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::flags::profile_name;
use crate::suggest::similar;

/// Chooses the profile that is used where none is named
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore config use staging")]
pub(crate) struct Use {
    /// The profile
    #[arg(value_parser = profile_name)]
    name: String,
}

impl Use {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let profiles = &context.settings.config.profiles;
        if self.name != "default" && !profiles.contains_key(&self.name) {
            let error = format!("there is no profile `{}`", self.name);
            let meant = similar(&self.name, profiles.keys().map(String::as_str));
            return Err(CliError::new(Exit::NotFound, error).hint(match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!(
                    "`petstore config set base_url https://HOST/v1 --profile {}` makes it",
                    self.name
                ),
            }));
        }
        let mut edit = Edit::open(&context.env.dirs)?;
        edit.choose(&self.name);
        edit.save()
    }
}
