//! The gate of a CI run: whether the compliance report passes.

mod github;
mod judge;
mod rules;
mod verdict;

pub(super) use self::{
    judge::{GateArgs, Origin, Written},
    rules::RuleArgs,
};
