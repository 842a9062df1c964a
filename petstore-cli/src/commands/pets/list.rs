//! `petstore pets list`.

use petstore_client::{More, PetStatus};

use super::shared;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Lists pets
///
/// One page of them, unless --all is given. Where more may exist than are shown, a note on
/// standard error says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore pets list
  petstore pets list --status available --limit 50
  petstore pets list --all -o ndjson
  petstore pets list --fields id,name -o csv
  petstore pets list --all --jq 'map(.name) | sort'")]
pub(crate) struct List {
    /// How many pets a page holds, 1 to 100. Without it: 20, the service's default, or 100 with
    /// --all
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = page_size)]
    limit: Option<u32>,

    /// Only pets with this status
    #[arg(long, value_parser = shared::status())]
    status: Option<PetStatus>,

    /// All pages, as far as the service offers a next one
    #[arg(long)]
    all: bool,

    /// Ends with exit code 8 where more pets may exist than are listed
    #[arg(long)]
    fail_if_truncated: bool,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut output = context.output(shared::FIELDS)?;
        let client = context.client().await?;
        let mut list = client.pets().list();
        if let Some(limit) = self.limit.or(self.all.then_some(100)) {
            list = list.limit(limit);
        }
        if let Some(status) = self.status {
            list = list.status(status);
        }
        let mut pages = list.pages();
        let mut more = More::No;
        while let Some(page) = pages.try_next().await? {
            more = page.more();
            output.rows(&page)?;
            if !self.all {
                break;
            }
        }
        output.done().await?;
        let missing = match more {
            More::Yes => "there are more pets; `--all` lists them all",
            More::Maybe => {
                "the page is full and the service offers no next one: there may be more pets"
            }
            _ => return Ok(()),
        };
        if self.fail_if_truncated {
            return Err(CliError::new(Exit::Partial, missing));
        }
        context.report.note(missing);
        Ok(())
    }
}

fn page_size(text: &str) -> Result<u32, String> {
    let size = text.parse().ok().filter(|size| (1..=100).contains(size));
    size.ok_or_else(|| "a page holds from 1 to 100 pets".to_owned())
}
