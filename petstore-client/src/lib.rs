//! [dependencies]: guide::dependencies
//! [errors]: guide::errors
//! [keys]: guide::keys
//! [observability]: guide::observability
//! [promises]: guide::promises
//! [rate_limits]: guide::rate_limits
//! [testing]: guide::testing
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
#[cfg(test)]
mod cases;
mod clock;
mod logging;
mod models;
mod wire;

mod deprecation;
mod page;
mod rate_limit;

mod error;

mod request;

pub mod auth;
pub mod events;
mod options;
mod response;

pub mod retry;
pub mod transport;

mod client;

mod call;

pub mod guide;
pub mod limits;
pub mod operations;
#[cfg(feature = "test-util")]
pub mod test_util;

pub use auth::ApiKey;
pub use client::Client;
pub use client::builder::ClientBuilder;
pub use deprecation::Deprecation;
pub use error::{BoxError, Error, ErrorKind, ErrorResponse, Result, TimeoutKind};
pub use models::{NewPet, Pet, PetStatus};
pub use options::RequestOptions;
pub use page::Page;
pub use response::{Meta, Response};

// The crates whose types are part of this crate's API, in the versions that it uses.
pub use {bytes, http, serde_json, url};
