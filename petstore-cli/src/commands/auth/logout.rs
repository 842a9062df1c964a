//! `petstore auth logout`.

use crate::context::Context;
use crate::error::CliError;
use crate::keys;

/// Forgets the API key of the profile
///
/// Removes the file that `petstore auth login` wrote. The service is not told.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore auth logout
  petstore auth logout --profile staging")]
pub(crate) struct Logout {}

impl Logout {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        let path = keys::path(&context.env.dirs, &context.settings.profile.0)?;
        let removed = keys::forget(&path)?;
        context.report.note(&match removed {
            true => format!("{} is removed", path.display()),
            false => format!("profile {} has no key", context.settings.profile.0),
        });
        for name in ["PETSTORE_API_KEY", "PETSTORE_API_KEY_FILE"] {
            if context.env.var(name).is_some() {
                context.report.warning(&format!("{name} is still set"));
            }
        }
        Ok(())
    }
}
