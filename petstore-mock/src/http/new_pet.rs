//! Parses the body of `POST /pets` (specification, section 2: NewPet).

use serde::Deserialize;

use super::{body::read_object, error::ApiError};
use crate::{
    model::{PetStatus, SeedPet},
    text::present,
};

/// The fields of a NewPet. Others are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPet {
    name: String,
    category_id: i64,
    #[serde(default, deserialize_with = "present")]
    status: Option<PetStatus>,
}

/// Parses a pet to create.
pub(crate) fn read(body: &[u8]) -> Result<SeedPet, ApiError> {
    let pet: NewPet = read_object(body, "{\"name\": \"Rex\", \"categoryId\": 7}")?;
    Ok(SeedPet {
        id: None,
        name: pet.name,
        category_id: pet.category_id,
        status: pet.status,
    })
}
