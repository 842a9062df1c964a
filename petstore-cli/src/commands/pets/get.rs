//! `petstore pets get`.

use super::shared;
use crate::context::Context;
use crate::error::CliError;

/// Gets one pet (deprecated: the service removes this on 5 December 2030)
///
/// `petstore pets list --status …` is to replace it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore pets get 7")]
pub(crate) struct Get {
    /// The pet's identifier
    #[arg(allow_negative_numbers = true, value_parser = shared::identifier)]
    id: i64,
}

impl Get {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(shared::FIELDS)?;
        let client = context.client().await?;
        #[expect(deprecated, reason = "offered as long as the service offers it")]
        let pet = client.pets().get(self.id).await?;
        output.document(&*pet).await
    }
}
