//! `petstore pets …`: the service's pets.

pub(crate) mod create;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod list;
mod part_file;
mod search;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use petstore_client::operations::{ListPets, Pages};
use petstore_client::url::Url;
use petstore_client::{Client, Page, Pet, PetStatus};

use super::import::Import;
use crate::context::Context;
use crate::error::Result;
use crate::output::Shape;

/// All fields after the name can be hidden, and all after the category can be missing.
pub(crate) const PETS: Shape = Shape {
    noun: "pets",
    fields: Pet::FIELDS,
    dropped: Pet::FIELDS.split_at(2).1,
    nullable: Pet::FIELDS.split_at(3).1,
};

/// The maximum number of pets in a page.
const MAX_PAGE: u32 = 100;

#[derive(Debug, Subcommand)]
pub(crate) enum Pets {
    #[command(alias = "ls")]
    List(list::List),
    #[command(aliases = ["add", "new"])]
    Create(create::Create),
    /// Show a pet. The service removes this on 5 December 2030.
    #[command(alias = "show", after_long_help = examples!(
        "petstore pets get 7";
        "`petstore pets list --id 7` finds a pet in the list, with a request for every 100 pets."
    ))]
    Get {
        /// The pet's identifier
        #[arg(allow_negative_numbers = true)]
        id: i64,
    },
    Import(Import),
    Export(export::Export),
}

impl Pets {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Create(create) => create.run(context).await,
            Self::Get { id } => get::run(context, id).await,
            // Their futures are nested so deeply that the compiler's limit is near.
            Self::Import(import) => Box::pin(import.run(context)).await,
            Self::Export(export) => Box::pin(export.run(context)).await,
        }
    }
}

/// Parses one of the service's three statuses.
fn status() -> impl TypedValueParser<Value = PetStatus> {
    PossibleValuesParser::new(["available", "pending", "sold"]).map(PetStatus::from)
}

/// Returns the call that lists pets.
fn select(client: &Client, limit: Option<u32>, status: Option<PetStatus>) -> ListPets {
    let mut list = client.pets().list();
    if let Some(limit) = limit {
        list = list.limit(limit);
    }
    if let Some(status) = status {
        list = list.status(status);
    }
    list
}

/// The pages of a list, and whether they are all.
struct PetPages {
    pages: Pages,
    has_more: Option<bool>,
}

impl PetPages {
    /// Starts at the first page, or continues at a later one.
    fn new(list: ListPets, next: Option<Url>) -> Self {
        let has_more = next.is_some().then_some(true);
        let list = match next {
            Some(next) => list.from_page(next),
            None => list,
        };
        Self {
            pages: list.pages(),
            has_more,
        }
    }

    async fn next(&mut self) -> Result<Option<Page<Pet>>> {
        let Some(page) = self.pages.try_next().await? else {
            return Ok(None);
        };
        self.has_more = match (page.has_more(), self.has_more) {
            // Earlier pages had links, so a full page without a link is the last one.
            (None, Some(_)) => Some(false),
            (has_more, _) => has_more,
        };
        Ok(Some(page))
    }

    /// Returns whether more pets follow the last page; `None` if the service does not say.
    fn has_more(&self) -> Option<bool> {
        self.has_more
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};
    use petstore_client::NewPet;

    use super::*;

    #[test]
    fn each_field_of_a_pet_has_its_place_in_the_output() {
        let least = NewPet::new("Rex", 7).into_pet(1);
        let least = serde_json::to_value(&least).unwrap();
        for field in Pet::FIELDS {
            let is_optional = least.get(field).is_none();
            assert_eq!(PETS.nullable.contains(field), is_optional, "{field}");
            let is_kept = ["id", "name"].contains(field);
            assert_eq!(PETS.dropped.contains(field), !is_kept, "{field}");
        }
    }

    #[test]
    fn the_documents_of_an_import_name_each_field() {
        let help = Import::augment_args(Command::new("import")).render_help();
        let help = help.to_string();
        let readme = include_str!("../../../README.md");
        for field in &Pet::FIELDS[1..] {
            assert!(help.contains(field), "{field} in the help");
            let named = format!("`{field}`");
            assert!(readme.contains(&named), "{field} in the README");
        }
    }

    #[test]
    fn each_field_of_a_new_pet_has_an_argument() {
        let command = create::Create::augment_args(Command::new("create"));
        for field in &Pet::FIELDS[1..] {
            let mut id = String::new();
            for letter in field.chars() {
                if letter.is_uppercase() {
                    id.push('_');
                }
                id.extend(letter.to_lowercase());
            }
            let has_argument = command
                .get_arguments()
                .any(|arg| arg.get_id() == id.as_str());
            assert!(has_argument, "no argument `{id}`");
        }
    }
}
