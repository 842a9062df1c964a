//! The guide: one page per subject.

#[doc = include_str!("../guide/dependencies.md")]
pub mod dependencies {}
#[doc = include_str!("../guide/errors.md")]
pub mod errors {}
#[doc = include_str!("../guide/keys.md")]
pub mod keys {}
#[doc = include_str!("../guide/observability.md")]
pub mod observability {}
#[doc = include_str!("../guide/promises.md")]
pub mod promises {}
#[doc = include_str!("../guide/rate_limits.md")]
pub mod rate_limits {}
#[cfg(feature = "test-util")]
#[doc = include_str!("../guide/testing.md")]
pub mod testing {}
#[cfg(not(feature = "test-util"))]
/// How to test a program that uses the client. This page needs the feature `test-util`.
pub mod testing {}
