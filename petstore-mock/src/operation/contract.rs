//! The operations of the service: names, methods and paths.

use std::{fmt, str::FromStr, time::Duration};

use http::{HeaderName, Method};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::text::{ParseNameError, parse_name};

/// The headers of every response: the limit, the requests left, and when the quota resets.
pub(crate) const RATE_HEADERS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
];

/// When [`Operation::GetPet`] is removed, since the Unix epoch: 5 December 2030, 00:00:00 GMT.
pub(crate) const REMOVAL: Duration = Duration::from_secs(1_922_659_200);

/// An operation of the service.
///
/// Its text and JSON form is the name in the specification, section 4.
///
/// ```
/// use petstore_mock::Operation;
///
/// assert_eq!(Operation::GetPet.name(), "getPet");
/// assert_eq!("createPet".parse(), Ok(Operation::CreatePet));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Operation {
    /// `GET /pets`.
    ListPets,
    /// `POST /pets`.
    CreatePet,
    /// `GET /pets/{petId}`, which is deprecated.
    GetPet,
    /// `GET /store/orders`. The specification shows no name, so the mock calls it `listOrders`.
    ListOrders,
}

impl Operation {
    /// All operations, in the order of the specification.
    pub const ALL: &'static [Self] = &[
        Self::ListPets,
        Self::CreatePet,
        Self::GetPet,
        Self::ListOrders,
    ];

    /// Returns the name, such as `listPets`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ListPets => "listPets",
            Self::CreatePet => "createPet",
            Self::GetPet => "getPet",
            Self::ListOrders => "listOrders",
        }
    }

    /// Returns the method.
    #[must_use]
    pub const fn method(self) -> Method {
        match self {
            Self::CreatePet => Method::POST,
            Self::ListPets | Self::GetPet | Self::ListOrders => Method::GET,
        }
    }

    /// Returns the template of its path, such as `/v1/pets/{petId}`.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::ListPets | Self::CreatePet => "/v1/pets",
            Self::GetPet => "/v1/pets/{petId}",
            Self::ListOrders => "/v1/store/orders",
        }
    }

    /// Returns the operation of a request.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        let operations = Self::ALL.iter().copied();
        operations
            .filter(|operation| is_method(method, &operation.method()))
            .find(|operation| fits(operation.path(), path))
    }

    /// Returns the methods of the operations on a path.
    pub(crate) fn methods_of(path: &str) -> Vec<Method> {
        let operations = Self::ALL.iter().filter(|one| fits(one.path(), path));
        operations.map(|one| one.method()).collect()
    }
}

/// Whether a method means another one. `HEAD` counts as `GET`.
pub(crate) fn is_method(sent: &Method, meant: &Method) -> bool {
    sent == meant || (sent == Method::HEAD && meant == Method::GET)
}

/// Whether a path, with or without percent-encoding, fits a template.
pub(super) fn fits(template: &str, path: &str) -> bool {
    let mut sent = path.split('/');
    for wanted in template.split('/') {
        let Some(segment) = sent.next() else {
            return false;
        };
        let is_fitting = if is_parameter(wanted) {
            !segment.is_empty()
        } else {
            percent_decode_str(segment).eq(wanted.bytes())
        };
        if !is_fitting {
            return false;
        }
    }
    sent.next().is_none()
}

/// Whether a segment of a template stands for any value.
pub(crate) fn is_parameter(segment: &str) -> bool {
    segment.len() > 2 && segment.starts_with('{') && segment.ends_with('}')
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operation {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_name(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_all_is_complete_and_reads_what_it_writes() {
        let names = "ListPets".parse::<Operation>().unwrap_err().names();
        assert_eq!(
            names,
            Operation::ALL
                .iter()
                .map(|one| one.name())
                .collect::<Vec<_>>()
        );
        for operation in Operation::ALL {
            assert_eq!(operation.to_string().parse(), Ok(*operation));
        }
    }

    #[test]
    fn the_guide_describes_each_operation() {
        let guide = include_str!("../../guide/specification.md");
        for operation in Operation::ALL {
            let path = operation.path().trim_start_matches("/v1");
            let request = format!("`{} {path}`", operation.method());
            assert!(guide.contains(&request), "{request}");
        }
    }

    #[test]
    fn is_found_by_method_and_path() {
        for &operation in Operation::ALL {
            let path = operation.path().replace("{petId}", "7");
            assert_eq!(Operation::of(&operation.method(), &path), Some(operation));
        }
        assert_eq!(
            Operation::of(&Method::HEAD, "/v1/pets"),
            Some(Operation::ListPets)
        );
        for (method, path) in [
            (Method::PUT, "/v1/pets"),
            (Method::POST, "/v1/pets/1"),
            (Method::GET, "/pets"),
            (Method::GET, "/v1/pets/"),
            (Method::GET, "/v1/pets/1/2"),
            (Method::DELETE, "/v1/store/orders"),
        ] {
            assert_eq!(Operation::of(&method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn a_path_supports_the_methods_of_its_operations() {
        for (path, methods) in [
            ("/v1/pets", &[Method::GET, Method::POST][..]),
            ("/v1/pets/7", &[Method::GET]),
            ("/v1/store/orders", &[Method::GET]),
            ("/v1/pets/", &[]),
        ] {
            assert_eq!(Operation::methods_of(path), methods, "{path}");
        }
    }
}
