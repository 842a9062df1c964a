//! The settings of the service. Most of them decide what the specification leaves open.

use super::{
    ban::BanPolicy,
    quota::{RateHeaders, Window},
};
use crate::{journal, model::PetStatus, plan::Plan, report::Severities, routes::Routes};

/// The default keys and their plans.
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
    /// Whether a page has a link to the next page.
    pub(crate) paging: bool,
    /// The status of a pet that is created without one.
    pub(crate) default_status: Option<PetStatus>,
    pub(crate) ban: BanPolicy,
    pub(crate) routes: Routes,
    /// Whether web pages of other origins may use the service.
    pub(crate) cors: bool,
    /// The maximum number of exchanges in the journal.
    pub(crate) journal: usize,
    /// The most requests of a key that may be under way at once, if nothing else is declared for it.
    pub(crate) senders: u32,
    /// The severity of each rule.
    pub(crate) severities: Severities,
    /// Whether each key has its own pets and orders.
    pub(crate) isolate_keys: bool,
    /// Whether requests can choose a fault with `X-Mock-Fault`.
    pub(crate) fault_header: bool,
    /// The certificate authority of TLS, as PEM.
    pub(crate) authority: Option<String>,
    /// The token for administration from other machines.
    pub(crate) admin_token: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window: Window::default(),
            rate_headers: RateHeaders::default(),
            paging: true,
            default_status: None,
            ban: BanPolicy::default(),
            routes: Routes::default(),
            cors: true,
            journal: journal::DEFAULT,
            senders: 1,
            severities: Severities::default(),
            isolate_keys: false,
            fault_header: false,
            authority: None,
            admin_token: None,
        }
    }
}
