//! Which requests are meant: all, those of an operation, or those with a method and a path.

use std::{fmt, ops::RangeFull};

use http::Method;

use super::contract::{Operation, fits, is_method};

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
        let rest = match path.strip_prefix("/v1") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
            _ => path,
        };
        Self(format!("/v1{rest}"))
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
