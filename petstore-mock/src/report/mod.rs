//! The compliance report: a function of the recorded exchanges. Each exchange is reduced to its
//! `facts`. The `rules` judge the facts of one key, with what they remember of it. What they find is
//! kept in `found`, for the whole server in `audit`. The report shows each as a `finding`.

mod rule;

mod facts;

mod finding;
mod found;

mod verdict;

mod rules;

mod audit;
#[cfg(feature = "junit")]
mod junit;
mod text;

#[cfg(test)]
mod tests;

#[cfg(feature = "cli")]
pub(crate) use self::verdict::UNREACHED;
pub(crate) use self::{audit::Audit, rule::Severities};
pub use self::{
    finding::{Finding, JudgedRequest, Role},
    rule::{Rule, Severity},
    verdict::Report,
};
