//! The command line: the tree of commands, from which help, manual pages and completions are made.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::Styles;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;

use super::pets::Pets;
use super::store::Store;
use super::{api, auth, completions, config, doctor, limits, man};
use crate::context::Context;
use crate::error::Result;
use crate::global::{self, GlobalArgs};
use crate::screen::{BOLD, CYAN};

/// The maximum width of the help, because longer lines are hard to read.
const MAX_WIDTH: usize = 80;

const STYLES: Styles = Styles::plain().header(BOLD).usage(BOLD).literal(CYAN);

/// The end of `petstore --help` and of the manual page.
const END: &str = concat!(
    examples!(
        "petstore --mock pets list      # any command on a built-in server",
        "petstore auth login --base-url https://petstore.example/v1",
        "petstore doctor                # check the configuration and the service",
        "petstore pets list --status available",
        "petstore pets import pets.csv --dry-run"
    ),
    "\n\n\u{1b}[1mResults:\u{1b}[0m
A table that is too wide hides columns; +2 at the end of its header says how many. Control \
characters in a result are escaped; in CSV only on a terminal. TIME is 90, 90s, 10m, 24h or 7d; \
SIZE is 500KiB or 16MiB.

\u{1b}[1mRate limits:\u{1b}[0m
Commands wait before a request that the service would refuse, for up to --max-wait. If it would \
take longer, they end at once with 7. Processes that use the same key share its quotas through a \
file, and those of several machines through --limits-store redis://HOST.

\u{1b}[1mEnvironment:\u{1b}[0m
A flag overrides a variable, a variable overrides the profile, and the profile overrides the \
default. `petstore config list` shows each setting with its source. No option takes the key, since \
other users can read arguments.
  PETSTORE_API_KEY           the API key
  PETSTORE_API_KEY_FILE      a file with the API key, private to you
  HTTPS_PROXY, NO_PROXY      the proxy
  NO_COLOR, CLICOLOR_FORCE   no colour; colour in a pipe too
  CLICOLOR=0, TERM=dumb      no colour
  COLUMNS, LC_ALL, LANG, TZ  width, symbols and time zone
  XDG_CONFIG_HOME, HOME      where config.toml and keys are
  XDG_STATE_HOME, HOME       where shared rate limits are

\u{1b}[1mFiles:\u{1b}[0m
  ~/.config/petstore/config.toml   profiles and their settings
  ~/.config/petstore/keys/PROFILE  the API key of a profile
  ~/.local/state/petstore/limits   rate limits that your processes share
  FILE.petstore-journal            the outcome of each row of an import
  FILE.petstore-part               the rows of an unfinished export
`petstore config path` and `petstore doctor` show the paths in use. In config.toml, a profile can \
name a program that prints its key:
  key_command = [\"pass\", \"show\", \"petstore\"]

\u{1b}[1mExit codes:\u{1b}[0m
    0  done
    1  internal error, or this machine failed (disk full)
    2  usage: the command or its input is wrong
    3  no API key, a bad key, or bad configuration
    4  the service refused the request (other 4xx)
    5  the service failed (5xx), or its response is invalid
    6  network, TLS or time-out
    7  rate limited or banned, and the wait exceeds --max-wait
    8  partly done, maybe incomplete, or deprecated (--deny-deprecated)
    9  not found, or gone
  130  Ctrl-C; 143 for SIGTERM, 129 for SIGHUP"
);

/// List, create, import and export pets of a Pet Store service.
#[derive(Debug, Parser)]
#[command(name = "petstore", version)]
#[command(after_help = "Options of every command, variables and exit codes: petstore --help")]
#[command(after_long_help = END)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Cmd,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cmd {
    /// List, create, import and export pets.
    #[command(subcommand, alias = "pet")]
    #[command(after_long_help = examples!(
        "petstore pets list --status available",
        "petstore pets create Rex --category-id 7",
        "petstore pets import pets.csv --dry-run",
        "petstore pets export pets.ndjson";
        "`ls` is another name of `list`, `add` and `new` of `create`, and `show` of `get`."
    ))]
    Pets(Pets),
    /// List the orders of the store.
    #[command(subcommand)]
    #[command(after_long_help = examples!("petstore store orders -o json"))]
    Store(Store),
    Api(Box<api::Api>),
    #[command(aliases = ["rate-limit", "rate-limits"])]
    Limits(limits::Limits),
    /// Log in, log out, check the API key.
    #[command(subcommand)]
    #[command(after_long_help = examples!(
        "petstore auth login --base-url https://petstore.example/v1",
        "petstore auth status"
    ))]
    Auth(auth::Auth),
    /// Show and change settings and profiles.
    #[command(subcommand)]
    #[command(after_long_help = examples!(
        "petstore config list",
        "petstore config set base_url https://petstore.example/v1",
        "petstore config set max_wait 10m --profile staging",
        "petstore config use staging"
    ))]
    Config(config::Config),
    /// Check configuration, key, service, clock and rate limits.
    #[command(after_long_help = examples!(
        "petstore doctor",
        "petstore --mock doctor -o json";
        "Sends one request. Exits with the code of the first check that fails.",
        "Fields: check, result, found, hint"
    ))]
    Doctor,
    /// Print the completions of a shell.
    #[command(alias = "completion", after_long_help = examples!(
        "petstore completions bash > petstore.bash",
        "petstore completions zsh > _petstore",
        "petstore completions fish > petstore.fish";
        "The completions know commands, options, values, settings, files and profiles. They send no \
         requests."
    ))]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages.
    #[command(after_long_help = examples!("petstore man > petstore.1", "petstore man man1"))]
    Man {
        /// Write a page for each command into this folder
        #[arg(value_hint = clap::ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
    /// Print the version.
    #[command(hide = true)]
    Version,
}

/// Returns the tree of commands, with help for this width.
pub(crate) fn tree(width: Option<usize>) -> clap::Command {
    Args::command()
        .styles(STYLES)
        .term_width(width.unwrap_or(MAX_WIDTH).min(MAX_WIDTH))
        .args_override_self(true)
        .mut_args(global::explain)
}

/// Reads the arguments.
pub(crate) fn parse(args: &[OsString], width: Option<usize>) -> Result<Args, clap::Error> {
    let matches = tree(width).try_get_matches_from(args)?;
    Args::from_arg_matches(&matches)
}

impl Cmd {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Pets(pets) => pets.run(context).await,
            Self::Store(store) => store.run(context).await,
            Self::Api(api) => api.run(context).await,
            Self::Limits(limits) => limits.run(context).await,
            Self::Auth(auth) => auth.run(context).await,
            Self::Config(config) => config.run(context),
            Self::Doctor => doctor::run(context).await,
            Self::Completions { shell } => completions::run(shell, context),
            Self::Man { folder } => man::run(folder.as_deref(), context, tree(None)),
            Self::Version => {
                context
                    .printer()
                    .print(concat!("petstore ", env!("CARGO_PKG_VERSION"), "\n"))
            }
        }
    }

    /// Returns whether the command needs the configuration. Others work even if it is invalid.
    pub(crate) fn needs_settings(&self) -> bool {
        match self {
            Self::Pets(_) | Self::Store(_) | Self::Api(_) | Self::Limits(_) | Self::Auth(_) => true,
            Self::Config(config) => !matches!(config, config::Config::Path),
            Self::Doctor | Self::Completions { .. } | Self::Man { .. } | Self::Version => false,
        }
    }

    /// Returns whether the command handles signals itself.
    pub(crate) fn handles_signals(&self) -> bool {
        matches!(self, Self::Pets(Pets::Import(_) | Pets::Export(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::settings::{Values, flag, variable};

    fn help() -> String {
        tree(None).render_long_help().to_string()
    }

    #[test]
    fn the_tree_is_consistent() {
        tree(None).debug_assert();
    }

    #[test]
    fn the_help_names_every_setting_with_its_variable() {
        let help = help();
        for name in Values::NAMES {
            assert!(help.contains(&flag(name)), "{name}");
            assert!(help.contains(&variable(name)), "{name}");
        }
    }

    #[test]
    fn the_help_lists_every_exit_code() {
        let help = help();
        let kinds = [
            Kind::Internal,
            Kind::Usage,
            Kind::Config,
            Kind::Refused,
            Kind::Service,
            Kind::Network,
            Kind::RateLimited,
            Kind::Partial,
            Kind::NotFound,
            Kind::Interrupted,
        ];
        for kind in kinds {
            assert!(
                help.contains(&format!("\n  {:>3}  ", kind.code())),
                "{kind:?}"
            );
        }
        for kind in [Kind::Terminated, Kind::HungUp] {
            assert!(help.contains(&format!("{} for ", kind.code())), "{kind:?}");
        }
    }
}
