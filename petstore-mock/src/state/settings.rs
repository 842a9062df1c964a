//! The settings of the service: most of them choose what its specification leaves open.

use crate::{
    ban::BanPolicy,
    cors::Cors,
    journal,
    model::PetStatus,
    plan::Plan,
    quota::{RateHeaders, Window},
    report::Severities,
};

/// The keys that a server has unless others are given, and their plans.
pub(crate) const DEFAULT_KEYS: [(&str, Plan); 4] = [
    ("free-key", Plan::Free),
    ("pro-key", Plan::Pro),
    ("business-key", Plan::Business),
    ("enterprise-key", Plan::default_enterprise()),
];

#[derive(Clone)]
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
    /// The token that opens the administration to other machines.
    pub(crate) admin_token: Option<String>,
    /// The longest body that the administration takes, in bytes.
    pub(crate) admin_body: usize,
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
