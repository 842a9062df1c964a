//! The compliance report. Each exchange is reduced to its `facts`. The `rules` judge the facts,
//! with what they remember of the `client` in bounded memory. They return breaches, which are kept
//! as `findings`. The report shows the `evidence` of the findings. It covers all exchanges, even if
//! the journal keeps only the last ones.

mod rule;
mod text;

mod facts;

mod breach;
mod evidence;
mod finding;
mod rules;

mod client;
mod findings;

mod audit;
mod formats;
mod render;

#[cfg(test)]
mod tests;

pub(crate) use self::{audit::Audit, facts::Facts, rule::Severities};
pub use self::{
    evidence::{Evidence, JudgedRequest, Predecessor, Role},
    finding::{Finding, Report, ReportedClient},
    rule::{About, ParseRuleError, ParseSeverityError, Rule, Severity},
};
