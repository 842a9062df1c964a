//! What the flags and the variables come to: where to send, with which key, how patiently.
//!
//! Flag over variable over default.

use std::ffi::OsString;
use std::time::Duration;

use clap::ValueEnum;

use crate::env::Env;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::{Look, OutputFormat};
use crate::report::{ErrorFormat, Style};
use crate::style::Color;

/// The flags that every command takes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The service's base URL, version segment included, such as https://HOST/v1.
    /// Overrides PETSTORE_BASE_URL
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Allows plain http to another machine, where others on the way can read the API key
    #[arg(long, global = true)]
    pub(crate) allow_insecure_http: bool,

    /// Runs the command against a mock server of its own, with 25 pets and a key of its own.
    /// Nothing leaves this machine, and nothing is kept
    #[cfg(feature = "mock")]
    #[arg(long, global = true, conflicts_with = "base_url")]
    pub(crate) mock: bool,

    /// How results are written. Without it: a table on a terminal, tab-separated values in a pipe
    #[arg(short, long, global = true, value_name = "FORMAT")]
    pub(crate) output: Option<OutputFormat>,

    /// Only these fields, in this order; dots lead to what is nested, such as `owner.name`
    #[arg(long, global = true, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) fields: Option<Vec<String>>,

    /// Runs a jq expression over the whole result. Implies JSON, unless -o says otherwise
    #[arg(long, global = true, value_name = "EXPRESSION")]
    pub(crate) jq: Option<String>,

    /// When colour is used. NO_COLOR, CLICOLOR_FORCE and TERM=dumb are minded
    #[arg(long, global = true, value_name = "WHEN")]
    pub(crate) color: Option<Color>,

    /// How long to be held back by rate limits before giving up with exit code 7. 0 never waits
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 120)]
    #[arg(allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) max_wait: u32,

    /// Ends with exit code 8 where a deprecated operation was used, for CI
    #[arg(long, global = true)]
    pub(crate) deny_deprecated: bool,

    /// Says nothing but errors: no notes, no warnings
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Tells on standard error what each call went through; -vv with headers, -vvv with bodies
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// How errors and notes are written
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) error_format: Option<ErrorFormat>,
}

fn seconds(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "it is a whole number of seconds, 0 or more".to_owned())
}

impl GlobalArgs {
    pub(crate) fn wants_mock(&self) -> bool {
        #[cfg(feature = "mock")]
        return self.mock;
        #[cfg(not(feature = "mock"))]
        return false;
    }

    /// Returns what results are to look like.
    pub(crate) fn look(&self, env: &Env) -> Look {
        let is_terminal = env.stdout.is_terminal;
        Look {
            format: self.output,
            fields: self.fields.clone(),
            jq: self.jq.clone(),
            is_terminal,
            width: env.width,
            color: self.color.unwrap_or_default().applies(env, is_terminal),
        }
    }

    /// Returns how things are told on standard error.
    pub(crate) fn style(&self, env: &Env) -> Style {
        Style {
            format: self.error_format.unwrap_or_default(),
            color: self.color.unwrap_or_default().applies(env, env.stderr.is_terminal),
            quiet: self.quiet,
            verbose: self.verbose,
        }
    }

    pub(crate) fn max_wait(&self) -> Duration {
        Duration::from_secs(self.max_wait.into())
    }
}

/// Returns how to tell of a command that was mistyped, by those of its flags that say so: where
/// the rest makes no sense, these still hold.
pub(crate) fn style_of_what_was_typed(env: &Env, is_terminal: bool) -> Style {
    let color: Option<Color> = typed(&env.args, "--color");
    Style {
        format: typed(&env.args, "--error-format").unwrap_or_default(),
        color: color.unwrap_or_default().applies(env, is_terminal),
        ..Style::default()
    }
}

/// Finds the value of a flag among arguments that could not be understood.
fn typed<T: ValueEnum>(args: &[OsString], flag: &str) -> Option<T> {
    let mut args = args.iter().filter_map(|arg| arg.to_str()).take_while(|arg| *arg != "--");
    let mut found = None;
    while let Some(arg) = args.next() {
        let value = match arg.strip_prefix(flag) {
            Some("") => args.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        found = value.and_then(|value| T::from_str(value, false).ok()).or(found);
    }
    found
}

/// A service to talk to.
pub(crate) struct Target {
    pub(crate) base_url: String,
    pub(crate) key: String,
}

impl Target {
    pub(crate) fn resolve(args: &GlobalArgs, env: &Env) -> Result<Self, CliError> {
        for name in ["PETSTORE_BASE_URL", "PETSTORE_API_KEY"] {
            if env.is_garbled(name) {
                let problem = format!("what {name} holds is not UTF-8");
                return Err(CliError::new(Exit::Config, problem).hint(format!("set {name} anew")));
            }
        }
        let base_url = args.base_url.as_deref().or_else(|| env.var("PETSTORE_BASE_URL"));
        let Some(base_url) = base_url else {
            return Err(CliError::new(Exit::Config, "no base URL is set")
                .hint("set PETSTORE_BASE_URL, or pass `--base-url https://HOST/v1`")
                .hint("`petstore --mock …` runs any command without a service"));
        };
        let Some(key) = env.var("PETSTORE_API_KEY") else {
            return Err(CliError::new(Exit::Config, "no API key is set")
                .hint("set PETSTORE_API_KEY; there is no flag, since others can read arguments")
                .hint("`petstore --mock …` runs any command without a key"));
        };
        Ok(Self { base_url: base_url.to_owned(), key: key.to_owned() })
    }
}
