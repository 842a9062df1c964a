//! The command line: what can be typed, and which command it starts.

use clap::{Parser, Subcommand};

use crate::commands::{Api, Limits, pets, store};
use crate::context::Context;
use crate::error::CliError;
use crate::exit;
use crate::settings::GlobalArgs;

const EXAMPLES: &str = "\
Variables:
  PETSTORE_BASE_URL  the service's base URL, such as https://HOST/v1
  PETSTORE_API_KEY   the API key; there is no flag for it

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
#[command(after_help = format!("{EXAMPLES}\n\n{}", exit::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists, adds and gets pets
    #[command(subcommand)]
    Pets(Pets),
    /// Looks into the store
    #[command(subcommand)]
    Store(Store),
    Api(Api),
    Limits(Limits),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pets {
    List(pets::List),
    Create(pets::Create),
    Get(pets::Get),
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
            Self::Store(Store::Orders(orders)) => orders.run(context).await,
            Self::Api(api) => api.run(context).await,
            Self::Limits(limits) => limits.run(context).await,
        }
    }

    /// Returns whether the command may change something at the service.
    pub(crate) fn changes(&self) -> bool {
        matches!(self, Self::Pets(Pets::Create(_)) | Self::Api(_))
    }
}
