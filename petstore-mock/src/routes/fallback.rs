//! What paths and methods answer that the service does not have. A valid key whose quota is used up
//! hears of that first; without one, the answer is the same as with it.

use http::Method;

use crate::{error::ApiError, extract::Visit, operation::Operation};

/// Returns 405 where the path exists for other methods, and else 404.
pub(super) fn refusal(visit: Visit, method: &Method, path: &str) -> ApiError {
    if let Err(error) = visit.check() {
        return error;
    }
    match Operation::of(&Method::GET, path) {
        Some(Operation::ListPets) => ApiError::method_not_allowed("GET, HEAD, POST"),
        Some(_) => ApiError::method_not_allowed("GET, HEAD"),
        None => ApiError::route_not_found(method, path),
    }
}
