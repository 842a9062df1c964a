//! `petstore pets export`.

use petstore_client::{More, PetStatus};

use super::shared;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::OutputFormat;

/// Writes all pets
///
/// Every page, as NDJSON unless another format is asked for; `petstore pets import` reads it. Where
/// not all could be had, the exit code is not 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore pets export > pets.ndjson
  petstore pets export --status sold -o csv > sold.csv")]
pub(crate) struct Export {
    /// Only pets with this status
    #[arg(long, value_parser = shared::status())]
    status: Option<PetStatus>,
}

impl Export {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut output = context.output_or(OutputFormat::Ndjson, shared::FIELDS)?;
        let client = context.client().await?;
        let mut list = client.pets().list().limit(100);
        if let Some(status) = self.status {
            list = list.status(status);
        }
        let first = list.clone().limit(1);
        let mut pages = list.pages();
        let (mut more, mut walked) = (More::No, 0);
        while let Some(page) = pages.try_next().await? {
            more = page.more();
            walked += 1;
            output.rows(&page)?;
        }
        output.done().await?;
        // The last page is full, and offers no next one. That is the end where the service does
        // offer next pages: it did before, or does for a page of one.
        if more == More::No || walked > 1 || first.send().await?.more() == More::Yes {
            return Ok(());
        }
        Err(CliError::new(
            Exit::Partial,
            "the last page is full and the service offers no next one: there may be more pets",
        ))
    }
}
