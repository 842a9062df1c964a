//! What all commands on pets share: the columns, and the statuses one can type.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use petstore_client::PetStatus;
use serde::Serialize;
use serde_json::Value;

/// The fields of a pet.
pub(super) const FIELDS: Option<&[&str]> = Some(&["id", "name", "categoryId", "status"]);

/// Returns what was read, as JSON to tell of.
pub(super) fn json(value: &(impl Serialize + ?Sized)) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Parses a status: the service's three, with a suggestion where one is mistyped.
pub(super) fn status() -> impl TypedValueParser<Value = PetStatus> {
    PossibleValuesParser::new(["available", "pending", "sold"]).map(PetStatus::from)
}

/// Reads an identifier: of a pet, or of a category.
pub(super) fn identifier(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "an identifier is a whole number of 64 bits".to_owned())
}
