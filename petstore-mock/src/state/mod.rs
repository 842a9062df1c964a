//! What the service holds: the pets and orders, and the file that keeps them.

#[cfg_attr(not(feature = "data"), path = "no_persistence.rs")]
mod persistence;
mod pet_list;
mod store;

#[cfg(feature = "data")]
pub use self::persistence::DataError;
pub use self::store::ChangeError;
pub(crate) use self::{
    persistence::Data,
    pet_list::{PetList, StoredPet},
    store::{Applied, Change, Content, Order, Store},
};
