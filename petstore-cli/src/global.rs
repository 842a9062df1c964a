//! The options of every command.

use std::ffi::OsString;

use clap::{Arg, Args as _, Command};

use crate::env::System;
use crate::settings::config_file::{Problem, Profile};
use crate::settings::{OUTPUT, REQUESTS, SERVICE, Settings, Values, flag, parse, variable};
use crate::ui::UiOptions;

/// A width at which clap breaks no line, because the text is laid out later.
pub(crate) const UNBROKEN: usize = 10_000;

/// The options of every command.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct GlobalArgs {
    /// the profile of config.toml [PETSTORE_PROFILE]
    #[arg(long, global = true, hide = true, value_name = "NAME", value_parser = parse::<Profile>)]
    #[arg(help_heading = SERVICE)]
    profile: Option<Profile>,

    /// use a built-in server with 25 pets; needs no key or settings, and keeps nothing
    #[cfg(feature = "mock")]
    #[arg(long, global = true, hide = true, conflicts_with = "base_url")]
    #[arg(help_heading = SERVICE)]
    mock: bool,

    #[command(flatten)]
    values: Values,

    /// show only these fields, in this order: id,name,owner.name
    #[arg(
        long,
        global = true,
        hide = true,
        value_name = "LIST",
        value_delimiter = ','
    )]
    #[arg(help_heading = OUTPUT)]
    fields: Option<Vec<String>>,

    /// filter the result; prints strings without quotes
    #[arg(long, global = true, hide = true, value_name = "EXPRESSION", help_heading = OUTPUT)]
    jq: Option<String>,

    /// exit with 8 if a deprecated operation was used
    #[arg(long, global = true, hide = true, help_heading = REQUESTS)]
    deny_deprecated: bool,

    /// errors and results only
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    #[arg(conflicts_with = "verbose", help_heading = OUTPUT)]
    quiet: u8,

    /// attempts; -vv with headers, -vvv with bodies
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    #[arg(help_heading = OUTPUT)]
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

/// Returns a command with the options of every command.
pub(crate) fn global_options() -> Command {
    let command = GlobalArgs::augment_args(Command::new("petstore"));
    let command = command.disable_help_flag(true).term_width(UNBROKEN);
    command.help_template("{all-args}").mut_args(explain)
}

/// Shows an option of every command, with its values, its default and its variable.
fn explain(arg: Arg) -> Arg {
    let name = arg.get_id().as_str().to_owned();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let arg = arg.hide(false);
    if !Values::NAMES.contains(&&*name) {
        return arg;
    }
    let text = Values::explain(&name, &help);
    let variable = variable(&name);
    arg.help(match text.strip_suffix(']') {
        Some(text) => format!("{text}; {variable}]"),
        None => format!("{text} [{variable}]"),
    })
}
