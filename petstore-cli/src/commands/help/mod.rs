//! `petstore help`: of a command, or on a topic.

mod show;
mod topics;

pub(crate) use show::Help;
pub(super) use topics::TOPICS;
