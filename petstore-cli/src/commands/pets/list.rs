//! `petstore pets list`.

use clap::value_parser;
use petstore_client::PetStatus;

use super::search;
use super::{MAX_PAGE, PETS, PetPages, select, status};
use crate::context::Context;
use crate::error::{CliError, Kind, Result};
use crate::session::Purpose;

/// List pets: the first page, unless --max or --all is given.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore pets list --status available",
    "petstore pets list --max 250",
    "petstore pets list --id 7",
    "petstore pets list --all -o ndjson > pets.ndjson",
    "petstore pets list --fields id,name -o csv",
    "petstore pets list --all --jq 'map(.name) | sort'",
    "petstore pets list --jq '.[].id'";
    "Fields: id, name, categoryId, status, and any other that the service sends",
    "Each page uses one request of the quotas."
))]
pub(crate) struct List {
    /// Only pets with this status
    #[arg(long, value_parser = status())]
    status: Option<PetStatus>,

    /// Only these pets, searched in all pages; may be repeated
    #[arg(long = "id", value_name = "ID", value_delimiter = ',', conflicts_with_all = ["max", "limit"])]
    #[arg(allow_negative_numbers = true)]
    ids: Vec<i64>,

    /// At most N pets, over several pages
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = value_parser!(u32).range(1..))]
    max: Option<u32>,

    /// All pages
    #[arg(long, conflicts_with = "max")]
    all: bool,

    /// Pets per page, 1 to 100 [default: 20; with --max or --all 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = value_parser!(u32).range(1..=MAX_PAGE.into()))]
    limit: Option<u32>,

    /// Exit with 8 if there may be more pets
    #[arg(long)]
    fail_if_truncated: bool,
}

impl List {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let page_size = self.page_size();
        if !self.ids.is_empty() {
            return search::run(context, self.ids, self.status).await;
        }
        let mut output = context.printer().start(PETS)?;
        let client = context.connect(Purpose::Read).await?;
        let mut pages = PetPages::new(select(&client, page_size, self.status.clone()), None);
        let max = self.max.map_or(usize::MAX, |max| max as usize);
        let is_one_page = !self.all && self.max.is_none();
        let mut has_more = Some(false);
        let mut count = 0;
        while let Some(page) = pages.next().await? {
            has_more = pages.has_more();
            let wanted = page.len().min(max - count);
            if wanted < page.len() {
                has_more = Some(true);
            }
            output.rows(page.get(..wanted).unwrap_or_default())?;
            count += wanted;
            if is_one_page || count >= max {
                break;
            }
        }
        context.ui().late_field(output.finish()?);
        let missing = match has_more {
            Some(true) => "there are more pets; `--max N` or `--all` lists them",
            None => "there may be more pets",
            Some(false) => return Ok(()),
        };
        if self.fail_if_truncated {
            return Err(CliError::new(Kind::Partial, missing));
        }
        context.ui().note(missing);
        Ok(())
    }

    /// Returns the size of a page; the service's default if `None`.
    fn page_size(&self) -> Option<u32> {
        if self.limit.is_some() {
            return self.limit;
        }
        match self.max {
            Some(max) => Some(max.min(MAX_PAGE)),
            None if self.all => Some(MAX_PAGE),
            None => None,
        }
    }
}
