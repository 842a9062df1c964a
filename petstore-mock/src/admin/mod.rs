//! The mock's own paths, under `/_mock`: outside the service, its keys and its quotas.

mod advance;
mod health;

pub(crate) use self::{
    advance::{advance, not_post},
    health::health,
};
