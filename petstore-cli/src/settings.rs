//! What the flags and the variables come to: where to send, with which key, how patiently.
//!
//! Flag over variable over default.

use std::time::Duration;

use petstore_client::ApiKey;

use crate::env::Env;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::OutputFormat;

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

    /// How long to be held back by rate limits before giving up with exit code 7. 0 never waits
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 120)]
    #[arg(allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) max_wait: u32,

    /// Tells on standard error what each call went through
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
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

    pub(crate) fn max_wait(&self) -> Duration {
        Duration::from_secs(self.max_wait.into())
    }
}

/// A service to talk to.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) base_url: String,
    pub(crate) key: ApiKey,
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
        Ok(Self { base_url: base_url.to_owned(), key: ApiKey::new(key) })
    }
}
