//! `petstore store …`: the store.

use clap::Subcommand;

use crate::context::Context;
use crate::error::Result;
use crate::output::{ANY, Shape};
use crate::session::Purpose;

#[derive(Debug, Subcommand)]
pub(crate) enum Store {
    /// List orders.
    #[command(after_long_help = examples!(
        "petstore store orders -o json";
        "The specification does not describe orders: the columns are the fields that the service \
         sends."
    ))]
    Orders,
}

const ORDERS: Shape = Shape {
    noun: "orders",
    ..ANY
};

impl Store {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Orders => orders(context).await,
        }
    }
}

async fn orders(context: &Context) -> Result<()> {
    let printer = context.printer();
    let output = printer.start(ORDERS)?;
    let client = context.connect(Purpose::Read).await?;
    let orders = client.store().orders().await?;
    // An empty table would show nothing.
    if printer.is_table() && orders.as_array().is_some_and(Vec::is_empty) {
        context.ui().note("no orders");
    }
    output.document(&orders)
}
