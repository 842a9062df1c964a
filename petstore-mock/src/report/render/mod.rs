//! How the report is written.

pub(super) mod json;
pub(super) mod junit;
pub(super) mod markdown;
pub(super) mod text;
pub(super) mod units;
