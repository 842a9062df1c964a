//! The HTTP layer of the mock: routes, the pipeline of requests, and the administration.

pub(crate) mod admin;
mod admission;
mod body;
mod common_headers;
mod error;
pub(crate) mod handlers;
pub(crate) mod params;
mod router;

pub use self::error::ErrorCode;
pub(crate) use self::router::Service;
