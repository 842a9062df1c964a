//! The compliance report. Each exchange is reduced to its facts (`request`) and judged by pure
//! `rules` in bounded memory. The report covers all exchanges, even if the journal keeps only the
//! last ones.

mod rule;

mod request;

mod finding;

mod hygiene;
mod limits;
mod repeats;
mod retries;

mod client;

mod audit;
#[cfg(test)]
mod corpus;
mod render;

pub(crate) use self::{audit::Audit, rule::Severities};
pub use self::{
    finding::{Evidence, Finding, Report, ReportedClient},
    request::{JudgedRequest, Role},
    rule::{About, Rule, Severity},
};
