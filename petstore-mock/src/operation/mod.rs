//! The operations of the contract, and which requests are meant by an operation or by a method and a
//! path.

mod contract;
mod target;

pub(crate) use self::{
    contract::REMOVAL,
    target::{PathTemplate, is_parameter},
};
pub use self::{
    contract::{Operation, ParseOperationError},
    target::Target,
};
