//! The operations of the service, one file each, and what its other paths answer. What a request is let
//! in with is left to `router`.

mod create_pet;
mod deprecation;
mod fallback;
mod get_pet;
mod list_orders;
mod list_pets;
mod reply;
mod serve;

use self::reply::{answer, rendered};
pub(crate) use self::{
    reply::json,
    serve::{add, look},
};
