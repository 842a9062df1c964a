//! The compliance report: a function of the recorded exchanges. Each exchange is reduced to its
//! `facts`. The `rules` judge the facts of one key, with what they remember of it. What they find is
//! kept in `found`, for the whole server in `audit`. The report shows each as a `finding`.

mod rule;

mod facts;

mod found;

mod rules;

mod finding;

mod audit;
mod formats;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use self::{audit::Audit, rule::Severities};
pub use self::{
    finding::{Finding, JudgedRequest, Report, Role},
    rule::{About, ParseRuleError, ParseSeverityError, Rule, Severity},
};
