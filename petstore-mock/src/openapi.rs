//! The embedded OpenAPI documents of the service and of the administration. Tests check that they match
//! the routes and responses.

/// An embedded OpenAPI 3.1 document.
///
/// ```
/// use petstore_mock::OpenApi;
///
/// assert!(OpenApi::Service.yaml().starts_with("openapi: 3.1"));
/// assert!(OpenApi::Service.yaml().contains("operationId: listPets"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenApi {
    /// The Pet Store service, from its specification. Marks assumptions. Served as
    /// `/_mock/openapi.yaml`.
    Service,
    /// The administration of the mock. Served as `/_mock/admin.yaml`.
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
}
