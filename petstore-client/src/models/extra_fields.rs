//! Writes the fields that this version does not know.

use serde::Serializer;
use serde::ser::Error as _;
use serde_json::{Map, Value};

/// Writes the fields into the object of a pet. Fails if one has the name of a known field, because
/// the object would then have two fields with this name.
pub(super) fn write<S: Serializer>(
    extra: &Map<String, Value>,
    known: &[&str],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if let Some(name) = extra.keys().find(|name| known.contains(&name.as_str())) {
        return Err(S::Error::custom(format_args!(
            "`extra` has a field `{name}`, which is a field of the pet; set that one"
        )));
    }
    serializer.collect_map(extra)
}
