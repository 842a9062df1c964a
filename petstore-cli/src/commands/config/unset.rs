//! `petstore config unset`.

use crate::config::{Edit, Setting};
use crate::context::Context;
use crate::error::CliError;

/// Removes a value from the profile
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore config unset output")]
pub(crate) struct Unset {
    /// The setting
    setting: Setting,
}

impl Unset {
    pub(crate) fn run(self, context: &mut Context) -> Result<(), CliError> {
        context.settings.check_profile()?;
        let profile = &context.settings.profile.0;
        let mut edit = Edit::open(&context.env.dirs)?;
        if edit.unset(profile, self.setting) {
            return edit.save();
        }
        context.report.note(&format!("profile {profile} has no {}", self.setting.name()));
        Ok(())
    }
}
