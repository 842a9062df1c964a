//! The options of every command.

use std::ffi::OsString;

use crate::settings::config_file::Profile;
use crate::settings::{Values, flag, parse};

/// The options of every command.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// The profile of config.toml to use
    #[arg(long, global = true, hide = true, value_name = "NAME", value_parser = parse::<Profile>)]
    pub(crate) profile: Option<Profile>,

    /// Use a built-in server with 25 pets; no key, no settings, nothing kept
    #[cfg(feature = "mock")]
    #[arg(long, global = true, hide = true, conflicts_with = "base_url")]
    mock: bool,

    #[command(flatten)]
    pub(crate) values: Values,

    /// Show only these fields, in this order
    #[arg(
        long,
        global = true,
        hide = true,
        value_name = "LIST",
        value_delimiter = ','
    )]
    pub(crate) fields: Option<Vec<String>>,

    /// Filter the result; strings come out raw
    #[arg(long, global = true, hide = true, value_name = "EXPRESSION")]
    pub(crate) jq: Option<String>,

    /// Exit with 8 if a deprecated operation was used
    #[arg(long, global = true, hide = true)]
    pub(crate) deny_deprecated: bool,

    /// Errors and results only
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    #[arg(conflicts_with = "verbose")]
    pub(crate) quiet: u8,

    /// Show attempts; -vv with headers, -vvv with bodies
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl GlobalArgs {
    pub(crate) fn wants_mock(&self) -> bool {
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
