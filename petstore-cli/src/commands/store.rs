//! `petstore store …`: the store.

use clap::Subcommand;

use crate::error::Result;
use crate::output::{ANY, Printer, Shape};
use crate::session::{Connector, Purpose};
use crate::ui::Ui;

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
    pub(crate) async fn run(self, connector: &Connector, printer: &Printer, ui: &Ui) -> Result<()> {
        match self {
            Self::Orders => orders(connector, printer, ui).await,
        }
    }
}

async fn orders(connector: &Connector, printer: &Printer, ui: &Ui) -> Result<()> {
    let output = printer.start(ORDERS)?;
    let client = connector.connect(Purpose::Read).await?;
    let orders = client.store().orders().await?;
    // An empty table would show nothing.
    if printer.is_table() && orders.as_array().is_some_and(Vec::is_empty) {
        ui.note("no orders");
    }
    output.document(&orders)
}
