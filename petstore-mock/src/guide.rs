//! The guide: one page per subject.

#[doc = include_str!("../guide/compliance.md")]
pub mod compliance {}
#[doc = include_str!("../guide/connections.md")]
pub mod connections {}
#[doc = include_str!("../guide/data.md")]
pub mod data {}
#[doc = include_str!("../guide/specification.md")]
pub mod specification {}
