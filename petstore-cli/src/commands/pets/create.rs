//! `petstore pets create`.

use petstore_client::{NewPet, PetStatus};

use super::{PETS, status};
use crate::commands::dry_run;
use crate::context::Context;
use crate::error::Result;
use crate::output::ANY;
use crate::session::Purpose;

/// Create a pet.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore pets create Rex --category-id 7",
    "petstore pets create Rex --category-id 7 --status pending",
    "petstore pets create Rex --category-id 7 --dry-run",
    "petstore pets create Rex --category-id 7 --jq .id"
))]
pub(crate) struct Create {
    /// The animal's name
    name: String,

    /// The identifier of its category
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    category_id: i64,

    /// Its status [default: chosen by the service]
    #[arg(long, value_parser = status())]
    status: Option<PetStatus>,

    /// Show the request without sending it
    #[arg(long)]
    dry_run: bool,
}

impl Create {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let printer = context.printer();
        let output = printer.start(if self.dry_run { ANY } else { PETS })?;
        let mut pet = NewPet::new(self.name, self.category_id);
        if let Some(status) = self.status {
            pet = pet.with_status(status);
        }
        if self.dry_run {
            let request = dry_run::client(context.settings())?
                .pets()
                .create(&pet)
                .build()?;
            return dry_run::show(&request, output, context);
        }
        printer.start(PETS)?.check(&pet.clone().into_pet(0))?;
        let client = context.connect(Purpose::CreatePet).await?;
        let created = client.pets().create(&pet).await?;
        let written = output.document(&created);
        let written = written.and_then(|()| printer.flush());
        written.map_err(|error| error.after(format!("pet {} was created", created.id)))
    }
}
