//! What a pet's fields may hold, whatever format they come in. The service would say no more than
//! this, but one row at a time.

use petstore_client::PetStatus;

use crate::suggest;

/// The fields that a new pet has.
pub(super) const FIELDS: [&str; 3] = ["name", "categoryId", "status"];

/// What an export, or the rejects of an import, have beside them: the service gives new pets ids of
/// their own.
pub(super) const LEFT_OUT: [&str; 2] = ["id", "reason"];

const STATUSES: [&str; 3] = ["available", "pending", "sold"];

/// Reads an identifier of a category.
pub(super) fn category(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        format!("`categoryId` must be a whole number of 64 bits, and is {}", shown(text))
    })
}

/// Reads a status.
pub(super) fn status(text: &str) -> Result<PetStatus, String> {
    if STATUSES.contains(&text) {
        return Ok(PetStatus::from(text));
    }
    let hint = suggestion(text, &STATUSES);
    Err(format!("`status` must be available, pending or sold, and is {}{hint}", shown(text)))
}

/// Says that a field is none of a pet's.
pub(super) fn unknown(name: &str) -> String {
    let hint = suggestion(name, &FIELDS);
    format!("a pet has no field {}{hint}", shown(name))
}

pub(super) fn missing(name: &str) -> String {
    format!("`{name}` is missing")
}

pub(super) fn repeated(name: &str) -> String {
    format!("`{name}` is there twice")
}

/// Returns a value for a message, cut short.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let cut: String = text.chars().take(MOST).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("`{cut}{more}`")
}

fn suggestion(text: &str, known: &[&str]) -> String {
    suggest::similar(text, known.iter().copied())
        .map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"))
}
