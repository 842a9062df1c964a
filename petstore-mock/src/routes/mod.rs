//! The operations of the service, one file each, and what its other paths answer. Which path leads
//! to which is left to `router`.

mod create_pet;
mod deprecation;
mod fallback;
mod get_pet;
mod list_orders;
mod list_pets;
mod reply;

pub(crate) use self::{
    create_pet::create_pet,
    deprecation::deprecated,
    fallback::{only, unknown},
    get_pet::get_pet,
    list_orders::list_orders,
    list_pets::list_pets,
    reply::json,
};
