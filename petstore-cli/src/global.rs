//! The options of every command.

use std::ffi::OsString;

use clap::Arg;

use crate::env::System;
use crate::settings::config_file::{Problem, Profile};
use crate::settings::{OUTPUT, REQUESTS, SERVICE, Settings, Values, flag, variable};

/// The options of every command. Those that are settings are in `values`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// The profile of config.toml [env: PETSTORE_PROFILE]
    #[arg(long, help_heading = SERVICE)]
    #[arg(value_name = "NAME")]
    profile: Option<Profile>,

    /// Use a built-in server with 25 pets; needs no key or settings, and keeps nothing
    #[cfg(feature = "mock")]
    #[arg(long, help_heading = SERVICE)]
    #[arg(conflicts_with = "base_url")]
    mock: bool,

    #[command(flatten)]
    values: Values,

    /// Show only these fields, in this order: id,name
    #[arg(long, help_heading = OUTPUT)]
    #[arg(value_name = "LIST", value_delimiter = ',')]
    fields: Option<Vec<String>>,

    /// Filter the whole result; prints strings without quotes, and other values as JSON
    #[arg(long, help_heading = OUTPUT)]
    #[arg(value_name = "EXPRESSION")]
    jq: Option<String>,

    /// Exit with 8 if a deprecated operation was used
    #[arg(long, help_heading = REQUESTS)]
    deny_deprecated: bool,

    /// Errors and results only
    #[arg(short, long, help_heading = OUTPUT)]
    #[arg(action = clap::ArgAction::Count, conflicts_with = "verbose")]
    quiet: u8,

    /// Show each attempt; -vv with headers, -vvv with bodies
    #[arg(short, long, help_heading = OUTPUT)]
    #[arg(action = clap::ArgAction::Count)]
    verbose: u8,
}

impl GlobalArgs {
    /// Combines the flags with variables and the configuration file.
    pub(crate) fn resolve(&self, system: &System) -> (Settings, Option<Problem>) {
        let profile = self.profile.as_ref();
        Settings::resolve(profile, &self.values, system, self.wants_mock())
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet > 0
    }

    pub(crate) fn verbose(&self) -> u8 {
        self.verbose
    }

    /// Returns the selected fields. Spaces around a name do not count.
    pub(crate) fn fields(&self) -> Option<Vec<String>> {
        let fields = self.fields.as_ref()?;
        Some(fields.iter().map(|name| name.trim().to_owned()).collect())
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

    /// Finds the options that affect error output in an invalid command line.
    pub(crate) fn of_mistyped(args: &[OsString]) -> Self {
        let mut options = Self::default();
        let mut before = "";
        for arg in args {
            let Some(arg) = arg.to_str() else {
                continue;
            };
            if arg == "--" {
                break;
            }
            let (option, value) = match arg.split_once('=') {
                Some(parts) => parts,
                None => (before, arg),
            };
            for name in ["error_format", "color"] {
                if flag(name) == option {
                    // A wrong value is ignored here: the message about the mistake matters more.
                    let _ = options.values.set(name, value);
                }
            }
            before = arg;
        }
        options
    }
}

/// Makes an option one of every command, with the default and the variable of a setting in its help.
/// Options that are hidden from `-h` need a long help: a manual page has no other.
pub(crate) fn explain(arg: Arg) -> Arg {
    let name = arg.get_id().as_str().to_owned();
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if Values::NAMES.contains(&&*name) {
        help += "\n";
        if let Some(default) = Values::defaults().text(&name) {
            help += &format!("[default: {default}] ");
        }
        help += &format!("[env: {}]", variable(&name));
    }
    arg.long_help(help).global(true).hide_short_help(true)
}
