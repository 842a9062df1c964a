//! What paths and methods answer that the service does not have. A valid key whose quota is used up
//! hears of that first; without one, the answer is the same as with it.

use std::future::{Ready, ready};

use http::{Method, Uri};

use crate::{error::ApiError, extract::Visit};

/// Answers 404.
pub(crate) async fn unknown(visit: Visit, method: Method, uri: Uri) -> Result<(), ApiError> {
    visit.check()?;
    Err(ApiError::route_not_found(&method, uri.path()))
}

/// Returns a handler that answers 405 and names the methods the path takes.
pub(crate) fn only(
    allow: &'static str,
) -> impl Fn(Visit) -> Ready<Result<(), ApiError>> + Clone + Send + Sync + 'static {
    move |visit| {
        let checked = visit.check();
        ready(checked.and_then(|()| Err(ApiError::method_not_allowed(allow))))
    }
}
