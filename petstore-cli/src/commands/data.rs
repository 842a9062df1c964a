//! `petstore pets …` and `petstore store …`: the service's data.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use petstore_client::operations::ListPets;
use petstore_client::{Client, ErrorKind, More, NewPet, PetStatus};

use super::dry_run;
use super::import::Input;
use crate::context::{Context, MAX_BODY, Purpose, input_name};
use crate::error::{CliError, Invalid, Kind};
use crate::output::{ANY, OutputFormat, Shape};
use crate::settings::parse;

/// The maximum number of pets in a page.
const MAX_PAGE: u32 = 100;

pub(crate) const PETS: Shape = Shape {
    noun: "pets",
    fields: &["id", "name", "categoryId", "status"],
    dropped: &["categoryId", "status"],
};

/// Parses one of the service's three statuses.
fn status() -> impl TypedValueParser<Value = PetStatus> {
    PossibleValuesParser::new(["available", "pending", "sold"]).map(PetStatus::from)
}

/// Parses a number of pets.
fn amount(text: &str) -> Result<i64, Invalid> {
    let is_all = text == "all";
    let hint = is_all.then(|| "`--all` lists all pets".to_owned());
    text.parse().map_err(|error| Invalid {
        hint,
        ..Invalid::from(error)
    })
}

fn page_size(text: &str) -> Result<u32, Invalid> {
    let size = amount(text)?;
    let invalid = || Invalid::new(": a page has 1 to 100 pets");
    match u32::try_from(size) {
        Ok(size @ 1..=MAX_PAGE) => Ok(size),
        Ok(size @ 1..) => Err(invalid().hint(format!(
            "`--max {size}` lists {size} pets over several pages"
        ))),
        _ => Err(invalid()),
    }
}

fn max(text: &str) -> Result<usize, Invalid> {
    let max = usize::try_from(amount(text)?).ok().filter(|max| *max > 0);
    max.ok_or_else(|| Invalid::new(": give a number from 1"))
}

fn select(client: &Client, limit: Option<u32>, status: Option<PetStatus>) -> ListPets {
    let list = client.pets().list();
    let list = if let Some(limit) = limit {
        list.limit(limit)
    } else {
        list
    };
    if let Some(status) = status {
        list.status(status)
    } else {
        list
    }
}

/// List pets: the first page, unless --max or --all is given.
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// only pets with this status: available, pending or sold
    #[arg(long, value_parser = status(), hide_possible_values = true)]
    status: Option<PetStatus>,

    /// at most N pets, over several pages
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = max)]
    max: Option<usize>,

    /// all pages
    #[arg(long, conflicts_with = "max")]
    all: bool,

    /// pets per page, 1 to 100 [default: 20; with --max or --all 100]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = page_size)]
    limit: Option<u32>,

    /// exit with 8 if there may be more pets
    #[arg(long)]
    fail_if_truncated: bool,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut output = context.output(PETS)?;
        let client = context.client(Purpose::Read).await?;
        let max = self.max;
        let fewest = |max: usize| u32::try_from(max).unwrap_or(MAX_PAGE).min(MAX_PAGE);
        let limit = self
            .limit
            .or(max.map(fewest))
            .or(self.all.then_some(MAX_PAGE));
        let mut pages = select(&client, limit, self.status).pages();
        let (mut more, mut count, mut pages_offered) = (More::No, 0, false);
        while let Some(page) = pages.try_next().await? {
            pages_offered |= more == More::Yes;
            more = page.more();
            let wanted = max.map_or(page.len(), |max| page.len().min(max - count));
            if wanted < page.len() {
                more = More::Yes;
            }
            output.rows(page.get(..wanted).unwrap_or_default())?;
            count += wanted;
            if !self.all && max.is_none_or(|max| count >= max) {
                break;
            }
        }
        context.finish(output)?;
        let missing = match more {
            More::Yes => "there are more pets; `--max N` or `--all` lists them",
            // A full last page is the end where the service did offer next pages.
            More::Maybe if !pages_offered => "there may be more pets",
            _ => return Ok(()),
        };
        if self.fail_if_truncated {
            return Err(CliError::new(Kind::Partial, missing));
        }
        context.ui.note(missing);
        Ok(())
    }
}

/// Show a pet. The service removes this on 5 December 2030.
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// the pet's identifier
    #[arg(allow_negative_numbers = true, value_parser = parse::<i64>)]
    id: i64,
}

impl Get {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let output = context.output(PETS)?;
        let client = context.client(Purpose::Read).await?;
        #[expect(deprecated, reason = "available until the service removes it")]
        let pet = client.pets().get(self.id).await;
        let pet = pet.map_err(|error| match error.kind() {
            ErrorKind::Gone => {
                let problem = "the service has removed `pets get` (410 operation_removed)";
                let filter = format!("map(select(.id == {}))", self.id);
                CliError::new(Kind::NotFound, problem)
                    .hint(format!("use `petstore pets list --all --jq '{filter}'`"))
            }
            _ if error.is_not_found() && error.code() != Some("route_not_found") => {
                CliError::new(Kind::NotFound, format!("no pet {}", self.id))
                    .hint("`petstore pets list --all` lists all pets")
            }
            _ => error.into(),
        })?;
        output.document(&*pet)
    }
}

/// Create a pet.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// the animal's name
    name: Option<String>,

    /// the identifier of its category
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse::<i64>)]
    category_id: Option<i64>,

    /// available, pending or sold [default: chosen by the service]
    #[arg(long, value_parser = status(), hide_possible_values = true)]
    status: Option<PetStatus>,

    /// read the pet from a JSON file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "category_id", "status"])]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// show the request without sending it
    #[arg(long)]
    dry_run: bool,
}

impl Create {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let dry_run = self.dry_run;
        let output = context.output(if dry_run { ANY } else { PETS })?;
        let pet = self.pet(context).await?;
        if dry_run {
            let request = dry_run::client(context)?.pets().create(&pet).build()?;
            return dry_run::show(context, output, &request);
        }
        let client = context.client(Purpose::CreatePet).await?;
        let created = client.pets().create(&pet).await?;
        context.ui.done("created");
        output.document(&*created).map_err(|error| match error {
            CliError::Failure(mut failure) => {
                failure.kind = Kind::Partial;
                failure.message += &format!("; pet {} was created", created.id);
                CliError::Failure(failure)
            }
            other => other,
        })
    }

    async fn pet(self, context: &mut Context) -> Result<NewPet, CliError> {
        if let Some(file) = self.file {
            let bytes = context.read(&file, "a pet", MAX_BODY).await?;
            let name = input_name(&file);
            return serde_json::from_slice(&bytes).or_else(|_| {
                if bytes.trim_ascii_start().starts_with(b"{") {
                    // The import names each mistake.
                    Input::read(name.clone(), bytes)?;
                }
                Err(
                    CliError::new(Kind::Input, format!("{name} is not a JSON object")).hint(
                        r#"a pet looks like {"name":"Rex","categoryId":7,"status":"available"}"#,
                    ),
                )
            });
        }
        let (Some(name), Some(category)) = (self.name, self.category_id) else {
            return Err(
                CliError::usage("`pets create` needs a name and --category-id")
                    .hint("`petstore pets create Rex --category-id 7`"),
            );
        };
        let pet = NewPet::new(name, category);
        Ok(if let Some(status) = self.status {
            pet.with_status(status)
        } else {
            pet
        })
    }
}

/// Write all pets.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// only pets with this status: available, pending or sold
    #[arg(long, value_parser = status(), hide_possible_values = true)]
    status: Option<PetStatus>,
}

impl Export {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), CliError> {
        let mut output = context.output_or(OutputFormat::Ndjson, PETS)?;
        let client = context.client(Purpose::Read).await?;
        let list = select(&client, Some(MAX_PAGE), self.status);
        let first = list.clone().limit(1);
        let mut pages = list.pages();
        let (mut more, mut count) = (More::No, 0);
        while let Some(page) = pages.try_next().await? {
            more = page.more();
            count += 1;
            output.rows(&page)?;
        }
        context.finish(output)?;
        // The last page is full, and has no link to a next page. It is the end if the service sends
        // such links at all: for an earlier page, or for a page of one pet.
        if more == More::No || count > 1 || first.send().await?.more() == More::Yes {
            return Ok(());
        }
        Err(CliError::new(
            Kind::Partial,
            "there may be more pets: the last page is full",
        ))
    }
}

pub(crate) async fn orders(context: &mut Context) -> Result<(), CliError> {
    let output = context.output(Shape {
        noun: "orders",
        ..ANY
    })?;
    let client = context.client(Purpose::Read).await?;
    let orders = client.store().orders().await?;
    // A table of nothing shows nothing.
    if context.options.is_table() && orders.as_array().is_some_and(Vec::is_empty) {
        context.ui.note("no orders");
    }
    output.document(&*orders)
}
