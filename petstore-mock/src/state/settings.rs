//! How the service is to read what its specification leaves open. Each of these is an assumption with
//! a switch; who sets them is left to `builder` and `cli`.

use std::fmt;

use crate::{
    ban::BanPolicy,
    cors::Cors,
    journal,
    model::PetStatus,
    plan::Plan,
    quota::{RateHeaders, Window},
    report::Severities,
};

/// The keys that are known when none is given, and their plans.
pub(crate) const DEFAULT_KEYS: [(&str, Plan); 4] = [
    ("free-key", Plan::Free),
    ("pro-key", Plan::Pro),
    ("business-key", Plan::Business),
    ("enterprise-key", Plan::default_enterprise()),
];

/// What the mock assumes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) window: Window,
    pub(crate) rate_headers: RateHeaders,
    /// Whether a page that more pets follow carries a link to the next.
    pub(crate) paging: bool,
    /// The status of a pet that is added without one.
    pub(crate) default_status: Option<PetStatus>,
    pub(crate) ban: BanPolicy,
    /// Which pages of other origins may use the service.
    pub(crate) cors: Cors,
    /// How many exchanges the journal keeps.
    pub(crate) journal: usize,
    /// How severe a breach of each rule is.
    pub(crate) severities: Severities,
    /// What opens administration to other machines.
    pub(crate) admin_token: Option<Token>,
    /// The longest body that administration takes, in bytes.
    pub(crate) admin_body: usize,
}

/// A secret that is compared, and never shown.
#[derive(Clone)]
pub(crate) struct Token(Box<str>);

impl Token {
    pub(crate) fn new(token: impl Into<Box<str>>) -> Self {
        Self(token.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window: Window::default(),
            rate_headers: RateHeaders::default(),
            paging: true,
            default_status: None,
            ban: BanPolicy::default(),
            cors: Cors::default(),
            journal: journal::DEFAULT,
            severities: Severities::default(),
            admin_token: None,
            admin_body: 256 * 1024 * 1024,
        }
    }
}
