//! The id in the path of `GET /pets/{petId}` (specification, section 4.3).

use percent_encoding::percent_decode_str;

use crate::{
    error::{ApiError, ErrorCode},
    printable::printable,
};

/// The id of the pet asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PetId(pub(crate) i64);

impl PetId {
    /// Says that no pet has this id.
    pub(crate) fn not_found(self) -> ApiError {
        not_found(&format!("no pet has the id {}", self.0))
    }
}

impl PetId {
    /// Reads the last segment of a path.
    pub(crate) fn of(path: &str) -> Result<Self, ApiError> {
        let sent = path.rsplit('/').next().unwrap_or("");
        int64(sent).map(Self).ok_or_else(|| {
            // What is not percent-encoded UTF-8 is shown as it was sent.
            let text = percent_decode_str(sent).decode_utf8().unwrap_or(sent.into());
            let text = printable(&text);
            not_found(&format!(
                "no pet has the id \"{text}\": an id is a whole number that fits into 64 bits"
            ))
        })
    }
}

fn not_found(what: &str) -> ApiError {
    ApiError::new(ErrorCode::PetNotFound, format!("{what}; GET /v1/pets lists those there are"))
}

/// Reads an optional minus sign and digits; nothing else, such as the plus sign that Rust takes.
fn int64(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_int64_and_nothing_else() {
        for id in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(int64(&id.to_string()), Some(id));
        }
        for text in ["", "-", "+1", "1.0", "1e3", " 1", "٥", "0x1", "9223372036854775808"] {
            assert_eq!(int64(text), None, "{text}");
        }
    }
}
