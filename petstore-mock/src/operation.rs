//! The operations of the service: their names, methods and paths, and which one a request asks for.

use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr};

use crate::text::{UnknownName, nearest};

/// How many letters of a path may be wrong, missing, surplus or swapped.
const MAX_TYPOS: usize = 2;

/// When [`Operation::GetPet`] is removed, since the Unix epoch: 5 December 2030, 00:00:00 GMT.
pub(crate) const REMOVAL: Duration = Duration::from_secs(1_922_659_200);

/// An operation of the service.
///
/// It is written, also in JSON, by the name that the specification's section 4 gives it.
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
#[strum(serialize_all = "camelCase", parse_err_ty = UnknownName, parse_err_fn = UnknownName::new)]
#[non_exhaustive]
pub enum Operation {
    /// `GET /pets`.
    ListPets,
    /// `POST /pets`.
    CreatePet,
    /// `GET /pets/{petId}`, which is deprecated.
    GetPet,
    /// `GET /store/orders`. Its name, `listOrders`, is the mock's: the specification shows none.
    ListOrders,
}

impl Operation {
    /// Every operation, in the order of the specification.
    pub const ALL: [Self; 4] = [Self::ListPets, Self::CreatePet, Self::GetPet, Self::ListOrders];

    /// Returns the name, such as `listPets`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the method it is asked for with.
    #[must_use]
    pub const fn method(self) -> Method {
        match self {
            Self::CreatePet => Method::POST,
            Self::ListPets | Self::GetPet | Self::ListOrders => Method::GET,
        }
    }

    /// Returns the template of its path below the origin, such as `/v1/pets/{petId}`.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::ListPets | Self::CreatePet => "/v1/pets",
            Self::GetPet => "/v1/pets/{petId}",
            Self::ListOrders => "/v1/store/orders",
        }
    }

    /// Returns the operation that a request asks for; `HEAD` asks for what `GET` does.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        let reads = method == Method::GET || method == Method::HEAD;
        match path.strip_prefix("/v1/")? {
            "pets" if reads => Some(Self::ListPets),
            "pets" if method == Method::POST => Some(Self::CreatePet),
            "store/orders" if reads => Some(Self::ListOrders),
            other => {
                let id = other.strip_prefix("pets/").filter(|_| reads)?;
                (!id.is_empty() && !id.contains('/')).then_some(Self::GetPet)
            }
        }
    }

    /// Returns the operation whose path is most similar to this one, if any is.
    pub(crate) fn nearest(method: &Method, path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/').to_ascii_lowercase();
        let last = path.rsplit('/').next().unwrap_or_default();
        let (pet, without_version) = (format!("/v1/pets/{last}"), format!("/pets/{last}"));
        let paths = [
            (Self::ListPets, "/v1/pets"),
            (Self::ListPets, "/pets"),
            (Self::GetPet, &pet),
            (Self::GetPet, &without_version),
            (Self::ListOrders, "/v1/store/orders"),
            (Self::ListOrders, "/store/orders"),
            (Self::ListOrders, "/v1/orders"),
            (Self::ListOrders, "/orders"),
        ];
        match nearest(&path, MAX_TYPOS, paths.into_iter(), |(_, path)| (*path).to_owned())?.0 {
            Self::ListPets if method == Method::POST => Some(Self::CreatePet),
            operation => Some(operation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_found_by_method_and_path() {
        for operation in Operation::ALL {
            let path = operation.path().replace("{petId}", "7");
            assert_eq!(Operation::of(&operation.method(), &path), Some(operation));
        }
        assert_eq!(Operation::of(&Method::HEAD, "/v1/pets"), Some(Operation::ListPets));
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
    fn reads_what_it_writes() {
        for operation in Operation::ALL {
            assert_eq!(operation.to_string().parse(), Ok(operation));
            let json = serde_json::to_string(&operation).unwrap();
            assert_eq!(json, format!("\"{operation}\""));
            assert_eq!(serde_json::from_str::<Operation>(&json).unwrap(), operation);
        }
        assert_eq!("ListPets".parse::<Operation>(), Err(UnknownName::new("ListPets")));
    }

    #[test]
    fn guesses_what_was_meant() {
        for (path, nearest) in [
            ("/pets", Some(Operation::ListPets)),
            ("/v1/pets/", Some(Operation::ListPets)),
            ("/v1/pet", Some(Operation::ListPets)),
            ("/v1/Pets", Some(Operation::ListPets)),
            ("/v2/pets", Some(Operation::ListPets)),
            ("/v1/pest", Some(Operation::ListPets)),
            ("/v1/pet/7", Some(Operation::GetPet)),
            ("/pets/a-long-id", Some(Operation::GetPet)),
            ("/v1/store/order", Some(Operation::ListOrders)),
            ("/orders", Some(Operation::ListOrders)),
            ("/", None),
            ("/v1", None),
            ("/v1/nowhere", None),
            ("/metrics", None),
        ] {
            assert_eq!(Operation::nearest(&Method::GET, path), nearest, "{path}");
        }
        assert_eq!(Operation::nearest(&Method::POST, "/v1/pet"), Some(Operation::CreatePet));
        assert_eq!(Operation::nearest(&Method::GET, &"/v1/pets".repeat(20)), None);
    }
}
