//! `petstore store orders`.

use crate::context::Context;
use crate::error::CliError;

/// Lists the store's orders
///
/// The specification names this operation and does not describe it: the columns are whatever
/// fields the service returns.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore store orders -o json")]
pub(crate) struct Orders {}

impl Orders {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(None)?;
        let client = context.client().await?;
        let orders = client.store().orders().await?;
        output.document(&*orders).await
    }
}
