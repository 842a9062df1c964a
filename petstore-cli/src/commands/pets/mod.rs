//! `petstore pets …`: the service's pets.

pub(crate) mod create;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod list;
mod part_file;
mod search;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use petstore_client::operations::ListPets;
use petstore_client::{Client, Pet, PetStatus};

use super::import::Import;
use crate::context::Context;
use crate::error::{CliError, Result};
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
    #[command(alias = "show")]
    Get(get::Get),
    Import(Import),
    Export(export::Export),
}

impl Pets {
    pub(crate) async fn run(self, context: &mut Context) -> Result<()> {
        let connector = context.connector().clone();
        let printer = context.printer().clone();
        let ui = context.ui().clone();
        match self {
            Self::List(list) => list.run(&connector, &printer, &ui).await,
            Self::Create(create) => {
                create
                    .run(&connector, &printer, &ui, context.reader())
                    .await
            }
            Self::Get(get) => get.run(&connector, &printer).await,
            // Their futures are nested so deeply that the compiler's limit is near.
            Self::Import(import) => Box::pin(import.run(context)).await,
            Self::Export(export) => Box::pin(export.run(context)).await,
        }
    }
}

/// Filters by status. The service takes one.
#[derive(Debug, clap::Args)]
pub(crate) struct StatusFilter {
    /// Only pets with this status
    #[arg(long = "status", value_name = "STATUS", value_parser = status(), value_delimiter = ',')]
    statuses: Vec<PetStatus>,
}

impl StatusFilter {
    /// Returns the status, if one is set.
    fn one(self) -> Result<Option<PetStatus>> {
        let mut statuses = self.statuses;
        statuses.dedup();
        if statuses.len() < 2 {
            return Ok(statuses.pop());
        }
        let hint = "`--all --jq 'map(select(.status != \"sold\"))'` lists those of two";
        Err(CliError::usage("`--status` takes one status").hint(hint))
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
        let arg = |id: &str| command.get_arguments().find(|arg| arg.get_id() == id);
        let excluded = command.get_arg_conflicts_with(arg("file").unwrap());
        for field in &Pet::FIELDS[1..] {
            let mut id = String::new();
            for letter in field.chars() {
                if letter.is_uppercase() {
                    id.push('_');
                }
                id.extend(letter.to_lowercase());
            }
            assert!(arg(&id).is_some(), "no argument `{id}`");
            let is_excluded = excluded.iter().any(|arg| arg.get_id() == id.as_str());
            assert!(is_excluded, "`--file` does not exclude `{id}`");
        }
    }
}
