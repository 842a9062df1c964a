//! `petstore store orders`.

use crate::context::Context;
use crate::error::CliError;
use crate::output::Records;

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
        let client = context.client().await?;
        let orders = client.store().orders().await?;
        context.report.called("GET /store/orders", &orders);
        context.print(&Records::free(orders.into_inner()))
    }
}
