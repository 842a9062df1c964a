//! The options of every command.

use std::ffi::OsString;

use crate::env::System;
use crate::settings::config_file::{Problem, Profile};
use crate::settings::{Settings, Values, flag, parse};
use crate::ui::UiOptions;

/// The options of every command.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// The profile of config.toml to use
    #[arg(long, global = true, hide = true, value_name = "NAME", value_parser = parse::<Profile>)]
    profile: Option<Profile>,

    /// Use a built-in server with 25 pets; no key, no settings, nothing kept
    #[cfg(feature = "mock")]
    #[arg(long, global = true, hide = true, conflicts_with = "base_url")]
    mock: bool,

    #[command(flatten)]
    values: Values,

    /// Show only these fields, in this order
    #[arg(
        long,
        global = true,
        hide = true,
        value_name = "LIST",
        value_delimiter = ','
    )]
    fields: Option<Vec<String>>,

    /// Filter the result; strings come out raw
    #[arg(long, global = true, hide = true, value_name = "EXPRESSION")]
    jq: Option<String>,

    /// Exit with 8 if a deprecated operation was used
    #[arg(long, global = true, hide = true)]
    deny_deprecated: bool,

    /// Errors and results only
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    #[arg(conflicts_with = "verbose")]
    quiet: u8,

    /// Show attempts; -vv with headers, -vvv with bodies
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl GlobalArgs {
    /// Combines the flags with variables and the configuration file.
    pub(crate) fn resolve(&self, system: &System) -> (Settings, Option<Problem>) {
        let profile = self.profile.as_ref();
        Settings::resolve(profile, &self.values, system, self.wants_mock())
    }

    /// Adds how much is shown on standard error.
    pub(crate) fn verbosity(&self, options: UiOptions) -> UiOptions {
        options.quiet(self.quiet > 0).verbose(self.verbose)
    }

    pub(crate) fn fields(&self) -> Option<&[String]> {
        self.fields.as_deref()
    }

    pub(crate) fn jq(&self) -> Option<String> {
        self.jq.clone()
    }

    pub(crate) fn denies_deprecated(&self) -> bool {
        self.deny_deprecated
    }

    fn wants_mock(&self) -> bool {
        #[cfg(feature = "mock")]
        return self.mock;
        #[cfg(not(feature = "mock"))]
        return false;
    }

    /// Returns the options of an invalid command line that affect error output.
    pub(crate) fn of_mistyped(args: &[OsString]) -> Self {
        let mut options = Self::default();
        let mut before = "";
        for arg in args
            .iter()
            .filter_map(|arg| arg.to_str())
            .take_while(|arg| *arg != "--")
        {
            let (name, value) = arg.split_once('=').unwrap_or((before, arg));
            if let Some(name) = ["error_format", "color"]
                .into_iter()
                .find(|it| flag(it) == name)
            {
                // The message of the mistake matters more than a wrong value.
                let _ = options.values.set(name, value);
            }
            before = arg;
        }
        options
    }
}
