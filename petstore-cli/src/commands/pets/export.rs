//! `petstore pets export`.

use petstore_client::More;

use super::{MAX_PAGE, PETS, StatusFilter, select};
use crate::error::{CliError, Kind};
use crate::output::{OutputFormat, Printer};
use crate::session::{Connector, Purpose};
use crate::ui::Ui;

/// Write all pets.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    status: StatusFilter,
}

impl Export {
    pub(crate) async fn run(
        self,
        connector: &Connector,
        printer: &Printer,
        ui: &Ui,
    ) -> Result<(), CliError> {
        let status = self.status.one()?;
        let mut output = printer.start_or(OutputFormat::Ndjson, PETS)?;
        let client = connector.connect(Purpose::Read).await?;
        let list = select(&client, Some(MAX_PAGE), status);
        let first = list.clone().limit(1);
        let mut pages = list.pages();
        let mut more = More::No;
        let mut count = 0;
        while let Some(page) = pages.try_next().await? {
            more = page.more();
            count += 1;
            output.rows(&page)?;
        }
        ui.late_field(output.finish()?);
        // The last page is full, and has no link to a next page. It is the end if the service sends
        // such links at all: for an earlier page, or for a page of one pet.
        if more == More::No || count > 1 || first.send().await?.more() == More::Yes {
            return Ok(());
        }
        let problem = "there may be more pets: the last page is full";
        Err(CliError::new(Kind::Partial, problem))
    }
}
