//! `petstore pets get`.

use super::PETS;
use crate::context::Context;
use crate::error::Result;
use crate::session::Purpose;

/// Show a pet. The service removes this on 5 December 2030.
#[derive(Debug, clap::Args)]
#[command(after_long_help = examples!(
    "petstore pets get 7";
    "`petstore pets list --id 7` finds a pet in the list, with a request for every 100 pets."
))]
pub(crate) struct Get {
    /// The pet's identifier
    #[arg(allow_negative_numbers = true)]
    id: i64,
}

impl Get {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let output = context.printer().start(PETS)?;
        let client = context
            .connector()
            .connect(Purpose::GetPet(self.id))
            .await?;
        #[expect(deprecated, reason = "available until the service removes it")]
        let pet = client.pets().get(self.id).await?;
        output.document(&pet)
    }
}
