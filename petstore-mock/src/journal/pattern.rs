//! Which exchanges are meant: by operation, key, status, method and path. How many there are to be,
//! and what is said where there are not, is left to `verify`.

use std::ops::RangeFull;

use http::Method;

use crate::{exchange::Record, operation::Operation};

/// Which exchanges are meant: those for which everything that was said holds.
///
/// An operation stands for all of its requests, `..` for all there are.
///
/// ```
/// # use petstore_mock::{MockServer, Operation, Pattern};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// reqwest::get(format!("{}/pets", server.url())).await?;
///
/// assert_eq!(server.requests(..).len(), 1);
/// assert_eq!(server.requests(Operation::ListPets).len(), 1);
/// assert_eq!(server.requests(Pattern::from(Operation::ListPets).status(200)).len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Pattern {
    operation: Option<Operation>,
    method: Option<Method>,
    path: Option<String>,
    status: Option<u16>,
}

impl Pattern {
    /// Returns the pattern of every exchange.
    pub fn any() -> Self {
        Self::default()
    }

    /// Means requests with this method only.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Means requests to this path only, such as `/v1/pets`, as it was sent and without the query.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Means requests that were answered this status only.
    pub fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    pub(crate) fn matches(&self, record: &Record) -> bool {
        let path = || record.target.split('?').next();
        self.operation.is_none_or(|operation| record.operation == Some(operation))
            && self.method.as_ref().is_none_or(|method| record.method == *method)
            && self.path.as_deref().is_none_or(|wanted| path() == Some(wanted))
            && self.status.is_none_or(|status| record.status == Some(status))
    }
}

impl From<Operation> for Pattern {
    fn from(operation: Operation) -> Self {
        Self { operation: Some(operation), ..Self::default() }
    }
}

impl From<RangeFull> for Pattern {
    fn from(_: RangeFull) -> Self {
        Self::any()
    }
}
