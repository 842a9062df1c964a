//! `petstore pets list`.

use futures_util::TryStreamExt as _;
use petstore_client::{ListPets, More, Pet, PetStatus};

use super::shared;
use crate::context::Context;
use crate::error::CliError;

/// Lists pets
///
/// One page of them, unless --all is given. Where more may exist than are shown, a note on
/// standard error says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore pets list
  petstore pets list --status available --limit 50
  petstore pets list --all -o json")]
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
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let client = context.client().await?;
        let mut list = client.pets().list();
        if let Some(limit) = self.limit.or(self.all.then_some(100)) {
            list = list.limit(limit);
        }
        if let Some(status) = self.status {
            list = list.status(status);
        }
        let (pets, more) = fetch(context, list, self.all).await?;
        context.print(&shared::records(&pets)?)?;
        match more {
            More::Yes => context.report.note("there are more pets; `--all` lists them all"),
            More::Maybe => context.report.note(
                "the page is full and the service offers no next one: there may be more pets",
            ),
            _ => {}
        }
        Ok(())
    }
}

fn page_size(text: &str) -> Result<u32, String> {
    let size = text.parse().ok().filter(|size| (1..=100).contains(size));
    size.ok_or_else(|| "a page holds from 1 to 100 pets".to_owned())
}

/// Fetches all pages before anything is shown: a list that breaks off is an error, not a list.
async fn fetch(
    context: &Context,
    list: ListPets<'_>,
    all: bool,
) -> Result<(Vec<Pet>, More), CliError> {
    let mut pages = list.pages();
    let mut pets = Vec::new();
    let mut more = More::No;
    while let Some(page) = pages.try_next().await? {
        context.report.called("listPets", &page);
        more = page.more();
        pets.extend(page.into_inner());
        if !all {
            break;
        }
    }
    Ok((pets, more))
}
