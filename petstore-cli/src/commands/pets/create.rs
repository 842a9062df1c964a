//! `petstore pets create`.

use std::path::PathBuf;

use petstore_client::{Method, NewPet, PetStatus};

use super::shared;
use crate::context::{Context, input_name};
use crate::error::CliError;
use crate::output::to_text;
use crate::preview::Preview;

/// Adds a pet
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  petstore pets create Rex --category-id 7
  petstore pets create Rex --category-id 7 --status pending
  petstore pets create Rex --category-id 7 --dry-run
  echo '{\"name\":\"Rex\",\"categoryId\":7}' | petstore pets create --file -")]
pub(crate) struct Create {
    /// The animal's name
    #[arg(required_unless_present = "file", requires = "category_id")]
    name: Option<String>,

    /// The identifier of the category it belongs to
    #[arg(long, value_name = "N", allow_negative_numbers = true, requires = "name")]
    #[arg(value_parser = shared::identifier)]
    category_id: Option<i64>,

    /// Its status. What the service assumes without one is not specified
    #[arg(long, value_parser = shared::status(), requires = "name")]
    status: Option<PetStatus>,

    /// Reads the pet from a JSON file, or from standard input where it is `-`, in place of the
    /// name and the options
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "category_id", "status"])]
    file: Option<PathBuf>,

    /// Shows the request in place of sending it; needs no key and no network
    #[arg(long)]
    dry_run: bool,
}

impl Create {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(shared::FIELDS)?;
        let dry_run = self.dry_run;
        let pet = self.pet(context).await?;
        let body = to_text(&shared::json(&pet));
        if dry_run {
            let output = context.output(None)?;
            return preview(body).show(context, output).await;
        }
        let client = context.client().await?;
        let created = client.pets().create(&pet).await?;
        output.document(&*created).await
    }

    async fn pet(self, context: &mut Context) -> Result<NewPet, CliError> {
        if let Some(file) = self.file {
            let bytes = context.read(&file).await?;
            let (pet, unknown) = parse(&bytes).map_err(|problem| {
                CliError::usage(format!("{} holds no pet: {problem}", input_name(&file)))
                    .hint(r#"a pet looks like {"name":"Rex","categoryId":7,"status":"available"}"#)
            })?;
            for field in unknown {
                context
                    .report
                    .note(&format!("`{field}` is no field of a new pet, and is left out"));
            }
            return Ok(pet);
        }
        let (Some(name), Some(category)) = (self.name, self.category_id) else {
            return Err(CliError::usage("a pet needs a name and `--category-id N`"));
        };
        let pet = NewPet::new(name, category);
        Ok(match self.status {
            Some(status) => pet.with_status(status),
            None => pet,
        })
    }
}

fn preview(body: String) -> Preview {
    Preview {
        method: Method::POST,
        path: "/pets".to_owned(),
        query: Vec::new(),
        headers: Vec::new(),
        body: Some(body.into_bytes()),
    }
}

/// Reads a pet, and the names of the fields that it does not have.
fn parse(bytes: &[u8]) -> serde_json::Result<(NewPet, Vec<String>)> {
    let mut pet: NewPet = serde_json::from_slice(bytes)?;
    let unknown = std::mem::take(&mut pet.extra);
    Ok((pet, unknown.into_iter().map(|(name, _)| name).collect()))
}
