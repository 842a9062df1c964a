//! The arguments, and the command that they start.

use clap::{ArgAction, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use super::import::Import;
use super::{api, auth, config, data, doctor, help, limits};
use crate::context::Context;
use crate::env::Env;
use crate::error::CliError;
use crate::global::GlobalArgs;

/// The width of the help in columns.
const WIDTH: usize = 80;

#[derive(Debug, Parser)]
#[command(name = "petstore", version, subcommand_required = true)]
/// List, create and import pets of a Pet Store service.
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
    Pets(Pets),
    /// Show the store.
    #[command(subcommand)]
    Store(Store),
    Api(Box<api::Api>),
    #[command(aliases = ["rate-limit", "rate-limits"])]
    Limits(limits::Limits),
    /// Log in, log out, check the API key.
    #[command(subcommand)]
    Auth(Auth),
    /// Show and change settings and profiles.
    #[command(subcommand)]
    Config(config::Config),
    /// Check configuration, key, service, clock and rate limits.
    Doctor,
    #[cfg(feature = "mock")]
    Mock(Box<crate::commands::mock::Mock>),
    #[command(alias = "completion")]
    Completions(help::Completions),
    Man(help::Man),
    Help(help::Help),
    /// Print the version.
    #[command(hide = true)]
    Version,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pets {
    #[command(visible_alias = "ls")]
    List(data::List),
    #[command(visible_alias = "add")]
    Create(data::Create),
    #[command(visible_alias = "show")]
    Get(data::Get),
    Import(Import),
    Export(data::Export),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// List orders.
    Orders,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    Login(auth::Login),
    /// Show the key in use, and whether the service accepts it.
    Status,
    /// Remove the stored API key of the profile.
    Logout,
}

/// Returns the command tree with the texts of the help.
pub(crate) fn tree() -> Command {
    lay_out(
        Args::command().term_width(WIDTH).args_override_self(true),
        "petstore",
    )
}

/// Reads the arguments.
pub(crate) fn parse(env: &Env) -> Result<Args, clap::Error> {
    let width = env.columns().unwrap_or(WIDTH).clamp(40, WIDTH);
    let matches = tree().term_width(width).try_get_matches_from(&env.args)?;
    Args::from_arg_matches(&matches)
}

/// Sets the layout of the help of a command and its subcommands: examples, options, notes.
fn lay_out(command: Command, path: &str) -> Command {
    let help = clap::Arg::new("help").short('h').long("help");
    let help = help.action(ArgAction::Help).help("print this help");
    let command = command
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .arg(help);
    let mut usage = match command.has_subcommands() {
        true => format!("{path} <command> [options]"),
        false => format!("{path} [options]"),
    };
    for arg in command.get_positionals() {
        let name = arg.get_id().as_str().to_uppercase();
        usage += &if arg.is_required_set() {
            format!(" {name}")
        } else {
            format!(" [{name}]")
        };
    }
    let text = help::text(path).map_or_else(
        || format!("Commands:\n{{subcommands}}\n\nExamples and options: {path} <command> --help\n"),
        str::to_owned,
    );
    let text = format!("{{about-with-newline}}\nUsage: {{usage}}\n\n{text}");
    // The commands of the mock have a help of their own.
    let is_own = !path.starts_with("petstore mock ");
    let command = if is_own {
        command.override_usage(usage).help_template(text)
    } else {
        command
    };
    command.mut_subcommands(|inner| {
        let path = format!("{path} {}", inner.get_name());
        lay_out(inner, &path)
    })
}

impl Cmd {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        match self {
            Self::Pets(Pets::List(list)) => list.run(context).await,
            Self::Pets(Pets::Create(create)) => create.run(context).await,
            Self::Pets(Pets::Get(get)) => get.run(context).await,
            Self::Pets(Pets::Import(import)) => import.run(context).await,
            Self::Pets(Pets::Export(export)) => export.run(context).await,
            Self::Store(Store::Orders) => data::orders(context).await,
            Self::Api(api) => api.run(context).await,
            Self::Limits(limits) => limits.run(context).await,
            Self::Auth(Auth::Login(login)) => login.run(context).await,
            Self::Auth(Auth::Status) => auth::status(context).await,
            Self::Auth(Auth::Logout) => auth::logout(context),
            Self::Config(config) => config.run(context).await,
            Self::Doctor => doctor::run(context).await,
            #[cfg(feature = "mock")]
            Self::Mock(mock) => mock.run(context).await,
            Self::Completions(completions) => completions.run(context),
            Self::Man(man) => man.run(context, tree()),
            Self::Help(help) => help.run(context, tree()),
            Self::Version => context.print(concat!("petstore ", env!("CARGO_PKG_VERSION"), "\n")),
        }
    }

    /// Returns whether the command needs the configuration. Others work even if it is invalid.
    pub(crate) fn needs_settings(&self) -> bool {
        match self {
            Self::Config(config) => !matches!(config, config::Config::Path),
            Self::Pets(_) | Self::Store(_) | Self::Api(_) | Self::Limits(_) | Self::Auth(_) => true,
            _ => false,
        }
    }

    /// Returns whether the command handles signals itself.
    pub(crate) fn handles_signals(&self) -> bool {
        #[cfg(feature = "mock")]
        if matches!(self, Self::Mock(_)) {
            return true;
        }
        matches!(self, Self::Pets(Pets::Import(_)))
    }
}
