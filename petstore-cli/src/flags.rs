//! The flags that every command takes. What they come to, together with variables and profiles,
//! is left to `settings`.

use std::ffi::OsString;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::env::Env;
use crate::output::OutputFormat;
use crate::report::{ErrorFormat, Style};
use crate::style::Color;

/// The flags that every command takes.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The profile of the configuration to use. Overrides PETSTORE_PROFILE
    #[arg(long, global = true, value_name = "NAME", value_parser = profile_name)]
    pub(crate) profile: Option<String>,

    /// The service's base URL, version segment included, such as https://HOST/v1.
    /// Overrides PETSTORE_BASE_URL
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Allows plain http to another machine, where others on the way can read the API key
    #[arg(long, global = true)]
    pub(crate) allow_insecure_http: bool,

    /// A file with certificate authorities to trust beside the system's (PEM).
    /// Overrides PETSTORE_CA_FILE
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca_file: Option<String>,

    /// Runs the command against a mock server of its own, with 25 pets and a key of its own.
    /// Nothing leaves this machine, nothing is kept, and no configuration is read
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

    /// How long to be held back by rate limits before giving up with exit code 7. 0 never waits;
    /// two minutes unless set
    #[arg(long, global = true, value_name = "SECONDS")]
    #[arg(allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) max_wait: Option<u32>,

    /// Where processes share rate limits: file, redis://HOST or off. A password belongs into
    /// PETSTORE_LIMITS_STORE, since others can read arguments
    #[arg(long, global = true, value_name = "STORE", value_parser = limits_store)]
    pub(crate) limits_store: Option<String>,

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

/// Reads the name of a profile, which names a file too.
pub(crate) fn profile_name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        return Err("a profile's name is up to 64 letters, digits, `-` and `_`".to_owned());
    }
    Ok(text.to_owned())
}

/// Reads a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "it is a whole number of seconds, 0 or more".to_owned())
}

/// Reads where rate limits are shared.
pub(crate) fn limits_store(text: &str) -> Result<String, String> {
    match text {
        "file" | "off" => Ok(text.to_owned()),
        text if text.starts_with("redis://") || text.starts_with("rediss://") => {
            if cfg!(feature = "redis") {
                return Ok(text.to_owned());
            }
            Err("this build has no Redis; install it with `--features redis`".to_owned())
        }
        _ => Err("it is file, off, or an address such as redis://HOST".to_owned()),
    }
}

impl GlobalArgs {
    /// Returns the value of a setting, as it was typed.
    pub(crate) fn value(&self, setting: &str) -> Option<String> {
        let name = |value: &dyn Fn() -> Option<PossibleValue>| {
            value().map(|value| value.get_name().to_owned())
        };
        match setting {
            "base_url" => self.base_url.clone(),
            "allow_insecure_http" => self.allow_insecure_http.then(|| "true".to_owned()),
            "ca_file" => self.ca_file.clone(),
            "output" => name(&|| self.output?.to_possible_value()),
            "color" => name(&|| self.color?.to_possible_value()),
            "limits_store" => self.limits_store.clone(),
            "max_wait" => self.max_wait.map(|seconds| seconds.to_string()),
            _ => None,
        }
    }

    pub(crate) fn wants_mock(&self) -> bool {
        #[cfg(feature = "mock")]
        return self.mock;
        #[cfg(not(feature = "mock"))]
        return false;
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
