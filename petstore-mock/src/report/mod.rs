//! The compliance report: what clients did that the service's specification forbids, that harms it, or
//! that could be better. Each exchange is reduced to its facts (`observed`) and judged by pure `rules`
//! in bounded memory, so that the report is right after a million of them, though the journal keeps
//! only the last ones.

mod audit;
mod client;
#[cfg(test)]
mod corpus;
mod finding;
mod observed;
mod render;
mod rule;
mod rules;
mod store;
mod units;
mod value;

pub(crate) use self::{
    audit::{Audit, Sender},
    observed::ObservedExchange,
    rule::Severities,
};
pub use self::{
    finding::{Evidence, EvidenceRequest, Finding, ReportedClient, Role},
    rule::{About, ParseRuleError, ParseSeverityError, Rule, Severity},
    value::Report,
};
