//! The query of `GET /pets` (specification, section 4.1), and the cursor that is ours.

use super::query::{invalid, single};
use crate::{cursor, error::ApiError, model::PetStatus, printable::printable};

const DEFAULT_LIMIT: usize = 20;
const HIGHEST_LIMIT: usize = 100;

/// Which pets are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) limit: usize,
    pub(crate) status: Option<PetStatus>,
    /// The id of the pet after which to begin.
    pub(crate) after: Option<i64>,
}

impl ListQuery {
    /// Reads a query string; without paging a cursor means nothing.
    pub(crate) fn read(query: &str, paging: bool) -> Result<Self, ApiError> {
        let limit = match single(query, "limit")? {
            Some(text) => limit(&text)?,
            None => DEFAULT_LIMIT,
        };
        let status = single(query, "status")?.map(|text| status(&text));
        let after = if paging { single(query, "cursor")?.map(|text| after(&text)) } else { None };
        Ok(Self { limit, status: status.transpose()?, after: after.transpose()? })
    }
}

fn limit(text: &str) -> Result<usize, ApiError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.filter(|number| (1..=HIGHEST_LIMIT).contains(number)).ok_or_else(|| {
        invalid(format!(
            "the query parameter `limit` is \"{}\": it must be a whole number from 1 to \
                 {HIGHEST_LIMIT}",
            printable(text)
        ))
    })
}

fn status(text: &str) -> Result<PetStatus, ApiError> {
    text.parse().map_err(|_| {
        invalid(format!(
            "the query parameter `status` is \"{}\": it must be one of available, pending, sold",
            printable(text)
        ))
    })
}

fn after(text: &str) -> Result<i64, ApiError> {
    cursor::decode(text).ok_or_else(|| {
        invalid(format!(
            "the query parameter `cursor` is \"{}\", which this service never gave out: follow the \
             link with rel=\"next\" as it is, or leave `cursor` out to begin anew",
            printable(text)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<ListQuery, String> {
        ListQuery::read(query, true).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn takes_20_pets_of_any_status_from_the_beginning_unless_told() {
        let all = ListQuery { limit: 20, status: None, after: None };
        assert_eq!(read(""), Ok(all));
        let some = ListQuery { limit: 100, status: Some(PetStatus::Sold), after: Some(7) };
        let query = format!("limit=100&status=sold&cursor={}", cursor::encode(7));
        assert_eq!(read(&query), Ok(some));
    }

    #[test]
    fn refuses_a_limit_that_is_no_number_from_1_to_100() {
        for limit in [
            "",
            "0",
            "101",
            "-1",
            "%2B5",
            "5.0",
            "1e1",
            " 5",
            "5 ",
            "٥",
            "0x5",
            "99999999999999999999999",
        ] {
            let error = read(&format!("limit={limit}")).unwrap_err();
            assert!(error.contains("from 1 to 100"), "{limit}: {error}");
        }
    }

    #[test]
    fn refuses_a_status_the_specification_does_not_list() {
        for status in ["", "Sold", "lost", "sold,pending"] {
            let error = read(&format!("status={status}")).unwrap_err();
            assert!(error.contains("available, pending, sold"), "{error}");
        }
    }

    #[test]
    fn ignores_the_cursor_where_paging_is_off() {
        assert!(read("cursor=5").is_err());
        assert_eq!(ListQuery::read("cursor=5&cursor=6", false).unwrap().after, None);
    }
}
