//! `petstore pets create`.

use std::path::{Path, PathBuf};

use petstore_client::{NewPet, PetStatus};

use super::{PETS, status};
use crate::commands::dry_run;
use crate::commands::import::Rows;
use crate::error::{CliError, Result};
use crate::input::{MAX_BODY, Reader, input_name};
use crate::output::{ANY, Printer};
use crate::session::{Connector, Purpose};
use crate::ui::Ui;

/// Create a pet.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore pets create Rex --category-id 7",
    "petstore pets create Rex --category-id 7 --status pending",
    "petstore pets create Rex --category-id 7 --dry-run",
    "echo '{\"name\":\"Rex\",\"categoryId\":7}' | petstore pets create --file -",
    "petstore pets create Rex --category-id 7 --jq .id"
))]
pub(crate) struct Create {
    /// The animal's name
    name: Option<String>,

    /// The identifier of its category
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    category_id: Option<i64>,

    /// Its status [default: chosen by the service]
    #[arg(long, value_parser = status())]
    status: Option<PetStatus>,

    /// Read the pet from a JSON file; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "category_id", "status"])]
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Show the request without sending it
    #[arg(long)]
    dry_run: bool,
}

impl Create {
    pub(crate) async fn run(
        self,
        connector: &Connector,
        printer: &Printer,
        ui: &Ui,
        reader: &mut Reader,
    ) -> Result<()> {
        let is_dry = self.dry_run;
        let output = printer.start(if is_dry { ANY } else { PETS })?;
        let pet = match &self.file {
            Some(file) => pet_of_file(file, reader).await?,
            None => self.pet_of_args()?,
        };
        if is_dry {
            let request = dry_run::client(connector.settings())?
                .pets()
                .create(&pet)
                .build()?;
            return dry_run::show(&request, output, connector, printer, ui);
        }
        printer.start(PETS)?.check(&pet.clone().into_pet(0))?;
        let client = connector.connect(Purpose::CreatePet).await?;
        let created = client.pets().create(&pet).await?;
        ui.done("created");
        let written = output.document(&created);
        let written = written.and_then(|()| printer.flush());
        written.map_err(|error| error.after(format!("pet {} was created", created.id)))
    }

    fn pet_of_args(self) -> Result<NewPet> {
        let (Some(name), Some(category)) = (self.name, self.category_id) else {
            let problem = "`pets create` needs a name and --category-id";
            let hint = "`petstore pets create Rex --category-id 7`";
            return Err(CliError::usage(problem).hint(hint));
        };
        let pet = NewPet::new(name, category);
        match self.status {
            Some(status) => Ok(pet.with_status(status)),
            None => Ok(pet),
        }
    }
}

async fn pet_of_file(file: &Path, reader: &mut Reader) -> Result<NewPet> {
    let bytes = reader.read(file, "a pet", MAX_BODY).await?;
    if let Ok(pet) = serde_json::from_slice(&bytes) {
        return Ok(pet);
    }
    let name = input_name(file);
    if bytes.trim_ascii_start().starts_with(b"{") {
        // The input is read like that of an import, whose errors name each mistake.
        Rows::read(&name, bytes, None)?.check()?;
    }
    let problem = format!("{name} is not a JSON object");
    let hint = r#"a pet looks like {"name":"Rex","categoryId":7,"status":"available"}"#;
    Err(CliError::input(problem).hint(hint))
}
