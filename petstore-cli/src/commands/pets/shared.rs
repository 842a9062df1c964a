//! What all commands on pets share: the columns, and the statuses one can type.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use petstore_client::PetStatus;
use serde::Serialize;

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Records;

/// Wraps one pet, or several.
pub(super) fn records(pets: &impl Serialize) -> Result<Records, CliError> {
    Records::new(pets, &["id", "name", "categoryId", "status"])
        .map_err(|problem| CliError::new(Exit::Internal, problem))
}

/// Parses a status: the service's three, with a suggestion where one is mistyped.
pub(super) fn status() -> impl TypedValueParser<Value = PetStatus> {
    PossibleValuesParser::new(["available", "pending", "sold"]).map(PetStatus::from)
}
