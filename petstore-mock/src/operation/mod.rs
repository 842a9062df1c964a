//! The operations of the contract, and which requests are meant by an operation or by a method and a
//! path.

mod contract;
mod target;

pub use self::{contract::Operation, target::Target};
pub(crate) use self::{
    contract::{RATE_HEADERS, REMOVAL, is_method, is_parameter},
    target::PathTemplate,
};
