//! The parameters of administration: unlike the service, it refuses those it does not know, since a
//! filter that was mistyped would show too much.

use std::str::FromStr;

use crate::{
    error::{ApiError, ErrorCode},
    extract::single,
    printable::printable,
};

/// A query whose names are all known.
#[derive(Debug)]
pub(super) struct Query<'q>(&'q str);

impl<'q> Query<'q> {
    /// Reads a query that may have these parameters.
    pub(super) fn read(query: Option<&'q str>, known: &[&str]) -> Result<Self, ApiError> {
        let query = query.unwrap_or("");
        let mut names = query.split('&').filter(|pair| !pair.is_empty());
        let is_unknown = |pair: &&str| !known.contains(&pair.split('=').next().unwrap_or(pair));
        match names.find(is_unknown) {
            None => Ok(Self(query)),
            Some(pair) => Err(invalid(format!(
                "there is no parameter `{}` here: there are {}",
                printable(pair.split('=').next().unwrap_or(pair)),
                known.join(", ")
            ))),
        }
    }

    /// Returns a parameter, if it is there; `expected` says what it must be.
    pub(super) fn get<T: FromStr>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, ApiError> {
        let read = |text: std::borrow::Cow<'_, str>| {
            text.parse().map_err(|_| {
                let text = printable(&text);
                invalid(format!("the parameter `{name}` is \"{text}\": it must be {expected}"))
            })
        };
        single(self.0, name)?.map(read).transpose()
    }
}

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidParameter, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_is_known_and_refuses_the_rest() {
        let known = ["limit", "key"];
        let query = Query::read(Some("limit=5"), &known).unwrap();
        assert_eq!(query.get::<u32>("limit", "a number").unwrap(), Some(5));
        assert_eq!(query.get::<u32>("key", "a number").unwrap(), None);
        assert!(Query::read(None, &known).unwrap().get::<u32>("key", "").unwrap().is_none());
        for query in ["limits=5", "limit=1&x", "x=limit", "%6cimit=1"] {
            let error = format!("{:?}", Query::read(Some(query), &known).unwrap_err());
            assert!(error.contains("there are limit, key"), "{error}");
        }
        let wrong = Query::read(Some("limit=five"), &known).unwrap();
        let error = format!("{:?}", wrong.get::<u32>("limit", "a number").unwrap_err());
        assert!(error.contains("\\\"five\\\": it must be a number"), "{error}");
    }
}
