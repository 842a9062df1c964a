#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod echo;
mod models;
mod secret;
mod text;

mod headers;

mod error;

mod keys;

mod backoff;
mod deprecation;
mod page;
mod quota;
mod retry;

mod gate;

mod options;

mod base_url;
mod notices;
mod request;
mod response;

mod transport;

mod trip;

mod pipeline;

mod api;

mod client;
mod tls;

mod builder;

#[cfg(feature = "unstable-internals")]
#[doc(hidden)]
pub mod internals;
#[cfg(test)]
mod simulator;

pub use api::{Call, ListPets, Pets, RawRequest, Store};
pub use builder::ClientBuilder;
pub use client::Client;
pub use deprecation::Deprecation;
pub use error::{Error, Quota};
pub use gate::{Blocked, HeldBy, QuotaStatus, RateLimits};
pub use headers::RateLimit;
pub use keys::{KeyFuture, KeyProvider};
pub use models::{NewPet, Pet, PetStatus};
pub use notices::{Answer, Exchange, Refusal, Wait};
pub use options::CallOptions;
pub use page::{More, Page};
pub use response::Response;
pub use secret::ApiKey;

pub use bytes::Bytes;
pub use http::{HeaderMap, Method, StatusCode};
pub use reqwest;
pub use url::Url;
