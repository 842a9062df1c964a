//! The OpenAPI documents, written by hand in YAML and embedded: the contract of the service, and the
//! mock's own paths. The JSON is made of the YAML by the build script. That routes and documents agree
//! is tested in `router` and, for answers, across sockets.

/// An OpenAPI 3.1 document that the mock carries.
///
/// ```
/// use petstore_mock::OpenApi;
///
/// assert!(OpenApi::Service.yaml().starts_with("openapi: 3.1"));
/// assert!(OpenApi::Service.json().contains("\"operationId\":\"listPets\""));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenApi {
    /// The Pet Store service, from its specification; what that leaves open is marked as an
    /// assumption. Served as `/_mock/openapi.yaml` and `.json`.
    Service,
    /// The administration of the mock. Served as `/_mock/admin.yaml` and `.json`.
    Administration,
}

impl OpenApi {
    /// Returns the document as YAML, as it was written.
    #[must_use]
    pub const fn yaml(self) -> &'static str {
        match self {
            Self::Service => include_str!("../openapi.yaml"),
            Self::Administration => include_str!("../admin.yaml"),
        }
    }

    /// Returns the document as JSON, in one line.
    #[must_use]
    pub const fn json(self) -> &'static str {
        match self {
            Self::Service => include_str!(concat!(env!("OUT_DIR"), "/openapi.json")),
            Self::Administration => include_str!(concat!(env!("OUT_DIR"), "/admin.json")),
        }
    }
}
