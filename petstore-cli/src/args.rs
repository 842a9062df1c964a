//! The command line: what can be typed, and which command it starts.

use clap::{CommandFactory as _, Parser, Subcommand};

#[cfg(feature = "mock")]
use crate::commands::Mock;
use crate::commands::{
    Api, Completions, Docs, Doctor, Help, Limits, Man, auth, config, pets, store,
};
use crate::context::Context;
use crate::error::CliError;
use crate::exit;
use crate::flags::GlobalArgs;

const EXAMPLES: &str = "\
Variables:
  PETSTORE_BASE_URL      the service's base URL, such as https://HOST/v1
  PETSTORE_API_KEY       the API key; there is no flag for it
  PETSTORE_API_KEY_FILE  a file with the API key in it
  PETSTORE_PROFILE       the profile of the configuration to use

Examples:
  petstore --mock pets list
  petstore pets list --status available
  petstore pets create Rex --category-id 7";

/// A command line for the Pet Store service
///
/// Results go to standard output, all else to standard error. Requests that a rate limit refused
/// are held back as long as the service asks for, and only then sent again.
#[derive(Debug, Parser)]
#[command(name = "petstore", version, propagate_version = true)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit::HELP.trim_end()))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists, adds, gets, imports and exports pets
    #[command(subcommand)]
    Pets(Pets),
    /// Looks into the store
    #[command(subcommand)]
    Store(Store),
    Api(Api),
    Limits(Limits),
    /// Keeps, checks and forgets API keys
    #[command(subcommand)]
    Auth(Auth),
    /// Shows and changes the configuration
    #[command(subcommand)]
    Config(Config),
    Doctor(Doctor),
    #[cfg(feature = "mock")]
    Mock(Box<Mock>),
    Completions(Completions),
    Man(Man),
    Docs(Docs),
    Help(Help),
}

/// Returns all that can be typed.
pub(crate) fn tree() -> clap::Command {
    let without_help = |command: clap::Command| command.disable_help_subcommand(true);
    without_help(Args::command()).mut_subcommands(without_help)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    Login(auth::Login),
    Status(auth::Status),
    Logout(auth::Logout),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    List(config::List),
    Get(config::Get),
    Set(config::Set),
    Unset(config::Unset),
    Use(config::Use),
    Path(config::Path),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pets {
    List(pets::List),
    Create(pets::Create),
    Get(pets::Get),
    Import(pets::Import),
    Export(pets::Export),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    Orders(store::Orders),
}

impl Command {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        match self {
            Self::Pets(Pets::List(list)) => list.run(context).await,
            Self::Pets(Pets::Create(create)) => create.run(context).await,
            Self::Pets(Pets::Get(get)) => get.run(context).await,
            Self::Pets(Pets::Import(import)) => import.run(context).await,
            Self::Pets(Pets::Export(export)) => export.run(context).await,
            Self::Store(Store::Orders(orders)) => orders.run(context).await,
            Self::Api(api) => api.run(context).await,
            Self::Limits(limits) => limits.run(context).await,
            Self::Auth(Auth::Login(login)) => login.run(context).await,
            Self::Auth(Auth::Status(status)) => status.run(context).await,
            Self::Auth(Auth::Logout(logout)) => logout.run(context),
            Self::Config(Config::List(list)) => list.run(context).await,
            Self::Config(Config::Get(get)) => get.run(context).await,
            Self::Config(Config::Set(set)) => set.run(context),
            Self::Config(Config::Unset(unset)) => unset.run(context),
            Self::Config(Config::Use(choice)) => choice.run(context),
            Self::Config(Config::Path(path)) => path.run(context).await,
            Self::Doctor(doctor) => doctor.run(context).await,
            #[cfg(feature = "mock")]
            Self::Mock(mock) => mock.run(context).await,
            Self::Completions(completions) => completions.run(context),
            Self::Man(man) => man.run(context),
            Self::Docs(docs) => docs.run(context).await,
            Self::Help(help) => help.run(context),
        }
    }

    /// Returns whether the command needs to know what the configuration says; others work with a
    /// broken one too.
    pub(crate) fn reads_settings(&self) -> bool {
        match self {
            Self::Config(Config::Path(_)) | Self::Doctor(_) => false,
            Self::Completions(_) | Self::Man(_) | Self::Docs(_) | Self::Help(_) => false,
            #[cfg(feature = "mock")]
            Self::Mock(_) => false,
            _ => true,
        }
    }

    /// Returns whether the command sees to Ctrl-C itself.
    pub(crate) fn minds_signals(&self) -> bool {
        #[cfg(feature = "mock")]
        if matches!(self, Self::Mock(_)) {
            return true;
        }
        matches!(self, Self::Pets(Pets::Import(_)))
    }

    /// Returns whether the command may change something at the service.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::Pets(Pets::Create(_)) => true,
            Self::Api(api) => api.changes(),
            _ => false,
        }
    }
}
