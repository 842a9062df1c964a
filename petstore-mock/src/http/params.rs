//! Parses the target of a request: the id of a pet, and the query parameters, each at most once.

use std::str::FromStr;

use axum::extract::RawQuery;
use percent_encoding::percent_decode_str;

use super::error::{ApiError, ErrorCode};
use crate::{model::PetStatus, text::printable};

/// The parameters of a list (specification, section 4.1), and the mock's cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) limit: usize,
    pub(crate) status: Option<PetStatus>,
    /// The id of the pet after which the page starts.
    pub(crate) after: Option<i64>,
}

impl ListQuery {
    /// Parses a query string. Without paging, ignores a cursor.
    pub(crate) fn read(query: &str, paging: bool) -> Result<Self, ApiError> {
        let query = Query(query);
        let limit = query.get_with("limit", "a whole number from 1 to 100", |text| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            // JSON has no numbers such as 05 (RFC 8259, section 6).
            let is_number = digits && !text.starts_with('0');
            let number = if is_number { text.parse().ok() } else { None };
            number.filter(|number| (1..=100).contains(number))
        })?;
        let status = query.get("status", "one of available, pending, sold")?;
        let expected = "one that this service gave out: follow the link with rel=\"next\" as it is, \
                        or omit `cursor` to start over";
        let after = if paging {
            query.get_with("cursor", expected, cursor::decode)?
        } else {
            None
        };
        Ok(Self {
            limit: limit.unwrap_or(20),
            status,
            after,
        })
    }
}

/// A query string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'q>(pub(crate) &'q str);

impl<'q> Query<'q> {
    /// Returns a query that has only supported parameters.
    pub(crate) fn only(query: &'q RawQuery, supported: &[&str]) -> Result<Self, ApiError> {
        let query = Self(query.0.as_deref().unwrap_or_default());
        let mut names = query.pairs().map(|(name, _)| name);
        match names.find(|name| !supported.contains(&&**name)) {
            None => Ok(query),
            Some(name) => Err(invalid(format!(
                "unknown query parameter `{}`; supported: {}",
                printable(&name),
                supported.join(", ")
            ))),
        }
    }

    /// Returns a parameter, if present. `expected` describes valid values.
    pub(crate) fn get<T: FromStr>(self, name: &str, expected: &str) -> Result<Option<T>, ApiError> {
        self.get_with(name, expected, |text| text.parse().ok())
    }

    /// Returns a parameter, if present, and if it is given once. Ignores other parameters, even
    /// invalid ones.
    pub(crate) fn get_with<T>(
        self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let mut values = self.pairs().filter(|(key, _)| key == name);
        let Some((_, text)) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(invalid(format!(
                "the query parameter `{name}` is given more than once: give it once"
            )));
        }
        let value = read(&text).ok_or_else(|| {
            let text = printable(&text);
            invalid(format!(
                "the query parameter `{name}` is \"{text}\": it must be {expected}"
            ))
        })?;
        Ok(Some(value))
    }

    /// Returns the decoded parameters.
    fn pairs(self) -> form_urlencoded::Parse<'q> {
        form_urlencoded::parse(self.0.as_bytes())
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidParameter, message)
}

/// Parses the id of `GET /pets/{petId}` (specification, section 4.3) from the last segment of a
/// path.
pub(crate) fn pet_id(path: &str) -> Result<i64, ApiError> {
    let sent = path.rsplit('/').next().unwrap_or("");
    let decoded = percent_decode_str(sent).decode_utf8();
    // Shows invalid percent-encoding as sent.
    let text = decoded.unwrap_or(sent.into());
    int64(&text).ok_or_else(|| {
        let text = printable(&text);
        let message = format!(
            "no pet has the id \"{text}\": an id is a whole number that fits into 64 bits; GET /v1/pets \
             lists all pets"
        );
        ApiError::new(ErrorCode::PetNotFound, message)
    })
}

/// Parses an optional minus sign and digits, but not a plus sign, which Rust would accept.
fn int64(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// The position in a list where the next page starts. It identifies the last pet of a page, so it
/// stays valid while pets are added. It is scrambled and has a check. So clients cannot construct
/// cursors, which would fail with a real service.
pub(crate) mod cursor {
    /// Scrambles the id. Any odd number without a pattern works.
    const MASK: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Returns the cursor of the page after the pet `id`.
    pub(crate) fn encode(id: i64) -> String {
        let scrambled = id.cast_unsigned() ^ MASK;
        format!(
            "{scrambled:016x}{:04x}",
            (!scrambled).wrapping_mul(MASK) >> 48
        )
    }

    /// Returns the pet's id in a cursor; `None` for an invalid cursor.
    pub(crate) fn decode(cursor: &str) -> Option<i64> {
        let scrambled = u64::from_str_radix(cursor.get(..16)?, 16).ok()?;
        let id = (scrambled ^ MASK).cast_signed();
        (encode(id) == cursor).then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::{cursor::encode, *};

    fn read(query: &str) -> Result<ListQuery, String> {
        ListQuery::read(query, true).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn defaults_to_the_first_20_pets_of_any_status() {
        let all = ListQuery {
            limit: 20,
            status: None,
            after: None,
        };
        assert_eq!(read(""), Ok(all));
        let some = ListQuery {
            limit: 100,
            status: Some(PetStatus::Sold),
            after: Some(7),
        };
        let query = format!("limit=100&status=sold&cursor={}", encode(7));
        assert_eq!(read(&query), Ok(some));
    }
}
