//! `petstore pets get`.

use super::PETS;
use crate::context::Context;
use crate::error::Result;
use crate::session::Purpose;

pub(crate) async fn run(context: &Context, id: i64) -> Result<()> {
    let output = context.printer().start(PETS)?;
    let client = context.connect(Purpose::GetPet(id)).await?;
    #[expect(deprecated, reason = "available until the service removes it")]
    let pet = client.pets().get(id).await?;
    output.document(&pet)
}
