//! The gate of a CI run: whether the compliance report passes.

mod github;
mod judge;
mod rules;

pub(super) use self::{
    judge::{GateArgs, Origin, Written},
    rules::RuleArgs,
};
