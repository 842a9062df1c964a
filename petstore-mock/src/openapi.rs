//! The embedded OpenAPI documents of the service and of the administration. They are written in
//! YAML; the build script converts them to JSON. Tests check that they match the routes and
//! responses.

/// An embedded OpenAPI 3.1 document.
///
/// ```
/// use petstore_mock::OpenApi;
///
/// assert!(OpenApi::Service.yaml().starts_with("openapi: 3.1"));
/// assert!(OpenApi::Service.json().contains("\"operationId\":\"listPets\""));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenApi {
    /// The Pet Store service, from its specification. Marks assumptions. Served as
    /// `/_mock/openapi.yaml` and `.json`.
    Service,
    /// The administration of the mock. Served as `/_mock/admin.yaml` and `.json`.
    Administration,
}

impl OpenApi {
    /// Returns the document as YAML.
    #[must_use]
    pub const fn yaml(self) -> &'static str {
        match self {
            Self::Service => include_str!("../openapi.yaml"),
            Self::Administration => include_str!("../admin.yaml"),
        }
    }

    /// Returns the document as JSON on one line.
    #[must_use]
    pub const fn json(self) -> &'static str {
        match self {
            Self::Service => include_str!(concat!(env!("OUT_DIR"), "/openapi.json")),
            Self::Administration => include_str!(concat!(env!("OUT_DIR"), "/admin.json")),
        }
    }
}
