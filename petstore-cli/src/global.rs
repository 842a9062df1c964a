//! The options of every command.

use std::ffi::OsString;

use clap::ValueEnum;

use crate::env::Env;
use crate::output::OutputOptions;
use crate::screen::{Color, Screen};
use crate::settings::config_file::Profile;
use crate::settings::precedence::Settings;
use crate::settings::{Values, parse};
use crate::time::Clock;
use crate::ui::{ErrorFormat, UiOptions};

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
    pub(crate) values: Values,

    /// Only these fields, in this order
    #[arg(long, global = true, hide = true, value_name = "LIST", value_delimiter = ',')]
    fields: Option<Vec<String>>,

    /// Filter the result; strings come out raw
    #[arg(long, global = true, hide = true, value_name = "EXPRESSION")]
    jq: Option<String>,

    /// Exit with 8 if a deprecated operation was used
    #[arg(long, global = true, hide = true)]
    pub(crate) deny_deprecated: bool,

    /// Errors and results only
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    #[arg(conflicts_with = "verbose")]
    quiet: u8,

    /// Show attempts; -vv with headers, -vvv with bodies
    #[arg(short, long, global = true, hide = true, action = clap::ArgAction::Count)]
    verbose: u8,

    /// How errors and notes are written
    #[arg(long, global = true, hide = true, value_name = "FORMAT")]
    error_format: Option<ErrorFormat>,
}

impl GlobalArgs {
    pub(crate) fn wants_mock(&self) -> bool {
        #[cfg(feature = "mock")]
        return self.mock;
        #[cfg(not(feature = "mock"))]
        return false;
    }

    pub(crate) fn profile(&self) -> Option<&str> {
        self.profile.as_ref().map(|Profile(name)| name.as_str())
    }

    /// Returns what results are to look like.
    pub(crate) fn output_options(
        &self,
        settings: &Settings,
        env: &Env,
        color: Color,
    ) -> OutputOptions {
        let key = env.var("PETSTORE_API_KEY").unwrap_or_default();
        let variable = |(name, value): (&String, &OsString)| {
            let value = value.to_str().filter(|value| key.is_empty() || !value.contains(key))?;
            Some((name.clone(), value.to_owned()))
        };
        OutputOptions {
            format: settings.get(|values| &values.output),
            fields: self.fields.clone(),
            jq: self.jq.clone(),
            variables: env.vars.iter().filter_map(variable).collect(),
            screen: Screen::new(env, color, env.stdout.is_terminal),
        }
    }

    /// Returns how things are said on standard error.
    pub(crate) fn ui_options(&self, env: &Env, color: Color) -> UiOptions {
        let format = env.var("PETSTORE_ERROR_FORMAT");
        let format = format.and_then(|text| ErrorFormat::from_str(text, false).ok());
        let is_terminal = env.stderr.is_terminal;
        UiOptions {
            format: self.error_format.or(format).unwrap_or_default(),
            quiet: self.quiet > 0,
            verbose: self.verbose,
            screen: Screen::new(env, color, is_terminal),
            clock: Clock { now: env.now, zone: is_terminal.then(|| env.time_zone()) },
        }
    }

    /// Returns the options of a line that could not be understood, as far as they say how errors
    /// are written.
    pub(crate) fn of_mistyped(args: &[OsString]) -> (Self, Color) {
        let error_format = value_of(args, "--error-format");
        (Self { error_format, ..Self::default() }, value_of(args, "--color").unwrap_or_default())
    }
}

/// Finds the value of an option among arguments that could not be understood.
fn value_of<T: ValueEnum>(args: &[OsString], option: &str) -> Option<T> {
    let mut args = args.iter().filter_map(|arg| arg.to_str()).take_while(|arg| *arg != "--");
    let mut found = None;
    while let Some(arg) = args.next() {
        let value = match arg.strip_prefix(option) {
            Some("") => args.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        found = value.and_then(|value| T::from_str(value, false).ok()).or(found);
    }
    found
}
