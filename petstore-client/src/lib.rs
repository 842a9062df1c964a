//! [dependencies]: guide::dependencies
//! [deprecation]: guide::deprecation
//! [keys]: guide::keys
//! [measurements]: guide::measurements
//! [observability]: guide::observability
//! [rate_limits]: guide::rate_limits
//! [retries]: guide::retries
//! [security]: guide::security
//! [sharing]: guide::sharing
//! [simulator]: guide::simulator
//! [testing]: guide::testing
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
#[cfg(test)]
mod cases;
mod clock;
mod http;
mod logging;
mod models;

mod deprecation;
mod page;
pub mod rate_limit;

mod error;

pub mod auth;
pub mod events;
mod options;
mod request;
mod response;

pub mod retry;
pub mod transport;

mod client;

mod call;

pub mod guide;
pub mod operations;
pub mod reexports;
#[cfg(feature = "test-util")]
pub mod test_util;

pub use auth::ApiKey;
pub use client::Client;
pub use client::builder::ClientBuilder;
pub use deprecation::Deprecation;
pub use error::{BoxError, Error, ErrorKind, Result, TimeoutKind};
pub use models::{NewPet, Pet, PetStatus};
pub use operations::{Items, Pages};
pub use options::RequestOptions;
pub use page::{More, Page};
pub use response::{Response, ResponseMeta};

pub use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
pub use bytes::Bytes;
pub use url::Url;
