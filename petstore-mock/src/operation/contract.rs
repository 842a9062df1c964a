//! The operations of the service: names, methods and paths.

use std::time::Duration;

use http::{HeaderName, Method};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

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
#[derive(Display, EnumString, IntoStaticStr)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[strum(serialize_all = "camelCase")]
#[strum(parse_err_ty = ParseOperationError, parse_err_fn = unknown_operation)]
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

/// The error for a text that is not the name of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an operation is listPets, createPet, getPet or listOrders")]
pub struct ParseOperationError;

fn unknown_operation(_: &str) -> ParseOperationError {
    ParseOperationError
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
    pub fn name(self) -> &'static str {
        self.into()
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

    /// Returns the operation of a request. `HEAD` counts as `GET`.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        let method = match method {
            &Method::HEAD => &Method::GET,
            other => other,
        };
        let operations = Self::ALL.iter().copied();
        operations
            .filter(|operation| operation.method() == *method)
            .find(|operation| operation.has_path(path))
    }

    /// Returns the methods of the operations on a path.
    pub(crate) fn methods_of(path: &str) -> Vec<Method> {
        let operations = Self::ALL.iter().filter(|one| one.has_path(path));
        operations.map(|one| one.method()).collect()
    }

    /// Returns whether a path fits the template. A parameter can only be at the template's end.
    fn has_path(self, path: &str) -> bool {
        match self.path().split_once('{') {
            None => path == self.path(),
            Some((start, _)) => path
                .strip_prefix(start)
                .is_some_and(|value| !value.is_empty() && !value.contains('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn the_list_of_all_is_complete() {
        assert_eq!(Operation::ALL, Operation::VARIANTS);
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

    #[test]
    fn reads_what_it_writes() {
        for &operation in Operation::ALL {
            assert_eq!(operation.to_string().parse(), Ok(operation));
            let json = serde_json::to_string(&operation).unwrap();
            assert_eq!(json, format!("\"{operation}\""));
            assert_eq!(serde_json::from_str::<Operation>(&json).unwrap(), operation);
        }
        assert_eq!("ListPets".parse::<Operation>(), Err(ParseOperationError));
        for operation in Operation::ALL {
            assert!(ParseOperationError.to_string().contains(operation.name()));
        }
    }
}
