//! The compliance report: what a client did that the service's specification forbids, that harms it,
//! or that could be better. Each rule is a file in `rules`: a state machine that is fed every
//! exchange as it ends and keeps a bounded state, so that the report is right after a million of
//! them, though the journal keeps only the last ones. How the report is written is left to `write`.

mod audit;
mod finding;
mod pace;
mod per_key;
mod rules;
mod told;
mod value;
mod write;

pub(crate) use self::audit::Audit;
pub use self::{
    finding::{Evidence, Finding, Severity},
    value::Report,
};
