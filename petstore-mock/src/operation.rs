//! The operations of the contract, and which requests are meant by an operation or by a method and a
//! path.

use std::{fmt, ops::RangeFull, time::Duration};

use http::{HeaderName, Method};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::text::named;

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
fn fits(template: &str, path: &str) -> bool {
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

/// Returns why no request that is meant can have this method, if so.
pub(crate) fn problem_of_method(method: &Method) -> Option<&'static str> {
    let is_small = method.as_str().contains(char::is_lowercase);
    is_small.then_some("write the method in capitals, such as GET")
}

named!(Operation);

/// The requests that a fault, `requests` or `verify` means.
///
/// An [`Operation`] converts to it, and so do a method with a path, and `..` for all requests. The
/// path is below `/v1`, and a segment in braces stands for any value.
///
/// ```
/// # use petstore_mock::{MockServer, Operation};
/// use http::Method;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// reqwest::get(format!("{}/pets/7", server.url())).await?;
///
/// assert_eq!(server.requests(..).len(), 1);
/// assert_eq!(server.requests(Operation::GetPet).len(), 1);
/// assert_eq!(server.requests((Method::GET, "/pets/{petId}")).len(), 1);
/// assert_eq!(server.requests((Method::PUT, "/pets/{petId}")).len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target(Meant);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Meant {
    #[default]
    All,
    Operation(Operation),
    Path(Method, PathTemplate),
}

impl Target {
    pub(crate) fn is_all(&self) -> bool {
        self.0 == Meant::All
    }

    pub(crate) fn operation(&self) -> Option<Operation> {
        match self.0 {
            Meant::Operation(operation) => Some(operation),
            Meant::All | Meant::Path(..) => None,
        }
    }

    pub(crate) fn method_and_path(&self) -> Option<(&Method, &PathTemplate)> {
        match &self.0 {
            Meant::Path(method, path) => Some((method, path)),
            Meant::All | Meant::Operation(_) => None,
        }
    }

    /// Whether a request is meant. `HEAD` counts as `GET`.
    pub(crate) fn matches(
        &self,
        operation: Option<Operation>,
        method: &Method,
        path: &str,
    ) -> bool {
        match &self.0 {
            Meant::All => true,
            Meant::Operation(meant) => operation == Some(*meant),
            Meant::Path(meant, template) => is_method(method, meant) && template.matches(path),
        }
    }
}

impl From<Operation> for Target {
    fn from(operation: Operation) -> Self {
        Self(Meant::Operation(operation))
    }
}

impl From<(Method, &str)> for Target {
    fn from((method, path): (Method, &str)) -> Self {
        Self(Meant::Path(method, PathTemplate::new(path)))
    }
}

impl From<RangeFull> for Target {
    fn from(_: RangeFull) -> Self {
        Self(Meant::All)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Meant::All => f.write_str("any kind"),
            Meant::Operation(operation) => write!(f, "{operation}"),
            Meant::Path(method, path) => write!(f, "{method} {path}"),
        }
    }
}

/// A path below `/v1`. A segment in braces is a parameter, which stands for any value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathTemplate(String);

impl PathTemplate {
    /// Creates a template. The path may begin with `/v1` or not.
    pub(crate) fn new(path: &str) -> Self {
        let is_whole = path == "/v1" || path.starts_with("/v1/") || !path.starts_with('/');
        Self(if is_whole {
            path.to_owned()
        } else {
            format!("/v1{path}")
        })
    }

    /// Returns why no request of the service can fit, if so.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_valid = |segment: &str| {
            let name = segment
                .strip_prefix('{')
                .and_then(|it| it.strip_suffix('}'));
            let name = name.unwrap_or(segment);
            let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"{}?#%".contains(&byte);
            !name.is_empty() && name.bytes().all(is_plain)
        };
        match self.0.strip_prefix("/v1/") {
            Some(path) if !path.starts_with("_mock") && path.split('/').all(is_valid) => None,
            _ => Some(
                "write the path as in /store/orders/{orderId}: with a slash first, not below /_mock, \
                 without a query, an empty segment, or other characters than ASCII",
            ),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').skip(1)
    }

    /// Whether a path, with or without percent-encoding, fits.
    pub(crate) fn matches(&self, path: &str) -> bool {
        fits(&self.0, path)
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
        let guide = include_str!("../guide/specification.md");
        for operation in Operation::ALL {
            let path = operation.path().trim_start_matches("/v1");
            let request = format!("`{} {path}`", operation.method());
            assert!(guide.contains(&request), "{request}");
        }
    }

    #[test]
    fn a_template_fits_paths_with_values_for_its_parameters() {
        let template = PathTemplate::new("/store/{shop}/orders");
        assert_eq!(template, PathTemplate::new("/v1/store/{shop}/orders"));
        for path in [
            "/v1/store/7/orders",
            "/v1/%73tore/a%2Fb/orders",
            "/v1/store/{shop}/orders",
        ] {
            assert!(template.matches(path), "{path}");
        }
        for path in [
            "/v1/store//orders",
            "/v1/store/7",
            "/v1/store/7/orders/1",
            "/v1/store/7/orders/",
            "/store/7/orders",
            "/v1/Store/7/orders",
            "",
        ] {
            assert!(!template.matches(path), "{path}");
        }
        assert_eq!(PathTemplate::new("/v1x").as_str(), "/v1/v1x");
    }

    #[test]
    fn a_target_means_its_operation_or_its_method_and_path() {
        let get_pet = Some(Operation::GetPet);
        let by_path = Target::from((Method::GET, "/pets/{petId}"));
        for (target, text) in [
            (Target::from(Operation::GetPet), "getPet"),
            (by_path, "GET /v1/pets/{petId}"),
        ] {
            assert!(target.matches(get_pet, &Method::GET, "/v1/pets/7"));
            assert!(target.matches(get_pet, &Method::HEAD, "/v1/pets/7"));
            assert!(!target.matches(None, &Method::PUT, "/v1/pets/7"));
            assert!(!target.matches(Some(Operation::ListPets), &Method::GET, "/v1/pets"));
            assert_eq!(target.to_string(), text);
        }
        assert!(Target::from(..).matches(None, &Method::PUT, "/"));
    }
}
